"""The same results wherever blocks are simulated: here, in worker processes, on a cluster of separate processes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness_lab import datasets
from harness_lab.errors import InputError
from harness_lab.simulate import load_experiment
from harness_lab.simulate.backends import choose, run_on
from harness_lab.simulate.blocks import _unpacked, packed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness_lab.simulate import Experiment
    from harness_lab.simulate.worlds import World


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A dask scheduler and two workers, each a process of its own; the file that says where the scheduler is."""
    pytest.importorskip("distributed", reason="dask is not installed (pip install 'harness-lab[dask]')")
    folder = tmp_path_factory.mktemp("dask")
    place = folder / "scheduler.json"
    where = ["--scheduler-file", str(place), "--no-dashboard"]
    worker = ["distributed.cli.dask_worker", *where, "--no-nanny", "--nthreads", "1", "--local-directory", str(folder)]
    started = [
        subprocess.Popen([sys.executable, "-m", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for arguments in (
            ["distributed.cli.dask_scheduler", *where, "--host", "127.0.0.1", "--port", "0"],
            worker,
            worker,
        )
    ]
    yield place
    for process in reversed(started):
        process.terminate()
        process.wait(timeout=30)


@pytest.mark.filterwarnings("ignore")  # of distributed and tornado while they open and close connections
def test_a_dask_cluster_of_two_worker_processes_gives_the_same_results(cluster: Path, busy: Experiment) -> None:
    from distributed import Client

    with Client(scheduler_file=str(cluster)) as client:
        client.wait_for_workers(2, timeout=60)
        found = busy.run(backend="dask", block=7, engine="kernel")
        used = client.run(lambda: len(sys.modules.get("harness_lab.simulate.engine", object).__dict__))
    assert found.digest() == busy.run(backend="serial").digest()
    assert min(used.values()) > 10  # both workers have simulated


def test_dask_without_a_client_is_refused_with_the_next_step(busy: Experiment) -> None:
    pytest.importorskip("distributed", reason="dask is not installed (pip install 'harness-lab[dask]')")
    with pytest.raises(InputError, match=r"^backend: expected a dask client in this session, got 'none'\. client = "):
        busy.run(backend="dask")


@pytest.mark.filterwarnings("ignore")
def test_ray_gives_the_same_results(busy: Experiment) -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed (pip install 'harness-lab[ray]')")
    ray.init(num_cpus=2, include_dashboard=False)
    try:
        assert busy.run(backend="ray", block=9).digest() == busy.run(backend="serial").digest()
    finally:
        ray.shutdown()


def test_a_backend_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness_lab.simulate.backends.find_spec", lambda name: None)
    for name in ("dask", "ray"):
        with pytest.raises(InputError, match=rf"^backend: expected {name} with the package .*harness-lab\[{name}\]"):
            choose(name, None, trees=1)


def test_few_trees_stay_here_and_many_go_to_worker_processes() -> None:
    assert choose("auto", 2, trees=2_999) == ("serial", 1)
    assert choose("auto", 2, trees=3_000) == ("loky", 2)
    assert choose("auto", 1, trees=10**6) == ("serial", 1)


@pytest.mark.parametrize("backend", ["serial", "loky"])
def test_jobs_are_taken_as_they_are_needed_and_come_back_in_order(backend: str) -> None:
    taken: list[int] = []

    def jobs() -> Iterator[tuple[type[int], tuple[int]]]:
        for i in range(200):
            taken.append(i)
            yield int, (i,)

    made = run_on(backend, 2, jobs())  # type: ignore[arg-type]
    assert [next(made) for _ in range(3)] == [0, 1, 2]
    assert len(taken) < 200
    assert list(made) == list(range(3, 200))


def test_a_world_is_packed_once_and_unpacked_once_in_each_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []

    def counted(world: World) -> bytes:
        made.append(packed(world))
        return made[-1]

    monkeypatch.setattr("harness_lab.simulate.execute.packed", counted)
    experiment = replace(load_experiment(datasets.data_dir() / "experiment.toml"), runs=120)
    in_workers = experiment.run(backend="loky", workers=2, block=10, engine="kernel")
    assert len(made) == 1
    assert in_workers.digest() == experiment.run(backend="serial", engine="kernel").digest()
    assert _unpacked(made[0]) is _unpacked(bytes(bytearray(made[0])))


def test_whoever_leaves_early_lets_no_further_job_begin_and_can_run_again() -> None:
    for _ in range(2):
        results = run_on("loky", 2, ((pow, (2, n)) for n in range(10_000)))
        assert next(results) == 1
        results.close()  # type: ignore[attr-defined]
    assert list(run_on("loky", 2, [(pow, (2, 3))])) == [8]


def test_a_job_that_fails_says_so_and_the_next_run_goes_on() -> None:
    for _ in range(3):
        with pytest.raises(ZeroDivisionError) as caught:
            list(run_on("loky", 2, ((divmod, (2, 40 - n)) for n in range(200))))
        assert any("Traceback" in note for note in caught.value.__notes__)
    assert list(run_on("loky", 2, [(pow, (2, 3))])) == [8]
