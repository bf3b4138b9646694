"""Stage `pretrain`: a tracking policy from nothing, in the nominal simulator."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path

from asap_core.config import Params
from asap_core.environments.motion_set import motions_of
from asap_core.files import atomic_dir, content_key, sha256_file
from asap_core.training.policy import OnnxPolicy
from asap_core.training.ppo import PpoTrainer, use_threads
from asap_core.training.ranks import join_ranks
from asap_core.training.session import TrainingSession
from tasks._training import (
    check_reference,
    contract_of,
    make_groups,
    motion_file,
    nominal_score,
    pretraining_reference,
    score_per_motion,
    write_table,
)
from tasks.item_store import code_version, robot_version

CODE = (
    "asap_core/rotations.py",
    "asap_core/robots",
    "asap_core/motions",
    "asap_core/simulators",
    "asap_core/metrics",
    "asap_core/environments",
    "asap_core/training",
    "tasks/_training.py",
    "tasks/pretrain.py",
)
"""What the stage runs; its results are kept under a digest of it."""
_SECTIONS = {"seed", "robot", "simulation", "tracking", "ppo", "pretrain"}


def run(params: Params, root: Path) -> dict[str, float | int | str]:
    """Train on `pretrain.motions`, or on `motions.train` alone; writes models/pretrained.

    Resumes an interrupted run of the same inputs exactly. Of several processes, the first writes and has the figures.

    Raises:
        StageError: the environment would end every episode in the motion's first frame.
    """
    use_threads(params.simulation.threads)
    ranks = join_ranks(params.ppo.device)
    reference = pretraining_reference(params, root)
    for motion in motions_of(reference):
        check_reference(params, motion)
    code = (code_version(*CODE), robot_version(params.robot))
    files = [sha256_file(motion_file(name, root)) for name in params.pretraining_motions]
    key = content_key(*files, *code, params.model_dump(mode="json", include=_SECTIONS))
    state_dir = root / ".asap" / "state" / "pretrain" / key
    seed = params.seed + ranks.seed_offset
    env = make_groups(params, reference, params.pretrain.physics_dt, params.ppo.num_envs, seed)
    trainer = PpoTrainer(env, params.ppo, params.seed, ranks)
    session = TrainingSession(
        trainer,
        contract_of(params, reference),
        state_dir,
        params.pretrain.evaluate_every,
        nominal_score(params, reference, trainer) if ranks.first else None,
        params.pretrain.snapshot_iterations(),
    )
    session.run(params.pretrain.iterations, f"pretrain {reference.name}", "pretrained")
    if not ranks.first:
        return {}
    scores = score_per_motion(params, reference, OnnxPolicy(state_dir / "policy.onnx"))
    with atomic_dir(root / "models" / "pretrained") as out:
        shutil.copy(state_dir / "policy.onnx", out / "policy.onnx")
        shutil.copy(state_dir / "best.pt", out / "checkpoint.pt")
        shutil.copytree(state_dir / "snapshots", out / "snapshots")
        write_table(session.history, out / "history.csv")
        write_table([{"motion": name, **asdict(score)} for name, score in scores.items()], out / "motions.csv")
    assert session.best is not None
    return {
        "success": session.best.success,
        "E_g_mpjpe": session.best.E_g_mpjpe,
        **{f"success_{name}": score.success for name, score in scores.items()},
        "iterations": params.pretrain.iterations,
        "steps": int(session.history[-1]["steps"]),
    }
