"""What the two training stages share: the reference, an environment and a look at a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from asap_core.config import Params
from asap_core.environments.correction import ActionCorrection
from asap_core.environments.feasibility import feasibility
from asap_core.environments.motion_set import Reference, joined, motions_of
from asap_core.environments.randomisation import randomised
from asap_core.environments.reference import ReferenceMotion
from asap_core.environments.side_by_side import SideBySide
from asap_core.environments.tracking import TrackingEnv
from asap_core.errors import StageError
from asap_core.files import atomic_file
from asap_core.motions.robot import RobotMotion
from asap_core.progress import say
from asap_core.robots import get_profile
from asap_core.simulators.factory import make_simulator
from asap_core.training.contract import PolicyContract
from asap_core.training.evaluate import QuickScore, mean_score, quick_score
from asap_core.training.policy import OnnxPolicy
from asap_core.training.ppo import PpoTrainer

QUICK_STARTS = 32
_LEAST_STARTS = 4
"""For each motion, where there are many."""
_OTHER_STARTS = 104729
"""Added to the seed."""


def training_reference(params: Params, root: Path) -> ReferenceMotion:
    """The retargeted motion of the pipeline, `motions.train`, at the control rate."""
    return named_reference(params, params.motions.train, root)


def pretraining_reference(params: Params, root: Path) -> Reference:
    """The retargeted motion or motions that the policy is pre-trained on, at the control rate."""
    return joined([named_reference(params, name, root) for name in params.pretraining_motions])


def motion_file(name: str, root: Path) -> Path:
    """Where the stage before left a motion."""
    return root / "data" / "retargeted" / f"{name}.parquet"


def named_reference(params: Params, name: str, root: Path) -> ReferenceMotion:
    """The retargeted motion `name` at the control rate."""
    motion = RobotMotion.load(motion_file(name, root))
    profile, dt = get_profile(params.robot), params.simulation.physics.control_dt
    return ReferenceMotion.from_motion(motion, profile, dt, params.tracking.reference_joint_vel)


def check_reference(params: Params, reference: ReferenceMotion) -> None:
    """Say what the robot's limits and the environment's terminations make of the reference itself.

    Raises:
        StageError: every episode from the first frame would end at step 0, or most frames are beyond the robot.
    """
    profile, physics = get_profile(params.robot), params.simulation.physics
    found = feasibility(reference, profile, params.tracking.termination, physics)
    if found.verdict == "refused":
        raise StageError(f"{found.text()}; mend the motion or tracking.termination (`asap preflight` shows each joint)")
    say(found.text())


def make_env(
    params: Params,
    reference: Reference,
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


def make_groups(
    params: Params, reference: Reference, physics_dt: float, num_envs: int, seed: int
) -> TrackingEnv | SideBySide:
    """`make_env`, or for the lean learner on MuJoCo's threads such a group of robots for each thread."""
    threads = min(params.simulation.threads, num_envs)
    if params.ppo.learner != "lean" or params.simulation.backend != "mujoco" or threads == 1:
        return make_env(params, reference, physics_dt, num_envs, seed)
    simulation = params.simulation.model_copy(update={"threads": 1})
    single = params.model_copy(update={"simulation": simulation})
    sizes = [num_envs // threads + (k < num_envs % threads) for k in range(threads)]
    return SideBySide(
        [make_env(single, reference, physics_dt, size, threads * seed + k) for k, size in enumerate(sizes)]
    )


def contract_of(params: Params, reference: Reference) -> PolicyContract:
    """The contract of policies trained by these parameters."""
    return PolicyContract.of(get_profile(params.robot), reference, params.tracking)


def nominal_score(params: Params, reference: Reference, trainer: PpoTrainer) -> Callable[[], QuickScore]:
    """Scores the trainer's present policy in the nominal simulator at the nominal step, mean over the motions."""
    profile, rule, motions = get_profile(params.robot), contract_of(params, reference).rule, motions_of(reference)
    simulator = make_simulator(profile, params.simulation, max(_LEAST_STARTS, QUICK_STARTS // len(motions)))
    return lambda: mean_score(
        [quick_score(trainer.policy(), rule, motion, profile, simulator, params.seed) for motion in motions]
    )


def score_per_motion(params: Params, reference: Reference, policy: OnnxPolicy) -> dict[str, QuickScore]:
    """Motion → score of a finished policy, from starts that it was not chosen by."""
    profile, rule = get_profile(params.robot), policy.contract.rule
    simulator = make_simulator(profile, params.simulation, QUICK_STARTS)
    seed = params.seed + _OTHER_STARTS
    return {m.name: quick_score(policy, rule, m, profile, simulator, seed) for m in motions_of(reference)}


def write_table(rows: Sequence[Mapping[str, float | str]], path: Path) -> None:
    """Training curves or scores as CSV."""
    with atomic_file(path) as partial:
        pd.DataFrame(rows).to_csv(partial, index=False)
