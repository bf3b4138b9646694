"""`screen`: the verdict on a person's clip, with a reason and the frames for everything that speaks against it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from asap_core.motions.human import HumanMotion
from asap_core.rotations import Array, quat_to_matrix, rotvec_to_quat
from asap_core.screening.anatomy import backward_bend
from asap_core.screening.dynamics import (
    GRAVITY,
    Demand,
    angular_velocity,
    contact_demand,
    contact_forces,
    slowest_low_point,
    support_distance,
)
from asap_core.screening.settings import ScreenSettings
from asap_core.screening.verdict import Trial, Verdict, too_short

_JUMP_BASE = 1.0 / 30.0
"""s over which the root's acceleration is taken, so that a higher frame rate does not amplify noise."""


def screen(motion: HumanMotion, settings: ScreenSettings) -> Verdict:
    """Judge a clip by its speeds, its feet, its joints, its balance and the contact forces that it asks for.

    A clip that stands within `ground_float` above or `ground_depth` below z = 0 is judged as if it stood on it. A float
    or a depth beyond that is never corrected away.
    """
    short = too_short(motion.num_frames)
    if short is not None:
        return short
    demand, level = grounded(contact_demand(motion), settings)
    trial = Trial(motion.num_frames)
    trial.figures["ground_level"] = level
    path_rules(trial, motion.root_translation, motion.fps, settings)
    contact_rules(trial, demand, settings)
    local = quat_to_matrix(rotvec_to_quat(motion.joint_rotations[:, 1:]))
    fastest = np.linalg.norm(angular_velocity(local, motion.fps), axis=-1).max(axis=1)
    trial.share("joint_speed", fastest > settings.max_joint_speed, settings.max_fast, fastest, "rad/s")
    bend = backward_bend(motion)
    trial.share("anatomy", bend > settings.backward_bend, settings.max_bent_backward, bend, "rad backward")
    return trial.verdict()


def grounded(demand: Demand, settings: ScreenSettings) -> tuple[Demand, float]:
    """The demand with the standing level at z = 0 if it is near enough to it, and that level, m."""
    level = float(np.percentile(demand.soles[..., 2].min(axis=1), 10))
    if not -settings.ground_depth <= level <= settings.ground_float:
        return demand, level
    shift = np.array([0.0, 0.0, level])
    return replace(demand, com=demand.com - shift, soles=demand.soles - shift), level


def path_rules(trial: Trial, root: Array, fps: float, settings: ScreenSettings) -> None:
    """Speed and acceleration of the root (T, 3), m."""
    speed = np.linalg.norm(np.diff(root, axis=0), axis=1) * fps
    trial.peak("speed", np.append(speed, speed[-1]), settings.max_root_speed, "m/s of the root")
    acceleration = root_acceleration(root, fps)
    trial.peak("jump", acceleration, settings.max_root_acceleration, "m/s² of the root")


def root_acceleration(root: Array, fps: float) -> Array:
    """(T,) m/s², second difference over a thirtieth of a second or one frame, zero where the clip has no neighbours."""
    step = max(1, round(_JUMP_BASE * fps))
    out = np.zeros(len(root))
    change = root[2 * step :] - 2 * root[step:-step] + root[: -2 * step]
    out[step:-step] = np.linalg.norm(change, axis=1) * (fps / step) ** 2
    return out


def contact_rules(trial: Trial, demand: Demand, settings: ScreenSettings) -> Array:
    """Floating, penetration, sliding, contact forces and balance; returns the forces (T, P, 3) found, N/kg."""
    height = demand.soles[..., 2]
    low = height < settings.contact_height
    bears: NDArray[np.bool_] = low & (demand.sole_speed < settings.contact_speed)
    lowest = height.min(axis=1)
    falls = np.abs(demand.force[:, 2]) < GRAVITY / 2
    trial.share("float", (lowest > settings.float_height) & ~falls, settings.max_floating, lowest, "m up")
    deep = lowest < -settings.penetration_depth
    trial.share("penetration", deep, settings.max_penetrating, -lowest, "m deep")
    slide = slowest_low_point(demand, low)
    trial.share("slide", slide > settings.slide_speed, settings.max_sliding, slide, "m/s")
    residual, forces = contact_forces(demand, bears, settings.friction)
    trial.share("infeasible", residual > settings.residual, settings.max_infeasible, residual, "weights unexplained")
    force = np.linalg.norm(demand.force, axis=1) / GRAVITY
    trial.share("force", force > settings.max_force, settings.max_forceful, force, "weights")
    slow = demand.com_speed < settings.balance_speed
    beside = support_distance(demand, bears & slow[:, None])
    trial.share("balance", beside > settings.balance_distance, settings.max_unbalanced, beside, "m beside the support")
    trial.figures["residual_mean"] = float(residual.mean())
    return forces
