"""Rounds: collect → align → finetune → evaluate, again and again, each from the policy that the round before made.

Each round lies in `.asap/rounds/round_<k>`, laid out as a project, so that its stages are those of the pipeline and an
interrupted one goes on. What each round bought stands in `evaluation/rounds.csv`.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pandas as pd

from asap_core.config import Params
from asap_core.errors import ConfigError, StageError
from asap_core.files import atomic_dir, atomic_file, content_key, read_object, sha256_tree, write_json
from asap_core.metrics import METRIC_NAMES, paired_difference
from asap_core.progress import say
from tasks.item_store import code_version
from tasks.stages import read_params, run_unlogged

ROUND = ("collect", "align", "finetune", "evaluate")
_CODE = ("asap_core", "tasks")
Row = dict[str, Any]


def run_rounds(root: Path, count: int) -> list[Row]:
    """Run `count` rounds from models/pretrained on; those that were finished before are not run again.

    Raises:
        ConfigError: `count` is below 1.
        StageError: `dvc repro pretrain` has not run, or a stage failed; a delta that failed its acceptance ends the
            rounds unless `finetune.allow_rejected_delta` is set.
    """
    if count < 1:
        raise ConfigError(f"rounds: found {count}, expected a number of at least 1")
    params = read_params(root)
    rows: list[Row] = []
    before = root
    for number in range(1, count + 1):
        place = root / ".asap" / "rounds" / f"round_{number}"
        _run_round(params, number, before, place)
        rows.append({"round": number, **round_figures(place)})
        with atomic_file(root / "evaluation" / "rounds.csv") as partial:
            pd.DataFrame(rows).to_csv(partial, index=False)
        before = place
    return rows


def _run_round(params: Params, number: int, before: Path, place: Path) -> None:
    """Bring the round in `place` up to date: all of it, or nothing if it was finished with the same start."""
    start = before / "models"
    if not (start / "pretrained" / "checkpoint.pt").exists():
        raise StageError(f"{start / 'pretrained'}: missing; `dvc repro pretrain` writes it")
    inputs = [start / "pretrained", *([start / "finetuned"] if number > 1 else []), before / "data" / "retargeted"]
    key = content_key(params.model_dump(mode="json"), [sha256_tree(p) for p in inputs], code_version(*_CODE))
    finished = place / "round.json"
    if finished.exists() and read_object(finished).get("key") == key:
        say(f"round {number}: kept")
        return
    shutil.copytree(before / "data" / "retargeted", place / "data" / "retargeted", dirs_exist_ok=True)
    with atomic_dir(place / "models" / "pretrained") as out:
        _start_of(number, start, out)
    for stage in ROUND:
        say(f"round {number}: {stage}")
        run_unlogged(stage, params, place)
    write_json(finished, {"key": key})


def _start_of(number: int, models: Path, out: Path) -> None:
    """What a round begins with: the pretrained policy, then the first fine-tuned one of the round before.

    Rollouts are collected from the fine-tuned policies of all seeds, as the newest snapshots, and the older ones.
    """
    snapshots = out / "snapshots"
    shutil.copytree(models / "pretrained" / "snapshots", snapshots)
    source = models / "pretrained"
    if number > 1:
        source = models / "finetuned" / "asap" / "seed_0"
        last = max(int(path.stem.removeprefix("policy_")) for path in snapshots.glob("policy_[0-9]*.onnx"))
        for k, path in enumerate(sorted((models / "finetuned" / "asap").glob("seed_[0-9]*"))):
            shutil.copy(path / "policy.onnx", snapshots / f"policy_{last + 1 + k:06d}.onnx")
    for name in ("policy.onnx", "checkpoint.pt"):
        shutil.copy(source / name, out / name)


def round_figures(place: Path) -> Row:
    """What the round in `place` reached on the target, and what it bought: ASAP minus the policy it began with.

    Differences are paired by start, their 95 % intervals over seeds.
    """
    metrics = read_object(place / "evaluation" / "metrics.json", ("closed_loop", "open_loop", "gate"))
    report = read_object(place / "models" / "delta" / "report.json", ("acceptance",))
    row: Row = {"delta": report["chosen"], "acceptance": report["acceptance"]["verdict"]}
    row |= {f"open_loop_1.0s_{m}_mm": v["E_g_mpjpe"]["mean"] for m, v in metrics["open_loop"]["1.0s"].items()}
    for arm, name in (("vanilla", "start"), ("finetune_only", "finetune_only"), ("asap", "asap")):
        row |= {f"{name}_{metric}": metrics["closed_loop"][arm][metric]["mean"] for metric in METRIC_NAMES}
    runs = pd.read_csv(place / "evaluation" / "closed_loop.csv")
    runs = runs[runs["world"] == "target"]
    for other in ("vanilla", "finetune_only"):
        on = ["start"] if other == "vanilla" else ["seed", "start"]
        both = runs[runs["arm"] == "asap"].merge(runs[runs["arm"] == other], on=on, suffixes=("", "_other"))
        gap = paired_difference(both["E_g_mpjpe"], both["E_g_mpjpe_other"], both["seed"].tolist())
        name = "bought" if other == "vanilla" else "beyond_control"
        row |= {f"{name}_mm": gap.mean, f"{name}_low": gap.low, f"{name}_high": gap.high}
    return row | {"gate": metrics["gate"]["verdict"]}
