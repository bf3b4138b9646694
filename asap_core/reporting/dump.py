"""What a dump of the state guard shows: which joint ran away, when, and what was asked of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asap_core.environments.guard import Dump
from asap_core.rotations import projected_gravity
from asap_core.simulators.protocol import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WORST = 3


def _speeds(dump: Dump, robot: int) -> Array:
    return np.abs(dump.states["joint_vel"][:, robot])


def worst_joints(dump: Dump, robot: int) -> list[int]:
    """Columns of the joints that were fastest in the last row that is finite, fastest first."""
    speeds = _speeds(dump, robot)
    rows = np.nonzero(np.isfinite(speeds).all(axis=1))[0]
    if not len(rows):
        return list(range(_WORST))
    return [int(j) for j in np.argsort(-speeds[rows[-1]])[:_WORST]]


def dump_rows(dump: Dump) -> list[dict[str, str | int | float]]:
    """One row for each robot."""
    rows: list[dict[str, str | int | float]] = []
    for column, robot in enumerate(dump.robots):
        speeds = _speeds(dump, column)
        finite = np.isfinite(speeds).all(axis=1)
        worst = worst_joints(dump, column)[0]
        last = int(np.nonzero(finite)[0][-1]) if finite.any() else 0
        rows.append(
            {
                "robot": robot,
                "steps kept": len(speeds),
                "reference frame": int(dump.ref_frame[-1, column]),
                "last finite step": last,
                "fastest joint there": dump.joint_names[worst],
                "rad/s": float(speeds[last, worst]),
                "target − angle (rad)": float(
                    dump.joint_target[last, column, worst] - dump.states["joint_pos"][last, column, worst]
                ),
                "largest |action|": float(np.nanmax(np.abs(dump.action[:, column]))),
            }
        )
    return rows


def dump_figure(dump: Dump, robot: int) -> Figure:
    """Speeds, angles and targets of the fastest joints, height and tilt of the root, over the steps kept.

    Args:
        robot: column of the dump, not the robot's number in the training.
    """
    from matplotlib.figure import Figure

    time = (np.arange(len(dump.action)) - len(dump.action) + 1) * dump.control_dt
    figure = Figure(figsize=(8.0, 7.5), layout="constrained")
    speed, angle, root = figure.subplots(3, 1, sharex=True)
    for joint in worst_joints(dump, robot):
        name = dump.joint_names[joint]
        speed.plot(time, dump.states["joint_vel"][:, robot, joint], label=name)
        line = angle.plot(time, dump.states["joint_pos"][:, robot, joint], label=name)[0]
        angle.plot(time, dump.joint_target[:, robot, joint], "--", color=line.get_color())
    speed.set(ylabel="joint speed (rad/s)", title=f"robot {dump.robots[robot]}, reference frames to "
              f"{dump.ref_frame[-1, robot]}")  # fmt: skip
    angle.set(ylabel="joint angle, target dashed (rad)")
    with np.errstate(invalid="ignore"):
        tilt = np.abs(projected_gravity(dump.states["root_quat"][:, robot])[:, :2]).max(axis=1)
    root.plot(time, dump.states["root_pos"][:, robot, 2], label="height (m)")
    root.plot(time, tilt, label="tilt")
    root.set(xlabel="time before the end (s)", ylabel="root")
    for axes in (speed, angle, root):
        axes.legend(frameon=False, fontsize="small")
        axes.spines[["top", "right"]].set_visible(False)
    return figure
