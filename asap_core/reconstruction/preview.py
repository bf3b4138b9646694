"""A picture of a motion in space: poses from two sides, and the way over the ground."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from asap_core.files import atomic_file
from asap_core.reconstruction.drawing import BONES, bone_colours, titles
from asap_core.reconstruction.lift import Lift
from asap_core.rotations import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POSES = 9
_APART = 0.9
"""m between two poses of a row."""


def write_preview(lifted: Lift, destination: Path) -> None:
    """Write a PNG: nine poses from the camera, the same from its right, and the pelvis from above."""
    from matplotlib.figure import Figure

    motion = lifted.motion
    positions = motion.joint_positions()
    chosen = np.linspace(0, motion.num_frames - 1, _POSES).round().astype(int)
    figure = Figure(figsize=(13.0, 7.5), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(3, 1))
    sides = ((1, -1.0), (0, 1.0))
    for row, (title, (across, sign)) in enumerate(zip(titles(lifted.camera is not None), sides, strict=True)):
        axes = figure.add_subplot(grid[row, 0])
        _poses(axes, positions[chosen], lifted.bridged[chosen], across, sign)
        times = [f"{frame / motion.fps:.1f}" for frame in chosen]
        axes.set_xticks(np.arange(_POSES) * _APART, times)
        axes.set(title=title, xlabel="time (s)", ylabel="height (m)", aspect="equal")
        axes.spines[["top", "right"]].set_visible(False)
    _path(figure.add_subplot(grid[:, 1]), positions[:, 0], chosen)
    with atomic_file(destination) as partial:
        figure.savefig(partial, format="png", dpi=90)


def _poses(axes: Axes, positions: Array, bridged: Array, across: int, sign: float) -> None:
    axes.axhline(0.0, color="#999999", linewidth=0.8)
    for number, pose in enumerate(positions):
        x = number * _APART + sign * (pose[:, across] - pose[0, across])
        for (parent, joint), colour in zip(BONES, bone_colours(bool(bridged[number])), strict=True):
            ends = [parent, joint]
            axes.plot(x[ends], pose[ends, 2], color=[one / 255 for one in colour], linewidth=1.8)


def _path(axes: Axes, pelvis: Array, chosen: Array) -> None:
    axes.plot(-pelvis[:, 1], pelvis[:, 0], color="#444444", linewidth=1.0)
    axes.plot(-pelvis[chosen, 1], pelvis[chosen, 0], ".", color="#1f6feb")
    axes.set(title="pelvis from above", xlabel="−y, right (m)", ylabel="x, away (m)", aspect="equal")
    axes.set_xlim(axes.get_xlim()[0] - 0.5, axes.get_xlim()[1] + 0.5)
    axes.set_ylim(axes.get_ylim()[0] - 0.5, axes.get_ylim()[1] + 0.5)
