"""Stage `align`: a delta action model from the rollouts. It reads rollouts and nominal physics, never the twin's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from asap_core.alignment.contract import DeltaContract, export_delta
from asap_core.alignment.corrected import Rival
from asap_core.alignment.delta_dynamics import DeltaDynamicsRival, DeltaDynamicsSettings
from asap_core.alignment.fit import DeltaFit, DeltaFitter
from asap_core.alignment.physics_fit import SysIdSettings
from asap_core.alignment.rank import Rank, rank_delta
from asap_core.alignment.replay import HORIZONS_S, horizon_key
from asap_core.alignment.sysid import SysIdRival
from asap_core.config import Params
from asap_core.errors import StageError
from asap_core.files import atomic_dir, content_key, sha256_tree, write_json, write_tensors
from asap_core.robots import get_profile
from asap_core.rollouts import SPLITS, Rollout, Split, check_disjoint, kind_folder, load_split, split_folder
from tasks.item_store import code_version, robot_version

CODE = (
    "asap_core/rotations.py",
    "asap_core/robots",
    "asap_core/simulators",
    "asap_core/metrics",
    "asap_core/environments",
    "asap_core/rollouts",
    "asap_core/alignment",
    "tasks/align.py",
)
"""What the stage runs; its results are kept under a digest of it."""
_SECTIONS = {"seed", "robot", "simulation", "rollouts", "align"}


def run(params: Params, root: Path) -> dict[str, float | int | str]:
    """Fit on data/rollouts; writes models/delta. Resumes an interrupted fit of the same inputs.

    Raises:
        InputFileError: rollouts missing, damaged, of another robot, or splits that overlap.
        StageError: the held-out error is above `align.max_ratio` of the uncorrected one.
    """
    torch.set_num_threads(params.simulation.threads)
    profile = get_profile(params.robot)
    kind = params.rollouts.kind
    folder = kind_folder(root, kind)
    dt = params.simulation.physics.control_dt
    rollouts: dict[Split, Rollout] = {split: load_split(folder, split, profile, dt, kind) for split in SPLITS}
    check_disjoint(rollouts, folder)
    key = content_key(
        [sha256_tree(split_folder(folder, split)) for split in SPLITS],
        code_version(*CODE),
        robot_version(params.robot),
        params.model_dump(mode="json", include=_SECTIONS),
    )
    cache = root / ".asap" / "state" / "align" / key
    fit = DeltaFitter(profile, params.simulation, rollouts, params.align, params.seed, cache).run()
    if fit.ratio > params.align.max_ratio:
        raise StageError(
            f"align: held-out 1.0 s error is {fit.ratio:.2f} of the uncorrected one, expected at most "
            f"align.max_ratio = {params.align.max_ratio:g}"
        )
    rank = _rank(params, fit, rollouts, cache / "rank")
    contract = DeltaContract.of(profile, dt, params.align.delta_limit, fit.chosen.name)
    with atomic_dir(root / "models" / "delta") as out:
        export_delta(fit.chosen.model, contract, out / "delta.onnx")
        write_tensors(out / "delta.pt", {"state": fit.chosen.model.state_dict(), "contract": contract.to_json()})
        write_json(out / "report.json", _report(fit, rollouts) | {"rank": dict(rank.errors_mm)})
    return _figures(fit) | {"rank": rank.text()}


def _rank(params: Params, fit: DeltaFit, rollouts: dict[Split, Rollout], cache: Path) -> Rank:
    profile, simulation = get_profile(params.robot), params.simulation
    known: dict[str, Rival] = {
        "sysid": SysIdRival(profile, simulation, SysIdSettings()),
        "delta_dynamics": DeltaDynamicsRival(profile, simulation, DeltaDynamicsSettings()),
    }
    rivals = [known[name] for name in params.align.rank_against]
    return rank_delta(fit.heldout[HORIZONS_S[-1]], rivals, rollouts, profile, simulation, params.seed, cache)


def _report(fit: DeltaFit, rollouts: dict[Split, Rollout]) -> dict[str, Any]:
    joints = rollouts["fit"].joint_names
    return {
        "chosen": fit.chosen.name,
        "source": rollouts["fit"].source,
        "transitions": {split: len(rollouts[split].transitions()) for split in SPLITS},
        "validation_mm": {c.name: _by_horizon(c.validation) for c in fit.candidates},
        "heldout_mm": {"zero": _by_horizon(fit.heldout_zero), "delta": _by_horizon(fit.heldout)},
        "ratio": fit.ratio,
        "acceptance": fit.acceptance.as_dict(),
        "mean_abs_delta_rad": _by_joint(fit.mean_abs_delta, joints),
        "uncertainty_rad": None if fit.uncertainty is None else _by_joint(fit.uncertainty, joints),
    }


def _by_joint(values: NDArray[np.floating], joints: tuple[str, ...]) -> dict[str, float]:
    return dict(zip(joints, values.tolist(), strict=True))


def _by_horizon(errors: dict[float, float]) -> dict[str, float]:
    return {horizon_key(h): value for h, value in errors.items()}


def _figures(fit: DeltaFit) -> dict[str, float | int | str]:
    last = HORIZONS_S[-1]
    return {
        "chosen": fit.chosen.name,
        f"{horizon_key(last)}_zero": fit.heldout_zero[last],
        f"{horizon_key(last)}_delta": fit.heldout[last],
        f"{horizon_key(last)}_ratio": fit.ratio,
        "acceptance": fit.acceptance.verdict,
    }
