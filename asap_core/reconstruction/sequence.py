"""Gauss-Newton over a sequence: about ten frames a second first, then all frames, long clips window by window."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from asap_core.reconstruction.body import BodyState
from asap_core.reconstruction.residuals import Evidence, Prior, Scene, solve_step

_COARSE_RATE = 10.0
"""Hz"""
_MAX_TURN = 0.7
"""rad; longest step of a rotation in one iteration."""
_MAX_SHARED = 0.25
"""Longest step of a shared variable."""
_SETTLED = 2e-3
"""rad and m; a step below this ends the iteration."""
_WINDOW, _OVERLAP = 10.0, 1.0
"""s"""
_SEAM = 2
"""Frames before a window that an acceleration in it sees."""


@cache
def one_thread() -> ThreadpoolController:
    """More threads make the small factorisations a hundred times slower."""
    return ThreadpoolController()


def iterate(
    state: BodyState,
    scene: Scene,
    evidence: Evidence,
    prior: Prior,
    free: NDArray[np.bool_],
    steps: int,
    fixed: int = 0,
) -> tuple[BodyState, Scene]:
    """At most `steps` steps; the first `fixed` frames and the shared variables that are not `free` stay."""
    for _ in range(steps):
        step, shared = solve_step(state, scene, evidence, prior, free, fixed)
        step *= np.minimum(1.0, _MAX_TURN / np.abs(step[:, 3:]).max(axis=1, keepdims=True).clip(1e-12))
        shared = shared * min(1.0, _MAX_SHARED / np.abs(shared).max(initial=1e-12))
        state, scene = state.moved(step), scene.moved(shared)
        if max(np.abs(step).max(), np.abs(shared).max(initial=0.0)) < _SETTLED:
            break
    return state, scene


def coarse_stride(fps: float, frames: int) -> int:
    """Of the frames that are solved first; 1 for a clip of few frames."""
    stride = max(1, round(fps / _COARSE_RATE))
    return stride if frames > 4 * stride else 1


def refine(state: BodyState, scene: Scene, evidence: Evidence, prior: Prior, steps: int) -> BodyState:
    """All frames from a state near the solution, the scene being fixed; window by window, so that memory is bounded."""
    frames = len(state)
    window, overlap = round(_WINDOW * evidence.fps), round(_OVERLAP * evidence.fps)
    nothing = np.zeros(len(prior.values), dtype=bool)
    out = BodyState(state.root.copy(), state.balls.copy(), state.angles.copy())
    begin, end = 0, 0
    while end < frames:
        end = frames if frames - begin <= 1.5 * window else begin + window
        fixed = min(begin, _SEAM)
        part = slice(begin - fixed, end)
        found, _ = iterate(out.part(part), scene, evidence.part(part), prior, nothing, steps, fixed)
        for name in ("root", "balls", "angles"):
            getattr(out, name)[part] = getattr(found, name)
        begin = end - overlap
    return out


def with_contacts(evidence: Evidence, contacts: NDArray[np.bool_], ease: float) -> Evidence:
    """The same evidence with other contacts."""
    return replace(evidence, contacts=contacts.astype(float), ease=ease)
