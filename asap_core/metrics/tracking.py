"""The paper's tracking errors (§ Experiments, Table IV) on link positions against the time-matched reference."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

FAILURE_DISTANCE_M = 0.5
"""An episode fails as soon as the mean distance of all links to the reference exceeds this."""

METRIC_NAMES = ("success", "E_g_mpjpe", "E_mpjpe", "E_acc", "E_vel", "E_vel_root")
"""The figures of one episode, in the order of every table."""

_MM = 1000.0


@dataclass(frozen=True)
class TrackingErrors:
    """The errors of one episode over its alive frames; one frame is one control step."""

    success: float
    """1.0 when every frame is alive and the mean link distance never exceeds `FAILURE_DISTANCE_M`, else 0.0."""
    E_g_mpjpe: float
    """Mean distance of all links in the world frame, mm."""
    E_mpjpe: float
    """The same after the root (link 0) position is subtracted from both, mm."""
    E_acc: float
    """Mean norm of the difference of second differences, all links, mm/frame²."""
    E_vel: float
    """Mean norm of the difference of frame-to-frame steps, all links, mm/frame."""
    E_vel_root: float
    """As `E_vel`, the root only, mm/frame."""
    frames: int
    """Frames that were counted."""

    def as_dict(self) -> dict[str, float]:
        """The figures by name."""
        return asdict(self)


def failure_frame(link_pos: Array, ref_link_pos: Array) -> int | None:
    """The first frame whose mean link distance exceeds `FAILURE_DISTANCE_M` or is not finite; None when there is none.

    Args:
        link_pos: (T, L, 3) m, world.
        ref_link_pos: (T, L, 3) m, world, of the same times (lead 0).
    """
    distance = np.linalg.norm(link_pos - ref_link_pos, axis=-1).mean(axis=-1)
    bad = ~(distance <= FAILURE_DISTANCE_M)
    return int(np.argmax(bad)) if bad.any() else None


def tracking_errors(link_pos: Array, ref_link_pos: Array, alive: NDArray[np.bool_] | None = None) -> TrackingErrors:
    """Errors of one episode.

    Frames from the first failed or dead one on are not counted; compare rows of equal success only.

    Args:
        link_pos: (T, L, 3) m, world; link 0 is the root.
        ref_link_pos: (T, L, 3) m, world, of the same times (lead 0).
        alive: (T,) false from the frame on at which the episode ended early; all true when left out.

    Raises:
        ValueError: shapes that do not match, or a first frame that is already dead.
    """
    if link_pos.shape != ref_link_pos.shape or link_pos.ndim != 3 or link_pos.shape[-1] != 3:
        raise ValueError(f"link_pos {link_pos.shape} and ref_link_pos {ref_link_pos.shape} must both be (T, L, 3)")
    total = len(link_pos)
    failed = failure_frame(link_pos, ref_link_pos)
    end = total if failed is None else failed
    if alive is not None and not alive.all():
        end = min(end, int(np.argmin(alive)))
    if end == 0:
        raise ValueError("the first frame is already failed: the episode does not start on its reference")
    error = (link_pos - ref_link_pos)[:end]
    step = np.diff(error, axis=0)
    return TrackingErrors(
        success=float(end == total),
        E_g_mpjpe=_mean_norm_mm(error),
        E_mpjpe=_mean_norm_mm(error - error[:, :1]),
        E_acc=_mean_norm_mm(np.diff(error, n=2, axis=0)),
        E_vel=_mean_norm_mm(step),
        E_vel_root=_mean_norm_mm(step[:, :1]),
        frames=end,
    )


def _mean_norm_mm(difference: Array) -> float:
    return float(np.linalg.norm(difference, axis=-1).mean() * _MM) if difference.size else 0.0
