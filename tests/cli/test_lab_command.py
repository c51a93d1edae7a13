"""What `lab` opens: the notebooks of a checkout, or a copy of installed ones that keeps what its owner wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lab.cli import lab

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_checkout_is_opened_as_it_is() -> None:
    assert lab.notebooks_to_edit() == lab.shipped_notebooks()


def test_installed_notebooks_are_copied_once_and_never_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "site" / lab.INSTALLED
    (installed / "dashboard").mkdir(parents=True)
    (installed / "01.ipynb").write_text("shipped")
    (installed / "dashboard" / "explorer.ipynb").write_text("page")
    monkeypatch.setattr(lab, "shipped_notebooks", lambda: installed)
    monkeypatch.chdir(tmp_path)

    own = lab.notebooks_to_edit()
    (own / "01.ipynb").write_text("mine")
    (installed / "02.ipynb").write_text("new")
    assert lab.notebooks_to_edit() == own
    assert [(own / name).read_text() for name in ("01.ipynb", "02.ipynb", "dashboard/explorer.ipynb")] == [
        "mine",
        "new",
        "page",
    ]
    assert (installed / "01.ipynb").read_text() == "shipped"
