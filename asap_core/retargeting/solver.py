"""Gauss-Newton over whole sequences, coarse first; long ones window by window. Joint limits are hard."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from asap_core.retargeting.residuals import Phase, Point, linearise
from asap_core.retargeting.settings import RetargetSettings
from asap_core.retargeting.targets import Targets
from asap_core.retargeting.trajectory import Trajectory
from asap_core.robots.kinematics import Kinematics
from asap_core.rotations import Array

_AT_LIMIT = 1e-6
"""A joint this near to its limit is at it, rad."""
_MAX_TURN = 0.7
"""Longest step of any angle of a frame in one iteration, rad."""
_COARSE_RATE = 10.0
"""Hz."""
_FIRST_SLACK = 0.16
"""Link slack of the first iteration, m."""
_LINKS_ALONE = 3
"""First iterations without the soles."""
_MENDING = 4
"""Most iterations beyond the asked for."""
_DEEP = 0.002
"""Depth of a sole that asks for them, m."""
_SEAM = 2
"""Frames before a window that an acceleration in it sees."""


def solve(kinematics: Kinematics, targets: Targets, start: Trajectory, settings: RetargetSettings) -> Trajectory:
    """Minimise the weighted residuals from `start`.

    A clip of more than one and a half windows is solved window by window, so that memory does not grow with it: each
    begins on the last two frames kept of the one before, which it leaves as they are, and its last `overlap` is solved
    again by the next, so that every frame kept has been solved with what comes after it.
    """
    frames = len(start.root_pos)
    window, overlap = (max(_SEAM, round(s * targets.fps)) for s in (settings.window, settings.overlap))
    solved = Trajectory(start.root_pos.copy(), start.root_quat.copy(), start.joint_pos.copy())
    with _one_thread().limit(limits=1):
        begin, end = 0, 0
        while end < frames:
            end = begin + max(window, 2 * overlap)
            if frames - end <= window // 2:
                end = frames
            fixed = min(begin, _SEAM)
            part = slice(begin - fixed, end)
            found = _solve_window(kinematics, targets.part(part), solved.part(part), settings, fixed)
            solved.put(begin, found.part(slice(fixed, None)))
            begin = end - overlap
    return solved


@cache
def _one_thread() -> ThreadpoolController:
    """More threads make the small factorisations a hundred times slower."""
    return ThreadpoolController()


def _solve_window(
    kinematics: Kinematics, targets: Targets, start: Trajectory, settings: RetargetSettings, fixed: int
) -> Trajectory:
    """First about ten frames a second, then all of them, of which the `fixed` first ones stay as they are."""
    stride = round(targets.fps / _COARSE_RATE)
    state, frames = start, len(start.root_pos)
    if stride > 1 and frames > 4 * stride:
        every = slice(None, None, stride)
        phases = _approach(settings.link_slack, settings.coarse_iterations)
        coarse = _iterate(kinematics, targets.part(every), start.part(every), settings, phases, 0)
        state = coarse.refined(stride, frames)
        state.put(0, start.part(slice(fixed)))
        phases = [Phase(settings.link_slack, True)] * settings.iterations
    else:
        phases = _approach(settings.link_slack, settings.coarse_iterations + settings.iterations)
    return _iterate(kinematics, targets, state, settings, phases, fixed)


def _approach(slack: float, iterations: int) -> list[Phase]:
    """From afar: a wide slack first, for a narrow one pulls weakly there, and the links alone before the soles."""
    return [Phase(max(slack, _FIRST_SLACK / 2**i), i >= min(_LINKS_ALONE, iterations - 1)) for i in range(iterations)]


def _iterate(
    kinematics: Kinematics,
    targets: Targets,
    state: Trajectory,
    settings: RetargetSettings,
    phases: Sequence[Phase],
    fixed: int,
) -> Trajectory:
    """One iteration for each phase, and some more while a sole is deep under the ground.

    A joint at its limit whose gradient points outwards is kept there (projected Newton, Bertsekas 1982), and so is one
    that has just been stopped there. A sole point that is under the ground, or was an iteration ago, is drawn to it.
    Let go at once, both would return.
    """
    lower, upper = kinematics.profile.joint_lower, kinematics.profile.joint_upper
    state = state.moved(np.zeros((len(state.root_pos), 6 + len(lower))), lower, upper)
    stopped = np.zeros((len(state.root_pos), 6 + len(lower)), dtype=bool)
    sunk = np.zeros((len(state.root_pos), targets.sole_contact[0].size), dtype=bool)
    for i in range(len(phases) + _MENDING):
        phase = phases[min(i, len(phases) - 1)]
        poses = kinematics.forward(state.root_pos, state.root_quat, state.joint_pos)
        soles = kinematics.sole_points(poses).reshape(*sunk.shape, 3)
        if i >= len(phases) and soles[..., 2].min() > -_DEEP:
            break
        before, sunk = sunk, soles[..., 2] < 0
        system = linearise(kinematics, targets, Point(state, poses, soles, sunk | before, phase), settings)
        held = _held(state.joint_pos, system.gradient, lower, upper) | stopped
        held[:fixed] = True
        system.freeze(held)
        step = system.solve()
        step[:fixed] = 0.0
        step *= np.minimum(1.0, _MAX_TURN / np.abs(step[:, 3:]).max(axis=1, keepdims=True).clip(1e-12))
        wanted = state.joint_pos + step[:, 6:]
        stopped[:, 6:] = (wanted < lower) | (wanted > upper)
        state = state.moved(step, lower, upper)
        if i >= len(phases) - 1 and np.abs(step).max() < settings.tolerance:
            break
    return state


def _held(joint_pos: Array, gradient: Array, lower: Array, upper: Array) -> NDArray[np.bool_]:
    slope = gradient[:, 6:]
    joints = ((joint_pos <= lower + _AT_LIMIT) & (slope > 0)) | ((joint_pos >= upper - _AT_LIMIT) & (slope < 0))
    return np.concatenate([np.zeros((len(joint_pos), 6), dtype=bool), joints], axis=1)
