from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from harness_lab import datasets
from harness_lab.cli import report_notebooks
from harness_lab.cli.app import main

FOLDER = Path(__file__).parents[2] / "notebooks"


@pytest.fixture(autouse=True)
def _this_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.notebook
@pytest.mark.filterwarnings("default")  # of nbconvert and its parts
def test_records_become_one_html_file_without_scripts_or_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report_notebooks, "NEEDED", {"07_price_a_run": "cost_nusd"})
    records, out = datasets.data_dir() / "synthetic_runs.parquet", tmp_path / "report.html"
    with pytest.raises(SystemExit) as ended:
        main(["report", str(records), "--out", str(out), "--json"])
    assert ended.value.code in (0, None)
    assert json.loads(capsys.readouterr().out)["notebooks"] == ["07_price_a_run"]
    page = out.read_text("utf-8")
    assert "What may a run cost?" in page
    assert "data:image/png" in page
    assert "<script" not in page
    assert "http://" not in page.replace("http-equiv", "")
    assert "https://" not in page
    assert "flat_price(" not in page


def test_a_notebook_is_left_out_when_its_column_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_notebooks, "NEEDED", {"07_price_a_run": "cost_nusd"})
    records = tmp_path / "runs.csv"
    records.write_text("run,input_total,outcome\na,10,completed\n")
    _, answered, left_out = report_notebooks.report_on(records, tmp_path / "out.html", folder=FOLDER)
    assert answered == []
    assert left_out == {"07_price_a_run": "no row tells its cost"}
