"""Readers' tests hold ids against what the files say, so ids are kept; what else becomes of them: ``test_privacy``."""

from __future__ import annotations

import importlib

import pytest

READ = importlib.import_module("harness_lab.settlements.read")


@pytest.fixture(autouse=True)
def ids_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep ids unless a test says otherwise; no test ever touches the user's own key."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    monkeypatch.setattr(READ, "DEFAULT_IDS", "kept")
