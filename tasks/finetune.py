"""Stage `finetune`: the policy learns on inside the aligned simulator, and, as its control, in the nominal one."""

from __future__ import annotations

import shutil
from pathlib import Path

from asap_core.alignment.contract import load_delta
from asap_core.alignment.mixture import mixed
from asap_core.config import Params
from asap_core.environments.correction import ActionCorrection
from asap_core.environments.reference import ReferenceMotion
from asap_core.errors import ContractError, StageError
from asap_core.files import atomic_dir, content_key, read_object, sha256_file
from asap_core.robots import get_profile
from asap_core.training.checkpoint import load_checkpoint
from asap_core.training.ppo import PpoTrainer, use_threads
from asap_core.training.ranks import Ranks, join_ranks
from asap_core.training.session import History, TrainingSession
from tasks._training import contract_of, make_env, motion_file, training_reference, write_table
from tasks.item_store import code_version, robot_version

CODE = (
    "asap_core/rotations.py",
    "asap_core/robots",
    "asap_core/motions",
    "asap_core/simulators",
    "asap_core/metrics",
    "asap_core/environments",
    "asap_core/training",
    "asap_core/alignment",
    "tasks/_training.py",
    "tasks/finetune.py",
)
"""What the stage runs; its results are kept under a digest of it."""
ARMS = ("asap", "finetune_only")
"""With the frozen delta inside the simulator, and the same budget without it."""
_SECTIONS = {"seed", "robot", "simulation", "tracking", "ppo", "finetune"}


def run(params: Params, root: Path) -> dict[str, float | int | str]:
    """Fine-tune every arm with every seed; writes models/finetuned/<arm>/seed_<k>.

    Of several processes, the first writes and has the figures.

    Raises:
        StageError: the delta model failed its acceptance and `finetune.allow_rejected_delta` is not set.
    """
    use_threads(params.simulation.threads)
    if not params.finetune.allow_rejected_delta:
        _check_accepted(root / "models" / "delta" / "report.json")
    reference = training_reference(params, root)
    ranks = join_ranks(params.ppo.device)
    runs = [(arm, seed) for arm in ARMS for seed in range(params.finetune.seeds)]
    trained = {run: _finetune(params, root, reference, *run, ranks) for run in runs}
    if not ranks.first:
        return {}
    figures: dict[str, float | int | str] = {"iterations": params.finetune.iterations}
    with atomic_dir(root / "models" / "finetuned") as out:
        for (arm, seed), (history, state_dir) in trained.items():
            place = out / arm / f"seed_{seed}"
            place.mkdir(parents=True)
            shutil.copy(state_dir / "policy.onnx", place / "policy.onnx")
            shutil.copy(state_dir / "checkpoint.pt", place / "checkpoint.pt")
            write_table(history, place / "history.csv")
            figures[f"{arm}_seed_{seed}_reward"] = history[-1]["reward"]
    return figures


def _check_accepted(path: Path) -> None:
    acceptance = read_object(path, ("acceptance",))["acceptance"]
    if acceptance["verdict"] != "accepted":
        reasons = "; ".join(f"{c['name']}: {c['reason']}" for c in acceptance["checks"] if not c["passed"])
        raise StageError(
            f"{path}: the delta model was rejected: {reasons}. Collect more, fit again, or set "
            "finetune.allow_rejected_delta: true"
        )


def _finetune(
    params: Params, root: Path, reference: ReferenceMotion, arm: str, seed: int, ranks: Ranks
) -> tuple[History, Path]:
    start = root / "models" / "pretrained" / "checkpoint.pt"
    delta = root / "models" / "delta" / "delta.onnx"
    correction: ActionCorrection | None = None
    files = [sha256_file(start), sha256_file(motion_file(params.motions.train, root)), code_version(*CODE)]
    inputs = [*files, robot_version(params.robot), params.model_dump(mode="json", include=_SECTIONS), arm, seed]
    if arm == "asap":
        correction = load_delta(delta, get_profile(params.robot), params.simulation.physics.control_dt)
        inputs.append(sha256_file(delta))
    state_dir = root / ".asap" / "state" / "finetune" / content_key(*inputs)
    run_seed = params.seed + 1000 * (seed + 1)
    trainer = continued_trainer(params, reference, start, run_seed, correction, ranks)
    session = TrainingSession(trainer, contract_of(params, reference), state_dir, params.finetune.checkpoint_every)
    session.run(params.finetune.iterations, f"finetune {arm} seed {seed}", f"finetuned/{arm}/seed_{seed}")
    return session.history, state_dir


def continued_trainer(
    params: Params,
    reference: ReferenceMotion,
    start: Path,
    seed: int,
    correction: ActionCorrection | None,
    ranks: Ranks,
) -> PpoTrainer:
    """A trainer that goes on where `start` ended: its networks, its curricula, and for good its distance limit."""
    pretrained = load_checkpoint(start)
    ppo = params.ppo.model_copy(update={"learning_rate": params.finetune.learning_rate})
    try:
        curricula = pretrained["processes"][0]["environment"]
        fixed = at_distance(params, float(curricula["curriculum"][0]))
        own_seed = seed + ranks.seed_offset
        if correction is not None:
            joints = get_profile(params.robot).num_joints
            correction = mixed(correction, params.finetune, ppo.num_envs, joints, own_seed)
        env = make_env(fixed, reference, params.finetune.physics_dt, ppo.num_envs, own_seed, correction)
        trainer = PpoTrainer(env, ppo, seed, ranks)
        trainer.load_networks(pretrained["learner"], params.finetune.init_std)
        env.load_curricula(curricula)
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise ContractError(
            f"{start}: does not fit sections tracking and ppo: {reason}; `dvc repro pretrain`"
        ) from None
    return trainer


def at_distance(params: Params, distance: float) -> Params:
    """The parameters with the distance limit of the terminations, m, fixed."""
    tracking = params.tracking.model_copy(update={"termination": params.tracking.termination.fixed_at(distance)})
    return params.model_copy(update={"tracking": tracking})
