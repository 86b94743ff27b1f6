#!/usr/bin/env python3
"""What more workers would bring, and what a million proposals a day would cost: from what bench/scale.py measured.

    bench/scale.py --out scale.json             # measured first, on a quiet machine
    pip install simpy==4.1.1
    bench/scale_model.py scale.json             # efficiency at 1 to 256 workers simulated, to 10 000 on paper
    bench/scale_model.py scale.json --per-day 1000000 [--gate-seconds S]

The model: a closed loop.  Each track thinks (turnaround_s: from a verdict to its next job, with the model's answer, the journal and the look at
the spool in it), waits for a worker, and is judged (gate_s).  Both are drawn from the measured samples of the run with the fewest workers, where
nobody waits for a core; the command has CORES for what a whole run spent of its own processor time, a verdict.  Efficiency is verdicts per second
over what the workers could give.  Before it says anything it is held against measured runs, `measured` and `simulated` beside each other: there
workers and command share the host's cores, and gates are drawn from that run's own, since workers on one host slow each other.

The calculator multiplies what a proposal took in the measured run: journal, verdicts, texts, spool, repeated questions, worker time.  Nothing in it is
assumed; where gates of another device are meant, --gate-seconds is that device's mean, from bench/spool.py.

Prints one JSON object."""
import argparse
import json
import random
import statistics
import sys
from pathlib import Path

SIMULATED, ON_PAPER = (1, 4, 16, 64, 256), (1000, 10000)
TRACKS_PER_WORKER = (1, 2, 4, 8)
SECONDS_A_DAY = 86400


def processor(measured):
    """Seconds of the command's processor for a verdict: of a whole run, in which its start weighs least."""
    run = next((r for r in measured["runs"] if r["whole"]), measured["runs"][0])
    return run["children_s"] / run["verdicts"]


def simulate(measured, times, workers, tracks, cores, shared=False, seed=1, verdicts_a_worker=60):
    """Verdicts per second, after the first tenth, which only fills the queue.  Shared: workers are judged on the command's cores too."""
    try:
        import simpy
    except ImportError:
        sys.exit("simpy is missing: pip install simpy==4.1.1")
    chance, env = random.Random(seed), simpy.Environment()
    gate, turnaround = times["gate_s"], times["turnaround_s"]
    pool, processors = simpy.Resource(env, workers), simpy.Resource(env, cores)
    cpu, most, done = processor(measured), verdicts_a_worker * workers, []

    def busy(resource, seconds):
        with resource.request() as turn:
            yield turn
            yield env.timeout(seconds)

    def track():
        while len(done) < most:
            yield from busy(processors, cpu)
            yield env.timeout(max(0.0, chance.choice(turnaround) - cpu))
            with pool.request() as place:
                yield place
                seconds = chance.choice(gate)
                yield from busy(processors, seconds) if shared else iter([env.timeout(seconds)])
            done.append(env.now)

    for _ in range(tracks):
        env.process(track())
    env.run()
    begin = done[len(done) // 10]
    return sum(t > begin for t in done[:most]) / (done[most - 1] - begin)


def on_paper(measured, workers, tracks, cores):
    """The three bounds of a closed loop: workers, tracks, the command's processors."""
    gate, think = (statistics.fmean(measured["times"][k]) for k in ("gate_s", "turnaround_s"))
    return min(workers / gate, tracks / (gate + think), cores / processor(measured))


def calibration(measured):
    """The same number of workers and tracks, simulated and measured: the runs whose times are kept."""
    tracks = len({row[0].rsplit(" ", 1)[0] for row in measured["table"]})
    for run, times in ((measured["runs"][0], "times"), (measured["runs"][-1], "times_most_workers")):
        rate = simulate(measured, measured[times], run["workers"], tracks, measured["cores"], shared=True)
        yield {"workers": run["workers"], "tracks": tracks, "measured_per_s": run["verdicts_per_s"], "simulated_per_s": round(rate, 4)}


def efficiency(measured, cores):
    gate = statistics.fmean(measured["times"]["gate_s"])
    for workers in SIMULATED + ON_PAPER:
        for times in TRACKS_PER_WORKER:
            tracks, how = times * workers, "simulated" if workers in SIMULATED else "on paper"
            rate = (simulate(measured, measured["times"], workers, tracks, cores) if how == "simulated" else on_paper(measured, workers, tracks, cores))
            yield {"workers": workers, "tracks": tracks, "how": how, "verdicts_per_s": round(rate, 3), "efficiency": round(rate * gate / workers, 4)}


def calculator(measured, per_day, gate_seconds):
    """What `per_day` proposals take, from the measured run with the most workers."""
    run = max(measured["runs"], key=lambda r: (r["whole"], r["workers"]))
    per = {k: run[k] / run["proposals"] for k in ("journal_bytes", "verdict_bytes", "blob_bytes", "spool_bytes", "verdicts", "judged", "children_s")}
    gate = gate_seconds or run["gate_s"]["mean"]
    worker_s = per["verdicts"] * gate * per_day
    return {"proposals": per_day, "from": {"workers": run["workers"], "proposals": run["proposals"]},
            "per_proposal": {k: round(v, 4) for k, v in per.items()},
            "journal_gb": round(per["journal_bytes"] * per_day / 1e9, 3), "verdicts_gb": round(per["verdict_bytes"] * per_day / 1e9, 3),
            "texts_gb": round(per["blob_bytes"] * per_day / 1e9, 3), "spool_gb": round(per["spool_bytes"] * per_day / 1e9, 3),
            "answered_before": round(1 - run["verdicts"] / run["judged"], 4), "gate_seconds": gate,
            "worker_hours": round(worker_s / 3600, 1), "workers": round(worker_s / SECONDS_A_DAY, 1),
            "controller_cores": round(per["children_s"] * per_day / SECONDS_A_DAY, 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=Path, help="what bench/scale.py --out wrote")
    parser.add_argument("--cores", type=int, help="of the controller; default those of the measured host")
    parser.add_argument("--per-day", type=int, help="the calculator, for so many proposals")
    parser.add_argument("--gate-seconds", type=float, help="mean of another device's gate")
    options = parser.parse_args()
    measured = json.loads(options.measured.read_text())
    measured["runs"].sort(key=lambda r: r["workers"])
    if options.per_day:
        print(json.dumps(calculator(measured, options.per_day, options.gate_seconds)))
        return
    print(json.dumps({"calibration": list(calibration(measured)), "efficiency": list(efficiency(measured, options.cores or measured["cores"]))}))


if __name__ == "__main__":
    main()
