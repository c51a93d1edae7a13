"""A worker of the kill test: holds and settles as fast as it can, and writes down first and last what it does.

Run as a program: ``durable_worker.py ACCOUNT LOG PREVIOUS_LOG SEED``. Every line of the log is on disk before the next
step is taken, so the log is what the worker knows, whenever it is killed.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

from harness_lab.budget.durable import DurableAccount
from harness_lab.budget.period import PeriodLimits
from harness_lab.budget.windows import Rolling
from harness_lab.errors import AlreadySettled
from harness_lab.outcome import Refusal
from harness_lab.usage import amounts

FAST = PeriodLimits(name="fast", limits=amounts(calls=40, cost_usd=0.02), window=Rolling(0.3), cap="hard")


def read_log(path: str) -> list[list[Any]]:
    """Return the whole lines of a log; the last one may have been cut off by the kill."""
    if not Path(path).exists():
        return []
    lines = Path(path).read_text().split("\n")
    return [json.loads(line) for line in lines[:-1]]


def main(account_path: str, log_path: str, previous: str, seed: int) -> None:
    account = DurableAccount(account_path, synchronous="normal", busy_seconds=30)
    rng = random.Random(seed)  # noqa: S311 - a test
    with open(log_path, "a") as log:

        def say(*words: Any) -> None:
            log.write(json.dumps(words) + "\n")
            log.flush()
            os.fsync(log.fileno())

        def settle(name: str, bill: int | None, status: str) -> None:
            say("settle", name, bill, status)
            try:
                account.settle(name, (1, None, None, None, bill), time.time_ns(), status=status)  # type: ignore[arg-type]
                say("settled", name)
            except AlreadySettled:
                say("was settled", name)

        for line in read_log(previous):  # the dead worker's bills that nobody has confirmed
            if line[0] == "settle" and rng.random() < 0.5:
                settle(*line[1:])
        print("ready", flush=True)
        number = 0
        while True:
            number += 1
            name = f"{Path(log_path).stem}-{number}"
            bound = rng.randrange(1, 2_000_000)
            say("hold", name, bound)
            answer = account.hold(name, (1, None, None, None, bound), time.time_ns(), periods=[(FAST, "all")])
            refused = isinstance(answer, Refusal)
            say("refused" if refused else "held", name)
            fate = rng.random()
            if refused or fate < 0.05:  # forgotten: it will expire
                continue
            bill = None if fate < 0.15 else 0 if fate < 0.2 else rng.randrange(bound + 1)
            settle(name, bill, "unsent" if fate >= 0.95 else "completed")


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
