"""What the two training stages share: the reference, an environment and a look at a policy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from asap_core.config import Params
from asap_core.environments.correction import ActionCorrection
from asap_core.environments.preflight import preflight
from asap_core.environments.randomisation import randomised
from asap_core.environments.reference import ReferenceMotion
from asap_core.environments.tracking import TrackingEnv
from asap_core.errors import StageError
from asap_core.files import atomic_file
from asap_core.motions.robot import RobotMotion
from asap_core.progress import console
from asap_core.robots import get_profile
from asap_core.simulators.factory import make_simulator
from asap_core.training.contract import PolicyContract
from asap_core.training.evaluate import QuickScore, quick_score
from asap_core.training.ppo import PpoTrainer
from asap_core.training.session import History

QUICK_STARTS = 32


def training_reference(params: Params, root: Path) -> ReferenceMotion:
    """The retargeted motion that is trained, at the control rate."""
    motion = RobotMotion.load(root / "data" / "retargeted" / f"{params.motions.train}.parquet")
    profile, dt = get_profile(params.robot), params.simulation.physics.control_dt
    return ReferenceMotion.from_motion(motion, profile, dt, params.tracking.reference_joint_vel)


def check_reference(params: Params, reference: ReferenceMotion) -> None:
    """Evaluate the environment's terminations on the reference itself; frames other than the first only warn.

    Raises:
        StageError: every episode from the first frame would end at step 0.
    """
    found = preflight(reference, get_profile(params.robot), params.tracking.termination)
    if found.ends[0]:
        raise StageError(f"motion {reference.name!r}: {found.text()}; mend the motion or tracking.termination")
    if not found.accepted:
        console.print(f"motion {reference.name!r}: {found.text()}", highlight=False, soft_wrap=True)


def make_env(
    params: Params,
    reference: ReferenceMotion,
    physics_dt: float,
    num_envs: int,
    seed: int,
    correction: ActionCorrection | None = None,
) -> TrackingEnv:
    """A tracking environment at `physics_dt`, in the nominal simulator or, where asked for, randomised ones."""
    profile = get_profile(params.robot)
    nominal = params.simulation.physics.at_step(physics_dt)
    physics = randomised(nominal, params.tracking.randomisation, profile, num_envs, seed)
    simulator = make_simulator(profile, params.simulation, num_envs, physics)
    return TrackingEnv(simulator, profile, reference, params.tracking, seed, correction)


def contract_of(params: Params, reference: ReferenceMotion) -> PolicyContract:
    """The contract of policies trained by these parameters."""
    return PolicyContract.of(get_profile(params.robot), reference, params.tracking)


def nominal_score(params: Params, reference: ReferenceMotion, trainer: PpoTrainer) -> Callable[[], QuickScore]:
    """Scores the trainer's present policy in the nominal simulator at the nominal step."""
    profile, rule = get_profile(params.robot), contract_of(params, reference).rule
    simulator = make_simulator(profile, params.simulation, QUICK_STARTS)
    return lambda: quick_score(trainer.policy(), rule, reference, profile, simulator, params.seed)


def write_history(history: History, path: Path) -> None:
    """Training curves as CSV."""
    with atomic_file(path) as partial:
        pd.DataFrame(history).to_csv(partial, index=False)
