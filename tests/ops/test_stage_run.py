"""A stage's run in MLflow: its curves are there while it runs, each point once, and a failure is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.mlflow_client import experiment_id, open_client
from tasks.tracking import StageRun


def test_curves_arrive_while_the_stage_runs_and_no_point_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr("tasks.tracking._LIVE_S", 0.0)
    run = StageRun("pretrain", {"ppo": {"gamma": 0.97}}, tmp_path)
    run.curve("pretrained", 1, {"iteration": 1.0, "reward": 0.25, "success": float("nan")})
    client = open_client(tmp_path)
    found = client.search_runs([experiment_id(client, tmp_path)])
    assert [(r.info.status, r.data.metrics) for r in found] == [("RUNNING", {"pretrained/reward": 0.25})]
    assert found[0].data.params == {"ppo.gamma": "0.97"}
    (tmp_path / "models" / "pretrained").mkdir(parents=True)
    (tmp_path / "models" / "pretrained" / "history.csv").write_text("iteration,reward\n1,0.25\n2,0.5\n")
    run.finish({"success": 1.0, "chosen": "zero"})
    points = client.get_metric_history(found[0].info.run_id, "pretrained/reward")
    assert [(point.step, point.value) for point in points] == [(1, 0.25), (2, 0.5)]
    done = client.get_run(found[0].info.run_id)
    assert (done.info.status, done.data.metrics["success"], done.data.tags["chosen"]) == ("FINISHED", 1.0, "zero")
    failed = StageRun("align", {}, tmp_path)
    failed.curve("fitted", 1, {"error": 1.0})
    failed.fail()
    assert sorted(r.info.status for r in client.search_runs([experiment_id(client, tmp_path)])) == [
        "FAILED",
        "FINISHED",
    ]
