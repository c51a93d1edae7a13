"""An adapter that lies in a file: it travels to worker processes, and what is odd in it is told in one line."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from harness_lab.adapters import address, named, policy
from harness_lab.errors import InputError
from harness_lab.simulate import Experiment, from_gallery, sweep

if TYPE_CHECKING:
    from pathlib import Path

    from harness_lab.policies import PolicySpec

BUCKET = """
from harness_lab.adapters import Adapter

class Bucket(Adapter):
    name = "bucket"

    def __init__(self, *, calls):
        self.calls, self.used = calls, 0

    def before_call(self, call):
        if self.calls is not None and self.used >= self.calls:
            return f"{self.used} calls are used"

    def after_call(self, call, used):
        self.used += 1

class Yes(Bucket):
    def before_call(self, call):
        return True

class Empty(Bucket):
    def before_call(self, call):
        return ""

class Later(Bucket):
    async def before_call(self, call):
        return None

class Lost(Bucket):
    def child(self, child):
        return None
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    place = tmp_path / "bucket_of_a_test.py"
    place.write_text(BUCKET)
    return str(place)


def experiment(spec: PolicySpec) -> Experiment:
    scene = from_gallery("deep-research")
    return Experiment(workload=scene.workload, provider=scene.provider, policies=(spec,), runs=20)


def test_it_travels_to_worker_processes(file: str) -> None:
    asked = experiment(policy(f"{file}:Bucket", calls=8))
    there = asked.run(backend="loky", workers=2, block=5, progress=False)
    assert there.digest() == asked.run(backend="serial", progress=False).digest()


def test_a_limit_that_it_cannot_be_made_without_is_swept(file: str) -> None:
    found = sweep(experiment(policy(f"{file}:Bucket", calls=8)), "calls", [2, 4], policy="bucket")
    assert found.to_frame()["ceiling"].tolist() == [2, 4]


def test_it_is_named_as_it_was_given(file: str) -> None:
    assert address(named(f"{file}:Bucket")) == f"{file}:Bucket"


@pytest.mark.parametrize(
    ("name", "method"), [("Yes", "before_call"), ("Empty", "before_call"), ("Later", "before_call"), ("Lost", "child")]
)
def test_an_answer_that_is_none_names_the_adapter_and_the_method(file: str, name: str, method: str) -> None:
    asked = experiment(policy(f"{file}:{name}", calls=8))
    with pytest.raises(InputError, match=rf"^{name}\.{method}: expected .* or a reason"):
        asked.run(backend="serial", progress=False)


@pytest.mark.parametrize(("text", "why"), [("def (", "SyntaxError"), ("1/0", "ZeroDivisionError")])
def test_a_file_that_cannot_be_run_is_told_in_one_line(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "broken.py").write_text(text)
    with pytest.raises(InputError, match=why) as error:
        policy(f"{tmp_path / 'broken.py'}:Mine", calls=3)
    assert "\n" not in str(error.value)


def test_what_is_no_adapter_is_told() -> None:
    with pytest.raises(InputError, match="adapter: expected a name"):
        policy(5, calls=3)  # type: ignore[arg-type]


def test_an_experiment_file_with_somebody_elses_limiter_is_read_without_an_import() -> None:
    text = '[[policies]]\nname = "theirs"\n[policies.adapter]\nadapter = "check-then-add"\nlimits = { calls = 3 }\n'
    code = (
        "import sys, tomllib; from harness_lab.simulate.config import read_policy; "
        "assert 'harness_lab.adapters' not in sys.modules; "
        f"print(read_policy(tomllib.loads({text!r})['policies'][0]).modules[0].kind)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "adapter\n"
