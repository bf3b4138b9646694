"""metrics.json's content and the report that shows it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from asap_core.errors import InputFileError
from asap_core.evaluation.open_loop import OPEN_LOOP_METRICS, OpenLoopResult, OpenLoopRow
from asap_core.evaluation.settings import EvaluateSettings
from asap_core.files import write_json
from asap_core.metrics import METRIC_NAMES, Interval
from asap_core.reporting.report import ReportContent, render, write_report
from asap_core.reporting.tables import comparison_table
from asap_core.simulators.settings import SimulationSettings
from tasks.evaluate import build_metrics
from tests.evaluation.made_results import made_result

RESULT = made_result({"vanilla": [120.0], "finetune_only": [110.0, 111.0], "asap": [90.0, 91.0]})


def _open() -> OpenLoopResult:
    rows = tuple(
        OpenLoopRow(m, h, 8, {name: Interval(v, v - 1, v + 1, 4) for name in OPEN_LOOP_METRICS})
        for m, v in (("zero", 40.0), ("delta", 10.0))
        for h in (0.25, 0.5, 1.0)
    )
    return OpenLoopResult(rows, {"zero": np.arange(50.0), "delta": np.arange(50.0) / 4})


@pytest.fixture
def metrics() -> dict[str, Any]:
    params = SimpleNamespace(evaluate=EvaluateSettings(starts=16), target=SimulationSettings(backend="physx"))
    return build_metrics(_open(), RESULT, params)  # type: ignore[arg-type]


def test_metrics_hold_what_others_read(metrics: dict[str, Any]) -> None:
    assert metrics["open_loop_1.0s_ratio"] == 0.25
    assert metrics["target_engine"] == "physx"
    assert metrics["gate"]["verdict"] == "granted"
    assert (metrics["best_seed_asap"], metrics["best_seed_finetune_only"]) == (0, 0)
    assert set(metrics["closed_loop"]["asap"]) == set(METRIC_NAMES)
    assert metrics["closed_loop"]["asap"]["E_g_mpjpe"]["mean"] == pytest.approx(90.5, abs=0.1)
    assert metrics["open_loop"]["1.0s"]["delta"]["E_g_mpjpe"]["high"] == 11.0
    assert "twin" in metrics["target"]
    json.dumps(metrics, allow_nan=False)


def _content(metrics: dict[str, Any]) -> ReportContent:
    return ReportContent(
        metrics=metrics,
        delta={
            "chosen": "linear<1>",
            "validation_mm": {"zero": {"open_loop_1.0s": 40.0}},
            "mean_abs_delta_rad": {"left_knee_joint": 0.1},
        },
        gap=RESULT.gap,
        growth={"zero": np.arange(50.0)},
        histories={"vanilla": pd.DataFrame({"iteration": [1, 2], "reward": [0.1, 0.2], "success": [np.nan, 1.0]})},
        control_dt=0.02,
        motion="squat",
        robot="g1_23dof",
    )


def test_report_opens_offline_and_says_what_the_target_is(metrics: dict[str, Any], tmp_path: Path) -> None:
    write_report(_content(metrics), tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text()
    assert not re.search(r'(?:src|href)="(?!data:)', html)
    assert html.count('src="data:image/png;base64,') == 5
    assert "twin, not a robot" in html
    assert "granted" in html
    assert "linear&lt;1&gt;" in html


def test_report_is_repeatable(metrics: dict[str, Any]) -> None:
    assert render(_content(metrics)) == render(_content(metrics))


def test_terminal_table(metrics: dict[str, Any], tmp_path: Path) -> None:
    write_json(tmp_path / "evaluation" / "metrics.json", metrics)
    table = comparison_table(tmp_path)
    assert table.row_count == 3
    assert [str(c.header) for c in table.columns][:3] == ["arm", "success", "E_g_mpjpe (mm)"]
    with pytest.raises(InputFileError):
        comparison_table(tmp_path / "nowhere")
