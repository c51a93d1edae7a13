"""Where blocks of runs are simulated: in this process, in worker processes, or on a cluster that is there already.

A block is named by its runs, and its luck by seed and run, so that nothing depends on where, in which order or in what
company it is simulated.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from threading import Event
from traceback import format_exc
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from harness_lab.errors import InputError
from harness_lab.usage import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")
Backend = Literal["auto", "serial", "loky", "dask", "ray"]
BACKENDS: Final[tuple[Backend, ...]] = ("auto", "serial", "loky", "dask", "ray")
PARALLEL_FROM: Final = 3_000
"""Simulated trees from which starting worker processes pays."""
_WAVE: Final = 32
"""Blocks for each worker that are under way or waiting to be taken; more would pile up in memory."""


@dataclass(frozen=True, slots=True)
class _Failed:
    """What a job answers that raised `error`."""

    error: Exception


def choose(backend: Backend, workers: int | None, *, trees: int) -> tuple[Backend, int]:
    """Return the backend in the place of ``auto``, and how many workers.

    Parameters
    ----------
    backend : {"auto", "serial", "loky", "dask", "ray"}
        ``auto``: worker processes of this machine from 3,000 trees on. ``dask`` uses the client of this session,
        ``ray`` the cluster that this session is connected to, or a local one.
    workers : int or None
        None: the number of cores, or all workers of the cluster.
    trees : int
        Trees to simulate.

    Raises
    ------
    InputError
        If there is no such backend, it is not installed, or no client is connected.
    """
    if backend not in BACKENDS:
        raise InputError("backend", expected=f"one of {', '.join(BACKENDS)}", got=backend)
    wanted = None if workers is None else max(1, count("workers", workers, maximum=4096))
    if backend == "auto":
        wanted = wanted if wanted is not None else os.cpu_count() or 1
        backend = "loky" if trees >= PARALLEL_FROM and wanted > 1 else "serial"
    if backend == "serial":
        return backend, 1
    if backend == "dask":
        _check_dask()
    elif backend == "ray":
        _register_ray()
    else:
        wanted = wanted if wanted is not None else os.cpu_count() or 1
    return backend, -1 if wanted is None else wanted


def run_on(backend: Backend, workers: int, jobs: Iterable[tuple[Callable[..., T], tuple[Any, ...]]]) -> Iterator[T]:
    """Run jobs, and yield what they return in their order.

    Parameters
    ----------
    backend, workers
        From :func:`choose`.
    jobs : iterable of (function, arguments)
        Taken as they are needed: a long list of them is never in memory.
    """
    if backend == "serial":
        for function, arguments in jobs:
            yield function(*arguments)
        return
    from joblib import Parallel, delayed, parallel_config

    left = iter(jobs)
    with parallel_config(backend=backend, n_jobs=workers), Parallel(return_as=_return_as(backend)) as parallel:
        wave = _WAVE * (workers if workers > 0 else parallel._effective_n_jobs())
        while batch := list(islice(left, wave)):
            over = Event()
            waiting = (delayed(_caught)(function, arguments) for function, arguments in batch if not over.is_set())
            yield from _until_left(parallel(waiting), over)


def _caught(function: Callable[..., T], arguments: tuple[Any, ...]) -> T | _Failed:
    try:
        return function(*arguments)
    except Exception as error:
        error.add_note(format_exc())  # where it was raised is lost on the way between processes
        return _Failed(error)


def _until_left(made: Iterable[T | _Failed], over: Event) -> Iterator[T]:
    """Yield results; whoever leaves before the end lets no further job begin and waits for those under way.

    To close joblib's generator, or to let it see an error, would kill its workers in the midst of their answers, and
    every few times the next run on new workers would wait for ever.
    """
    results = iter(made)
    try:
        for one in results:
            if isinstance(one, _Failed):
                raise one.error
            yield one
    finally:
        over.set()
        for _ in results:
            pass


def _return_as(backend: Backend) -> str:
    return "list" if backend == "ray" else "generator"  # ray's own pool knows no generator


def _check_dask() -> None:
    if find_spec("distributed") is None:
        hint = "pip install 'harness-lab[dask]'"
        raise InputError("backend", expected="dask with the package distributed", got="none installed", hint=hint)
    from distributed import get_client

    try:
        get_client()
    except ValueError:
        hint = "client = distributed.Client(ADDRESS), then run(backend='dask')"
        raise InputError("backend", expected="a dask client in this session", got="none", hint=hint) from None


def _register_ray() -> None:
    if find_spec("ray") is None:
        hint = "pip install 'harness-lab[ray]'"
        raise InputError("backend", expected="ray with the package ray", got="none installed", hint=hint)
    import_module("ray.util.joblib").register_ray()
