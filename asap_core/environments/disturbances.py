"""What happens to a robot while it acts: its actions take effect late, and somebody pushes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from asap_core.settings import Settings
from asap_core.simulators.protocol import Array, Ids, Simulator

Steps = Annotated[int, Field(ge=0, le=50)]


class PushSettings(Settings):
    """A sudden horizontal velocity of the root, in place of the one it has."""

    interval_s: tuple[float, float] = (5.0, 9.0)
    """s between two pushes of a robot, drawn uniformly; they go on over the ends of episodes."""
    speed: float = Field(default=0.0, ge=0)
    """m/s; each of x and y is uniform within ±. 0: no pushes."""

    @model_validator(mode="after")
    def _interval_is_in_order(self) -> PushSettings:
        if not 0 < self.interval_s[0] <= self.interval_s[1]:
            raise ValueError(f"interval_s is {self.interval_s}, expected two times above 0, the smaller first")
        return self


class DisturbanceSettings(Settings):
    """Neutral by default."""

    delay_steps: tuple[Steps, Steps] = (0, 0)
    """Whole control steps by which actions are late, drawn for each episode between these two."""
    push: PushSettings = PushSettings()

    @model_validator(mode="after")
    def _delay_is_in_order(self) -> DisturbanceSettings:
        if self.delay_steps[0] > self.delay_steps[1]:
            raise ValueError(f"delay_steps is {list(self.delay_steps)}, expected the smaller first")
        return self


class ActionDelay:
    """Holds actions back, each robot's by its own number of control steps; zero actions come first in an episode.

    Args:
        steps: smallest and largest delay.
        num_envs, num_actions: N and J.
    """

    def __init__(self, steps: tuple[int, int], num_envs: int, num_actions: int) -> None:
        self._range = steps
        self.delay = np.zeros(num_envs, np.intp)
        self.past = np.zeros((steps[1], num_envs, num_actions))
        """Actions of the steps before, newest first."""

    def reset(self, ids: Ids, rng: np.random.Generator) -> None:
        """Forget the actions of robots `ids` and draw their delays."""
        if self._range[1] == 0:
            return
        self.past[:, ids] = 0.0
        self.delay[ids] = rng.integers(self._range[0], self._range[1] + 1, len(ids))

    def __call__(self, action: Array) -> Array:
        """The actions (N, J) that take effect now that `action` (N, J) is given."""
        if self._range[1] == 0:
            return action
        known = np.concatenate([action[None], self.past])
        self.past = known[:-1]
        return known[self.delay, np.arange(len(action))]

    def state_dict(self) -> dict[str, NDArray[np.generic]]:
        """Delays and past actions, for a checkpoint."""
        return {"delay": self.delay.copy(), "past": self.past.copy()}

    def load_state_dict(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Take back what `state_dict` gave."""
        self.delay[:], self.past = state["delay"], np.array(state["past"], float)


class Pushes:
    """Pushes N robots, each at its own times.

    Args:
        settings: how often and how hard.
        num_envs: N.
        control_dt: s.
        rng: draws the times of the first pushes, if there are any.
    """

    def __init__(self, settings: PushSettings, num_envs: int, control_dt: float, rng: np.random.Generator) -> None:
        self._settings = settings
        self._dt = control_dt
        self.due_s = self._intervals(num_envs, rng) if settings.speed else np.full(num_envs, np.inf)
        """(N,) s until the next push."""

    def _intervals(self, count: int, rng: np.random.Generator) -> Array:
        return rng.uniform(*self._settings.interval_s, count)

    def __call__(self, simulator: Simulator, rng: np.random.Generator) -> Ids:
        """Let one control step pass; the robots that were pushed in it."""
        self.due_s -= self._dt
        ids = np.nonzero(self.due_s <= 0)[0]
        if len(ids) == 0:
            return ids
        velocity = simulator.state.root_lin_vel[ids]
        velocity[:, :2] = rng.uniform(-self._settings.speed, self._settings.speed, (len(ids), 2))
        simulator.set_root_velocity(ids, velocity)
        self.due_s[ids] = self._intervals(len(ids), rng)
        return ids
