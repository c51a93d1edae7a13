from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from command_line import run

if TYPE_CHECKING:
    from pathlib import Path


def test_lab_opens_the_folder_that_is_given_without_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []
    monkeypatch.setattr("jupyterlab.labapp.main", given.extend)
    assert run("lab", tmp_path, "--port", 9001, "--no-browser") == 0
    assert {f"--ServerApp.root_dir={tmp_path}", "--port=9001", "--no-browser"} <= set(given)


def test_lab_wants_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("lab", tmp_path / "nothing") == 2
    assert "expected a folder" in capsys.readouterr().err


@pytest.mark.parametrize(("asked", "given"), [((), "--Voila.auto_token=True"), (("--token", "t"), "--token=t")])
def test_a_dashboard_is_never_served_without_a_token(
    asked: tuple[str, ...], given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    voila = pytest.importorskip("voila.app", reason="voila is not installed (pip install '.[dashboard]')")
    options: list[str] = []
    monkeypatch.setattr(voila.Voila, "launch_instance", options.extend)
    monkeypatch.setattr("sys.argv", ["harness-lab"])
    assert run("dashboard", "--no-browser", *asked) == 0
    assert given in options
