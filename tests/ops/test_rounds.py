"""Rounds: each begins with the policy of the one before, finished ones are kept, and what each bought is right."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from asap_core.config import Params
from asap_core.errors import ConfigError, StageError
from asap_core.files import write_json
from asap_core.metrics import METRIC_NAMES
from tasks import rounds
from tasks.rounds import ROUND, round_figures, run_rounds

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a pretrained policy; stages that write what they would, and are noted in `ran.txt`."""
    shutil.copy(ROOT / "params.yaml", tmp_path / "params.yaml")
    (tmp_path / "data" / "retargeted").mkdir(parents=True)
    (tmp_path / "data" / "retargeted" / "squat.parquet").write_text("a motion")
    pretrained = tmp_path / "models" / "pretrained"
    (pretrained / "snapshots").mkdir(parents=True)
    for name in ("policy.onnx", "checkpoint.pt", "snapshots/policy_000080.onnx", "snapshots/policy_000160.onnx"):
        (pretrained / name).write_text(f"pretrained {name}")

    def run(stage: str, params: Params, place: Path) -> dict[str, Any]:
        with open(tmp_path / "ran.txt", "a") as log:
            log.write(f"{place.name} {stage}\n")
        if stage == "align":
            write_json(
                place / "models" / "delta" / "report.json", {"chosen": "d", "acceptance": {"verdict": "accepted"}}
            )
        if stage == "finetune":
            for seed in range(2):
                folder = place / "models" / "finetuned" / "asap" / f"seed_{seed}"
                folder.mkdir(parents=True)
                for name in ("policy.onnx", "checkpoint.pt"):
                    (folder / name).write_text(f"{place.name} seed {seed} {name}")
        if stage == "evaluate":
            write_evaluation(place)
        return {}

    monkeypatch.setattr(rounds, "run_unlogged", run)
    return tmp_path


def write_evaluation(place: Path) -> None:
    """Two seeds, two starts: vanilla 30 and 32; fine-tuned alone 28 + seed; ASAP 24 + 2 · seed, all plus 2 · start."""
    means = {"vanilla": 31.0, "finetune_only": 29.5, "asap": 26.0}
    closed = {arm: {m: {"mean": 1.0} for m in METRIC_NAMES} | {"E_g_mpjpe": {"mean": v}} for arm, v in means.items()}
    open_loop = {"1.0s": {"zero": {"E_g_mpjpe": {"mean": 40.0}}, "delta": {"E_g_mpjpe": {"mean": 6.0}}}}
    metrics = {"closed_loop": closed, "open_loop": open_loop, "gate": {"verdict": "refused"}}
    write_json(place / "evaluation" / "metrics.json", metrics)
    errors = {("vanilla", 0): 30.0, ("finetune_only", 0): 28.0, ("finetune_only", 1): 29.0}
    errors |= {("asap", 0): 24.0, ("asap", 1): 26.0}
    table = [
        {"world": world, "arm": arm, "seed": seed, "start": start, "E_g_mpjpe": value + 2.0 * start}
        for world in ("target", "nominal")
        for (arm, seed), value in errors.items()
        for start in range(2)
    ]
    pd.DataFrame(table).to_csv(place / "evaluation" / "closed_loop.csv", index=False)


def test_each_round_begins_with_the_policy_of_the_one_before(project: Path) -> None:
    rows = run_rounds(project, 2)
    assert [row["round"] for row in rows] == [1, 2]
    first, second = (project / ".asap" / "rounds" / f"round_{k}" / "models" / "pretrained" for k in (1, 2))
    assert (first / "checkpoint.pt").read_text() == "pretrained checkpoint.pt"
    assert (second / "checkpoint.pt").read_text() == "round_1 seed 0 checkpoint.pt"
    newest = sorted(p.name for p in (second / "snapshots").iterdir())
    assert newest == [f"policy_{k:06d}.onnx" for k in (80, 160, 161, 162)]
    assert (second / "snapshots" / "policy_000162.onnx").read_text() == "round_1 seed 1 policy.onnx"
    assert (project / "models" / "pretrained" / "policy.onnx").read_text() == "pretrained policy.onnx"
    table = pd.read_csv(project / "evaluation" / "rounds.csv")
    assert list(table["round"]) == [1, 2]
    assert list(table["asap_E_g_mpjpe"]) == [26.0, 26.0]


def test_what_a_round_bought_is_paired_by_start(project: Path) -> None:
    (row,) = run_rounds(project, 1)
    assert row["bought_mm"] == pytest.approx(-5.0)
    half = 12.706205 * 2**0.5 / 2**0.5
    assert (row["bought_low"], row["bought_high"]) == pytest.approx((-5.0 - half, -5.0 + half), rel=1e-5)
    assert row["beyond_control_mm"] == pytest.approx(-3.5)
    assert (row["open_loop_1.0s_zero_mm"], row["open_loop_1.0s_delta_mm"]) == (40.0, 6.0)
    assert row == {"round": 1, **round_figures(project / ".asap" / "rounds" / "round_1")}


def test_finished_rounds_are_kept_and_others_run_anew(project: Path) -> None:
    run_rounds(project, 1)
    run_rounds(project, 2)
    ran = (project / "ran.txt").read_text().splitlines()
    assert ran == [f"round_{k} {stage}" for k in (1, 2) for stage in ROUND]
    (project / "models" / "pretrained" / "checkpoint.pt").write_text("another")
    for k in (1, 2):
        shutil.rmtree(project / ".asap" / "rounds" / f"round_{k}" / "models" / "finetuned")
    run_rounds(project, 1)
    assert (project / "ran.txt").read_text().splitlines()[len(ran) :] == [f"round_1 {stage}" for stage in ROUND]


def test_nothing_to_begin_with_is_said(tmp_path: Path) -> None:
    shutil.copy(ROOT / "params.yaml", tmp_path / "params.yaml")
    with pytest.raises(StageError, match="dvc repro pretrain"):
        run_rounds(tmp_path, 1)
    with pytest.raises(ConfigError, match="found 0"):
        run_rounds(tmp_path, 0)
