"""Joint targets that take effect late, each robot by its own time, resolved within control steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap_core.robots.physics import PhysicsSettings
from asap_core.simulators.protocol import Array, Ids

_ROUNDING = 1e-9


@dataclass(frozen=True)
class _Run:
    """Consecutive physics steps of a control step under one target: share · later + (1 − share) · earlier."""

    earlier: NDArray[np.intp]
    """(N,) index into the past and present targets of robot n."""
    later: NDArray[np.intp]
    share: Array
    """(N, 1)."""
    physics_steps: int


class TargetDelay:
    """Keeps what N robots were told and says what they obey.

    The target of a physics step is that which was in force `delay_s` before it. Where the target changes within the
    step, it is their mean over it, so that a delay may be any number of seconds and replay is smooth in it.

    Args:
        physics: of each robot; time steps alike.
        num_joints: J.
    """

    def __init__(self, physics: Sequence[PhysicsSettings], num_joints: int) -> None:
        substeps = physics[0].substeps
        delay: Array = np.array([p.delay_s for p in physics]) / physics[0].physics_dt
        self._depth = int(np.ceil(delay.max() / substeps - _ROUNDING))
        self.past = np.zeros((len(physics), self._depth, num_joints))
        """(N, P, J) rad, the targets that are remembered, oldest first."""
        self._robots = np.arange(len(physics))
        self._runs = list(_merged([_run(delay, step, substeps, self._depth) for step in range(substeps)]))

    def refill(self, ids: Ids, joint_pos: Array, past_target: Array | None) -> None:
        """Forget the past of robots `ids` (M,): it becomes `past_target` (M, P, J), before that `joint_pos` (M, J)."""
        if not self._depth:
            return
        self.past[ids] = joint_pos[:, None]
        if past_target is not None and past_target.shape[1]:
            known = min(past_target.shape[1], self._depth)
            self.past[ids, self._depth - known :] = past_target[:, past_target.shape[1] - known :]

    def runs(self, joint_target: Array) -> Iterator[tuple[Array, int]]:
        """Take the targets (N, J) of a control step; give (target (N, J), physics steps) one after another."""
        if not self._depth:
            yield joint_target, self._runs[0].physics_steps
            return
        known = np.concatenate([self.past, joint_target[:, None]], axis=1)
        self.past = known[:, 1:]
        for run in self._runs:
            later = known[self._robots, run.later]
            yield later + (1.0 - run.share) * (known[self._robots, run.earlier] - later), run.physics_steps


def _run(delay: Array, step: int, substeps: int, present: int) -> _Run:
    """What robots with `delay` (N,) in physics steps obey in physics step `step` of a control step."""
    begin = step - delay
    earlier = np.floor(begin / substeps + _ROUNDING).astype(np.intp)
    later = np.ceil((begin + 1) / substeps - _ROUNDING).astype(np.intp) - 1
    share = np.where(later > earlier, begin + 1 - later * substeps, 1.0)
    return _Run(earlier + present, later + present, share[:, None], 1)


def _merged(runs: list[_Run]) -> Iterator[_Run]:
    last = runs[0]
    for run in runs[1:]:
        same = all(np.array_equal(getattr(run, n), getattr(last, n)) for n in ("earlier", "later", "share"))
        if same:
            last = _Run(last.earlier, last.later, last.share, last.physics_steps + 1)
        else:
            yield last
            last = run
    yield last
