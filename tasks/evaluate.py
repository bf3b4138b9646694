"""Stage `evaluate`: open loop with and without delta, closed loop of all policies, the gate, the report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from asap_core.alignment.contract import load_delta
from asap_core.alignment.replay import HORIZONS_S, horizon_key
from asap_core.config import Params
from asap_core.environments.reference import ReferenceMotion
from asap_core.errors import InputFileError, StageError
from asap_core.evaluation.closed_loop import ClosedLoopResult, Contestant, closed_loop
from asap_core.evaluation.comparison import arm_figures, best_seed
from asap_core.evaluation.gate import gate
from asap_core.evaluation.open_loop import OpenLoopResult, open_loop
from asap_core.files import atomic_dir, atomic_file, read_object, write_json
from asap_core.metrics import METRIC_NAMES
from asap_core.progress import track
from asap_core.reporting.report import ReportContent, write_report
from asap_core.robots import get_profile
from asap_core.rollouts import kind_folder, load_split
from asap_core.simulators.factory import make_simulator
from asap_core.training.policy import OnnxPolicy
from tasks._training import training_reference

TARGET_LABEL = "twin, not a robot"
FINETUNED_ARMS = ("finetune_only", "asap")
_REPLAY_ENVS = 64
_START_SEED = 7919
"""Added to the seed, so that the starts are none that rollouts were collected from."""


@dataclass(frozen=True)
class _Results:
    open: OpenLoopResult
    closed: ClosedLoopResult


def run(params: Params, root: Path) -> dict[str, float | int | str]:
    """Evaluate everything; writes evaluation/.

    Raises:
        InputFileError: a model or the held-out rollouts are missing or damaged.
        ContractError: a model was made for another robot.
    """
    results = _Results(_open_loop(params, root), _closed_loop(params, root))
    metrics = build_metrics(results.open, results.closed, params)
    out = root / "evaluation"
    _write_csv(out / "open_loop.csv", _open_loop_table(results.open))
    _write_csv(out / "closed_loop.csv", _closed_loop_table(results.closed))
    dt = params.simulation.physics.control_dt
    with atomic_dir(out / "plots") as plots:
        _write_csv(plots / "gap.csv", _gap_table(results.closed, dt))
        _write_csv(plots / "open_loop_growth.csv", _growth_table(results.open, dt))
    content = ReportContent(
        metrics=metrics,
        delta=_delta_report(root / "models" / "delta" / "report.json"),
        gap=results.closed.gap,
        growth=results.open.growth,
        histories=_histories(root),
        control_dt=dt,
        motion=params.motions.train,
        robot=params.robot,
    )
    write_report(content, out / "report.html")
    write_json(out / "metrics.json", metrics)
    return _figures(metrics)


def _open_loop(params: Params, root: Path) -> OpenLoopResult:
    profile = get_profile(params.robot)
    rollout = load_split(
        kind_folder(root, params.rollouts.kind),
        "heldout",
        profile,
        params.simulation.physics.control_dt,
        params.rollouts.kind,
    )
    simulator = make_simulator(profile, params.simulation, _REPLAY_ENVS)
    delta = load_delta(root / "models" / "delta" / "delta.onnx", profile, simulator.control_dt)
    return open_loop(rollout, profile, simulator, {"zero": None, "delta": delta})


def _closed_loop(params: Params, root: Path) -> ClosedLoopResult:
    profile, settings = get_profile(params.robot), params.evaluate
    worlds = {
        "target": make_simulator(profile, params.target, settings.starts),
        "nominal": make_simulator(profile, params.simulation, settings.starts),
    }
    reference = training_reference(params, root)
    contestants = _contestants(params, root, reference)
    with track("evaluate", len(contestants) * len(worlds)) as tracker:
        return closed_loop(
            contestants,
            worlds,
            reference,
            profile,
            settings,
            params.seed + _START_SEED,
            lambda note: tracker.advance(note=note),
        )


def _contestants(params: Params, root: Path, reference: ReferenceMotion) -> list[Contestant]:
    files = [("vanilla", 0, root / "models" / "pretrained" / "policy.onnx")]
    for arm in FINETUNED_ARMS:
        folder = root / "models" / "finetuned" / arm
        seeds = sorted(int(p.name.removeprefix("seed_")) for p in folder.glob("seed_[0-9]*"))
        if not seeds:
            raise StageError(f"{folder}: found no seed_<k> folders; run `asap run finetune`")
        files += [(arm, seed, folder / f"seed_{seed}" / "policy.onnx") for seed in seeds]
    runs = {arm: [seed for name, seed, _ in files if name == arm] for arm in FINETUNED_ARMS}
    if len({*map(tuple, runs.values())}) > 1:
        found = ", ".join(f"{arm} {seeds}" for arm, seeds in runs.items())
        raise StageError(f"{root / 'models' / 'finetuned'}: the arms' seeds differ: {found}; run `asap run finetune`")
    contestants = []
    for arm, seed, path in files:
        policy = OnnxPolicy(path)
        policy.check(get_profile(params.robot), reference)
        contestants.append(Contestant(arm, seed, policy, policy.contract.rule))
    return contestants


def build_metrics(open_result: OpenLoopResult, closed: ClosedLoopResult, params: Params) -> dict[str, Any]:
    """The content of metrics.json: means with intervals, the ratio that the delta is judged by, and the gate."""
    settings = params.evaluate
    tables = {
        world: {
            arm: {name: interval.as_dict() for name, interval in values.items()}
            for arm, values in arm_figures(closed, world, settings.confidence).items()
        }
        for world in ("target", "nominal")
    }
    horizons: dict[str, dict[str, Any]] = {f"{float(h)}s": {} for h in HORIZONS_S}
    for row in open_result.rows:
        horizons[f"{float(row.horizon_s)}s"][row.model] = {k: v.as_dict() for k, v in row.figures.items()}
    return {
        "target": TARGET_LABEL,
        "target_engine": params.target.backend,
        "starts": settings.starts,
        "closed_loop": tables["target"],
        "nominal": tables["nominal"],
        "open_loop": horizons,
        **{f"{horizon_key(h)}_ratio": open_result.ratio(h) for h in HORIZONS_S},
        **{f"best_seed_{arm}": best_seed(closed, arm) for arm in FINETUNED_ARMS},
        "gate": gate(closed, settings.gate_margin, settings.confidence).as_dict(),
    }


def _figures(metrics: dict[str, Any]) -> dict[str, float | int | str]:
    figures: dict[str, float | int | str] = {}
    for arm, values in metrics["closed_loop"].items():
        figures |= {f"{arm}_{name}": values[name]["mean"] for name in METRIC_NAMES}
    figures |= {f"nominal_{arm}_success": v["success"]["mean"] for arm, v in metrics["nominal"].items()}
    figures |= {key: metrics[key] for key in metrics if key.startswith(("open_loop_", "best_seed_"))}
    return figures | {"gate": metrics["gate"]["verdict"]}


def _open_loop_table(result: OpenLoopResult) -> pd.DataFrame:
    rows = []
    for row in result.rows:
        record: dict[str, object] = {"model": row.model, "horizon_s": row.horizon_s, "segments": row.segments}
        for name, interval in row.figures.items():
            record |= {name: interval.mean, f"{name}_low": interval.low, f"{name}_high": interval.high}
        rows.append(record)
    return pd.DataFrame(rows)


def _closed_loop_table(result: ClosedLoopResult) -> pd.DataFrame:
    return pd.DataFrame(
        {"world": r.world, "arm": r.arm, "seed": r.seed, "start": r.start, **r.errors.as_dict()} for r in result.rows
    )


def _gap_table(result: ClosedLoopResult, control_dt: float) -> pd.DataFrame:
    frames = [
        pd.DataFrame({"world": w, "arm": a, "time_s": np.arange(len(v)) * control_dt, "distance_mm": v})
        for (w, a), v in result.gap.items()
    ]
    return pd.concat(frames, ignore_index=True)


def _growth_table(result: OpenLoopResult, control_dt: float) -> pd.DataFrame:
    frames = [
        pd.DataFrame({"model": m, "time_s": (np.arange(len(v)) + 1) * control_dt, "distance_mm": v})
        for m, v in result.growth.items()
    ]
    return pd.concat(frames, ignore_index=True)


def _histories(root: Path) -> dict[str, pd.DataFrame]:
    files = {"vanilla": root / "models" / "pretrained" / "history.csv"}
    for arm in FINETUNED_ARMS:
        for place in sorted((root / "models" / "finetuned" / arm).glob("seed_*")):
            files[f"{arm} {place.name.replace('_', ' ')}"] = place / "history.csv"
    return {name: _history(path) for name, path in files.items() if path.exists()}


def _delta_report(path: Path) -> dict[str, Any]:
    report = read_object(path, ("validation_mm", "mean_abs_delta_rad"))
    if not isinstance(report.get("chosen"), str) or report["chosen"] not in report["validation_mm"]:
        raise InputFileError(path, "field chosen: expected the name of a candidate in validation_mm")
    return report


def _history(path: Path) -> pd.DataFrame:
    try:
        table = pd.read_csv(path)
    except (ValueError, OSError) as error:
        raise InputFileError(path, f"not a table: {error}") from None
    missing = [name for name in ("iteration", "reward") if name not in table]
    if missing:
        raise InputFileError(path, f"missing columns {', '.join(missing)}; found {', '.join(map(str, table))}")
    return table


def _write_csv(path: Path, table: pd.DataFrame) -> None:
    with atomic_file(path) as partial:
        table.to_csv(partial, index=False)
