"""What commands answer, as dataclasses; `json` is the whole of it.  SPDX-License-Identifier: Apache-2.0"""
from dataclasses import dataclass, field, fields


@dataclass(frozen=True)
class Comparison:
    """The candidate beside one baseline: `ratio` is the baseline's time over the candidate's, with its 95 % interval."""
    baseline: str
    ratio: float
    low: float
    high: float
    call: str  # faster, slower, same, undecided
    candidate_ns: float
    baseline_ns: float

    @classmethod
    def of(cls, said):
        return cls(**{f.name: said[f.name] for f in fields(cls)})


@dataclass(frozen=True)
class Verdict:
    """docs/schema/verdict.schema.json says what each field of `json` means."""
    outcome: str  # pass, wrong, cheat, unstable, ...
    why: str
    task: str
    kernel: str  # the file that was judged
    workload: str
    platform: str
    median_ns: int  # 0: it was not timed
    comparisons: tuple
    degradations: tuple
    json: dict = field(repr=False)

    @classmethod
    def of(cls, said):
        time = said.get("time") or {}
        return cls(outcome=said["outcome"], why=said["why"], task=said["task"]["name"], kernel=said["kernel"]["path"],
                   workload=said["workload"], platform=said["platform"]["name"], median_ns=time.get("median_ns", 0),
                   comparisons=tuple(map(Comparison.of, time.get("vs", ()))),
                   degradations=tuple(said.get("degradations", ())), json=said)

    @property
    def passed(self):
        return self.outcome == "pass"
