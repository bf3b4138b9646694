"""Evidence on the frame rate: stored velocities, gravity in flight, and how fast joints can turn."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from asap_core.evidence import Decision, given
from asap_core.motions.derived import centres_of_mass
from asap_core.motions.doctor.options import Options
from asap_core.motions.doctor.reading import ANGLE_UNITS, Reading
from asap_core.motions.formats.clip import RobotClip
from asap_core.robots.kinematics import Kinematics, LinkPoses
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import Array

GRAVITY = 9.81
_OFF = 0.1
"""Stored velocities: a relative difference of the rates that is no rounding."""
_LEAST_FIT = 0.8
"""R² that a rate from velocities must reach."""
_FLIGHT_HEIGHT, _FLIGHT_FRAMES, _FLIGHT_RISE = 0.10, 5, 0.04
"""m of both soles above the ground, frames, and m that the centre of mass must rise and fall in them."""
_FLIGHT_FIT = 0.97
"""R² of a fall's parabola."""
_FLIGHT_FACTOR = 1.3
"""Falls this much too fast or slow are no noise: the nine published retargets that fly ask for 1.00 to 1.07 of their
rate."""


@dataclass(frozen=True)
class Rate:
    """The rate to go on with, and the finding behind it."""

    fps: float | None
    decision: Decision
    suggested: float | None
    """Rate that the evidence asks for where it contradicts the stated one."""


def decide_rate(clip: RobotClip, reading: Reading, poses: LinkPoses, options: Options) -> Rate:
    """The option's rate, the file's, or that of stored velocities; each checked against the evidence there is."""
    stated = options.fps or clip.fps
    measured, how, tolerance = velocity_rate(clip, reading), "stored velocities over finite differences", _OFF
    if measured is None:
        measured, how, tolerance = fall_rate(reading.profile, poses), "gravity in flight", _FLIGHT_FACTOR - 1
    if stated is None:
        return _without_statement(clip, measured, how)
    source = "the option says so" if options.fps else "the file says so"
    if measured is None:
        word = given("fps", f"{stated:g}", f"{source}; nothing in it to check", "--fps")
        return Rate(stated, replace(word, figure=stated, unit="Hz"), None)
    off = max(measured / stated, stated / measured) - 1 > tolerance
    words = f"{source}; {how} {'asks for' if off else 'agrees with'} {measured:.1f} Hz"
    decision = Decision("fps", f"{stated:g}", stated, None, float("inf"), words, "--fps", "Hz")
    return Rate(stated, decision, measured if off else None)


def _without_statement(clip: RobotClip, measured: float | None, how: str) -> Rate:
    if measured is not None and how != "gravity in flight":
        decision = Decision("fps", f"{measured:.4g}", measured, None, float("inf"), how, "--fps", "Hz")
        return Rate(float(f"{measured:.4g}"), decision, None)
    hint = "" if measured is None else f"; {how} suggests about {measured:.0f}"
    words = f"the file stores none{hint}"
    return Rate(None, Decision("fps", None, measured or 0.0, None, float("inf"), words, "--fps RATE", "Hz"), None)


def velocity_rate(clip: RobotClip, reading: Reading) -> float | None:
    """Frames per second by which per-frame differences have to be multiplied to give the stored velocities."""
    if clip.joint_vel is not None and clip.joint_vel.shape == clip.joint_pos.shape:
        unit = ANGLE_UNITS[reading.angle_unit]
        rate = _slope(np.gradient(clip.joint_pos, axis=0) * unit, clip.joint_vel * unit)
        if rate is not None:
            return rate
    if clip.body_pos is not None and clip.body_lin_vel is not None:
        return _slope(np.gradient(clip.body_pos, axis=0), clip.body_lin_vel)
    return None


def _slope(differences: Array, velocities: Array) -> float | None:
    """Least squares slope of velocities on differences; None if it explains too little of them."""
    power, cross, total = (
        (a * b).sum() for a, b in ((differences, differences), (differences, velocities), (velocities, velocities))
    )
    if power <= 1e-12 or total <= 1e-12 or cross <= 0 or cross**2 / (power * total) < _LEAST_FIT:
        return None
    return float(cross / power)


def fall_rate(profile: RobotProfile, poses: LinkPoses) -> float | None:
    """Frames per second at which the flights in a clip fall at 9.81 m/s²; None if there is no clear flight."""
    soles = Kinematics(profile).sole_points(poses)[..., 2].min(axis=(1, 2))
    flying = soles > np.quantile(soles, 0.1) + _FLIGHT_HEIGHT
    height = centre_of_mass(profile, poses)[:, 2]
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flying.astype(int), [0]])))
    rates, weights = [], []
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        rate = _parabola_rate(height[start:stop])
        if rate is not None:
            rates.append(rate)
            weights.append(stop - start)
    return float(np.average(rates, weights=weights)) if rates else None


def _parabola_rate(height: Array) -> float | None:
    if len(height) < _FLIGHT_FRAMES or np.ptp(height) < _FLIGHT_RISE:
        return None
    frame = np.arange(len(height)) - (len(height) - 1) / 2
    curve = np.polyfit(frame, height, 2)
    left = height - np.polyval(curve, frame)
    fit = 1 - (left**2).sum() / ((height - height.mean()) ** 2).sum()
    return float(np.sqrt(GRAVITY / (-2 * curve[0]))) if fit >= _FLIGHT_FIT and curve[0] < 0 else None


def centre_of_mass(profile: RobotProfile, poses: LinkPoses) -> Array:
    """(T, 3) m, of the links that have a joint; parts welded to them only move their centres."""
    mass = np.array([link.mass for link in profile.links])
    com = centres_of_mass(profile)[: len(mass)]
    points = Kinematics(profile).points(poses, np.arange(len(mass)), com)
    return np.einsum("l,tlc->tc", mass / mass.sum(), points)
