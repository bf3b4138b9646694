"""Groups of robots side by side: each on a thread of its own, which simulates, compares, resets, observes and acts.

No thread waits for another's slowest robot before the batch is full, and none is idle while numpy works for another.
Each group acts on its own latest observation, as it would alone, so results do not depend on which is faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.environments.terminations import TerminationCurriculum
from asap_core.environments.tracking import StepResult, TrackingEnv
from asap_core.simulators.protocol import Array

Observations = dict[str, NDArray[np.float32]]
Act = Callable[[int, int, Observations], Array]
"""Step, group, the group's observations → its raw actions. Called from the group's thread."""
Record = Callable[[int, int, StepResult, Observations], None]
"""Step, group, what the step brought the group, its observations after it. Called from the group's thread."""


class SideBySide:
    """Several environments of one task as one. Their curricula are their own.

    Args:
        groups: at least two environments, each with a simulator of its own, which has its share of the threads.
    """

    def __init__(self, groups: Sequence[TrackingEnv]) -> None:
        self.groups = tuple(groups)
        self.num_envs = sum(group.num_envs for group in self.groups)
        self.num_actions = self.groups[0].num_actions
        self.guard = _Guards(self.groups)
        self._threads = ThreadPoolExecutor(len(self.groups), "group")

    @property
    def curriculum(self) -> TerminationCurriculum:
        """That of the first group."""
        return self.groups[0].curriculum

    @property
    def rows(self) -> list[slice]:
        """Which of the N robots each group has."""
        ends = np.cumsum([group.num_envs for group in self.groups]).tolist()
        return [slice(end - group.num_envs, end) for end, group in zip(ends, self.groups, strict=True)]

    def observe(self) -> Observations:
        """See `TrackingEnv.observe`; call once, before `roll`."""
        return _joined([group.observe() for group in self.groups])

    def roll(self, steps: int, seen: Observations, act: Act, record: Record) -> Observations:
        """Let all groups act for `steps` control steps.

        Args:
            seen: the latest observations (N, W).

        Returns:
            Those after the last step.
        """
        latest = [{name: value[rows] for name, value in seen.items()} for rows in self.rows]

        def go(k: int) -> Observations:
            group, mine = self.groups[k], latest[k]
            for step in range(steps):
                group.simulate(group.begin(act(step, k, mine)))
                result = group.conclude()
                mine = group.observe()
                record(step, k, result, mine)
            return mine

        return _joined(list(self._threads.map(go, range(len(self.groups)))))

    def curricula(self) -> dict[str, Any]:
        """Those of the first group."""
        return self.groups[0].curricula()

    def load_curricula(self, state: dict[str, Any]) -> None:
        """Take over the curricula of another training in every group."""
        for group in self.groups:
            group.load_curricula(state)

    def state_dict(self) -> dict[str, Any]:
        """State of each group by its number, and the curricula of the first where a single environment has them."""
        return {**self.curricula(), **{str(k): group.state_dict() for k, group in enumerate(self.groups)}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        for k, group in enumerate(self.groups):
            group.load_state_dict(state[str(k)])


def _joined(seen: Sequence[Observations]) -> Observations:
    return {name: np.concatenate([each[name] for each in seen]) for name in seen[0]}


class _Guards:
    """The guards of all groups, which dump to one file, the first to see an explosion."""

    def __init__(self, groups: Sequence[TrackingEnv]) -> None:
        self._guards = [group.guard for group in groups]

    @property
    def path(self) -> Path | None:
        """See `StateGuard.path`."""
        return self._guards[0].path

    @path.setter
    def path(self, path: Path | None) -> None:
        for guard in self._guards:
            guard.path = path

    @property
    def dumped(self) -> bool:
        """Whether any has."""
        return any(guard.dumped for guard in self._guards)
