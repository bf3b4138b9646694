"""Rollouts of the published policies on a target, kept by content."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from asap_core.environments.playback import perturbed_starts, play
from asap_core.evaluation.published import load_published, policy_file
from asap_core.files import content_key, sha256_file
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout
from asap_core.rollouts.recorder import PolicyIdentity, to_rollout
from asap_core.simulators.factory import make_simulator
from asap_core.simulators.settings import SimulationSettings

EPISODES = 4
"""Per motion; they differ in the noise of their start."""
START_SEED = 0


def collect_motion(
    shared: Path,
    name: str,
    target: PhysicsSettings,
    profile: RobotProfile,
    settings: SimulationSettings,
    folder: Path,
    code: str,
) -> Rollout:
    """`EPISODES` runs of the published policy `name` on `target`, from `folder` where an earlier run kept them.

    Args:
        settings: whose engine simulates the target.
        code: digest of the code that rollouts depend on.
    """
    sha256 = sha256_file(policy_file(shared, name))
    physics = target.model_dump(mode="json")
    path = folder / f"{content_key(name, sha256, physics, settings.backend, EPISODES, START_SEED, code)}.parquet"
    if path.exists():
        return Rollout.load(path, profile)
    policy, reference = load_published(shared, name, profile)
    frames = np.zeros(EPISODES, np.intp)
    starts = perturbed_starts(reference, frames, START_SEED)
    simulator = make_simulator(profile, settings, EPISODES, target)
    run = play(policy, policy.contract.rule, reference, profile, simulator, starts, frames)
    source = {"kind": "twin", "engine": settings.backend, "physics": physics}
    to_rollout(run, reference, profile, PolicyIdentity(name, sha256), source).save(path)
    return Rollout.load(path, profile)
