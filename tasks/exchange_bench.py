"""A policy handed from engine to engine and back: what it is worth in both after each leg."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path

from asap_core.config import Params
from asap_core.robots import get_profile
from asap_core.simulators.factory import make_simulator
from asap_core.simulators.settings import Backend
from asap_core.training.evaluate import quick_score
from asap_core.training.policy import OnnxPolicy
from asap_core.training.ppo import use_threads
from asap_core.training.ranks import Ranks
from asap_core.training.session import TrainingSession
from tasks._training import contract_of, training_reference
from tasks.finetune import continued_trainer
from tasks.stages import Figures, read_params

ENGINES: tuple[Backend, Backend] = ("mujoco", "isaaclab")
_LEGS: tuple[Backend, ...] = ("isaaclab", "mujoco")
_ITERATIONS = 4
_NUM_ENVS = 16
_STARTS = 8


def bench_exchange(root: Path) -> Figures:
    """Fine-tune models/pretrained in Isaac Lab, and what comes of it in MuJoCo, for a few iterations of 16 robots each.

    Figures: after each leg and in each engine, success rate, share of the clip covered and E_g_mpjpe in mm from eight
    perturbed starts. Runs where Isaac Lab is installed.

    Args:
        root: with params.yaml, the retargeted motion `motions.train` and models/pretrained, as `pretrain` leaves them.

    Raises:
        InputFileError: no models/pretrained.
    """
    params = read_params(root)
    use_threads(params.simulation.threads)
    figures = _scores("as it was", params, root, OnnxPolicy(root / "models" / "pretrained" / "policy.onnx"))
    checkpoint = root / "models" / "pretrained" / "checkpoint.pt"
    with tempfile.TemporaryDirectory(prefix="asap-exchange-") as folder:
        for number, engine in enumerate(_LEGS):
            place = Path(folder) / str(number)
            _train_on(_in_engine(params, engine), root, checkpoint, place)
            checkpoint = place / "checkpoint.pt"
            figures |= _scores(f"{number + 1}: then {engine}", params, root, OnnxPolicy(place / "policy.onnx"))
    return figures


def _in_engine(params: Params, engine: Backend) -> Params:
    simulation = params.simulation.model_copy(update={"backend": engine})
    return params.model_copy(
        update={"simulation": simulation, "ppo": params.ppo.model_copy(update={"num_envs": _NUM_ENVS})}
    )


def _train_on(params: Params, root: Path, checkpoint: Path, place: Path) -> None:
    reference = training_reference(params, root)
    trainer = continued_trainer(params, reference, checkpoint, params.seed, None, Ranks())
    session = TrainingSession(trainer, contract_of(params, reference), place, _ITERATIONS)
    session.run(_ITERATIONS, f"exchange: {params.simulation.backend}")


def _scores(leg: str, params: Params, root: Path, policy: OnnxPolicy) -> Figures:
    profile, reference = get_profile(params.robot), training_reference(params, root)
    policy.check(profile, reference)
    figures: Figures = {}
    for engine in ENGINES:
        simulator = make_simulator(profile, _in_engine(params, engine).simulation, _STARTS)
        score = quick_score(policy, policy.contract.rule, reference, profile, simulator, params.seed)
        figures |= {f"{leg}/{name} {engine}": value for name, value in asdict(score).items()}
    return figures
