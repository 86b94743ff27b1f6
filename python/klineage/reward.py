"""Rewards for a trainer, asked of `klineage serve --reward`: TRL's and verl's signatures over one client.

    from klineage.reward import Rewards, TRL
    trainer = GRPOTrainer(reward_funcs=TRL(Rewards("http://127.0.0.1:8766")), ...)

A batch that was accepted is answered, also by the next start of a server that was killed: the client sends the same
batch again until there is an answer.  Nothing but the standard library.  SPDX-License-Identifier: Apache-2.0"""
import http.client
import json
import os
import re
import socket
import time
import warnings
from urllib.parse import urlsplit

BATCH = 64  # kernels that the server takes at a time
MINUTES = 60
FENCE = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)


class Refused(Exception):
    """The server will not answer this however often it is asked: `status` is that of HTTP."""

    def __init__(self, status, message, hint=""):
        super().__init__(message + (f" ({hint})" if hint else ""))
        self.status, self.message, self.hint = status, message, hint


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Rewards:
    """One server.  `address`: http://HOST:PORT or unix:PATH; `token` of the tenant; KLINEAGE_REWARD and
    KLINEAGE_REWARD_TOKEN unless given.  `patience_s`: how long it goes on through floods, restarts and long queues."""

    def __init__(self, address=None, token=None, formula="shaped", patience_s=60 * MINUTES, wait_s=60):
        self.address = address or os.environ.get("KLINEAGE_REWARD", "http://127.0.0.1:8766")
        self.token = token or os.environ.get("KLINEAGE_REWARD_TOKEN")
        self.formula, self.patience_s, self.wait_s = formula, patience_s, wait_s

    def connection(self):
        if self.address.startswith("unix:"):
            return UnixConnection(self.address[5:], self.wait_s + 30)
        at = urlsplit(self.address)
        if at.scheme != "http" or not at.hostname:
            raise ValueError(f"{self.address} is neither http://HOST:PORT nor unix:PATH")
        return http.client.HTTPConnection(at.hostname, at.port or 80, timeout=self.wait_s + 30)

    def request(self, method, target, body=None):
        """Status, headers and document of one exchange."""
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        connection = self.connection()
        try:
            connection.request(method, target, body=None if body is None else json.dumps(body).encode(), headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            is_json = answer.headers.get_content_type() == "application/json"
            return answer.status, answer.headers, json.loads(text) if is_json else text
        finally:
            connection.close()

    def ask(self, kernels):
        """Answers of one batch, in its order.  `kernels`: dicts as docs/how-to/reward.md has them."""
        body = {"formula": self.formula, "wait_seconds": self.wait_s, "kernels": kernels}
        until, pause = time.monotonic() + self.patience_s, 0.2
        while True:
            try:
                status, headers, said = self.request("POST", "/v1/rewards", body)
            except (OSError, http.client.HTTPException) as why:  # it stops, or starts: the same batch is asked again
                status, headers, said = 0, {}, {"message": f"{self.address}: {why}"}
                warnings.warn(f"{said['message']}; the same batch is asked again", stacklevel=2)
            if status == 200:
                return said["rewards"]
            if status not in (0, 202, 429, 503):
                raise Refused(status, said.get("message", "") if isinstance(said, dict) else said, said.get("hint", ""))
            if time.monotonic() > until:
                raise TimeoutError(f"no answer after {self.patience_s} s: {said.get('message', said.get('state'))}")
            if status != 202:
                time.sleep(min(float(headers.get("Retry-After", pause)), max(0.0, until - time.monotonic())))
                pause = min(2 * pause, 5)

    def __call__(self, kernels):
        """Answers of any number of kernels; their ids are given here."""
        named = [{**kernel, "id": str(i)} for i, kernel in enumerate(kernels)]
        return [answer for i in range(0, len(named), BATCH) for answer in self.ask(named[i:i + BATCH])]


def source_of(text):
    """The kernel in a model's reply: its last fenced block, else the whole of it."""
    if not isinstance(text, str):  # a conversation: what was said last
        text = text[-1]["content"]
    blocks = FENCE.findall(text)
    return blocks[-1] if blocks else text


FIELDS = ("task", "surface", "workload", "against", "baseline", "check_only", "quick")


def question(source, columns):
    return {"kernel": source_of(source), **{k: columns[k] for k in FIELDS if columns.get(k) not in (None, "", False)}}


class TRL:
    """A reward function for TRL: `task` and the other words of a question are columns of the data set (or given here
    for all).  None, which TRL leaves out of its means, where the server could not judge a kernel."""

    def __init__(self, rewards=None, **common):
        self.rewards, self.common = rewards or Rewards(), common
        self.__name__ = f"klineage_{self.rewards.formula}"

    def __call__(self, prompts, completions, **columns):
        rows = [{**self.common, **{k: columns[k][i] for k in FIELDS if k in columns}} for i in range(len(completions))]
        return [a["reward"] for a in self.rewards([question(c, row) for c, row in zip(completions, rows)])]


def reward_func(prompts, completions, **columns):
    """TRL, with the server of KLINEAGE_REWARD."""
    return TRL()(prompts, completions, **columns)


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    """verl's signature.  The question's words are those of `extra_info`; the task is `ground_truth`, or `task` there.
    0 where the server could not judge."""
    columns = {"task": ground_truth, **(extra_info or {})}
    answer, = Rewards()([question(solution_str, columns)])
    return float(answer["reward"] or 0)
