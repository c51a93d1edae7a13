"""What holds for every test."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy is: threads that wait for each other cost most


@pytest.fixture(autouse=True, scope="session")
def no_test_makes_a_key_in_the_users_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the key that ids are hashed with a place of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield
