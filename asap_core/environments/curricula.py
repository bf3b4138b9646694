"""Numbers that change as episodes get longer: penalties, soft limits, and the widths of the tracking kernels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from asap_core.environments.rewards import ERRORS, SIGMA, RewardContext
from asap_core.settings import Settings


class RampSettings(Settings):
    """A factor that follows how much of their way episodes cover; constant while `degree` is 0."""

    start: float = Field(ge=0)
    lowest: float = Field(default=0.0, ge=0)
    highest: float = Field(default=2.0, ge=0)
    degree: float = Field(default=0.0, gt=-1, lt=1)
    """Relative change for each step in which an episode ends: added while episodes are long (the termination
    curriculum's `level_up`), taken away while they are short (`level_down`)."""

    @model_validator(mode="after")
    def _start_is_within(self) -> RampSettings:
        if not self.lowest <= self.start <= self.highest:
            raise ValueError(f"start is {self.start}, expected lowest {self.lowest} to highest {self.highest}")
        return self


class SoftLimitSettings(Settings):
    """Shares of the joint ranges, velocity limits and torque limits beyond which a limit is penalised."""

    dof_pos: RampSettings = RampSettings(start=0.95)
    dof_vel: RampSettings = RampSettings(start=0.95)
    torque: RampSettings = RampSettings(start=0.9)


class Ramp:
    """The present value of a `RampSettings`."""

    def __init__(self, settings: RampSettings) -> None:
        self.settings = settings
        self.value = settings.start

    def update(self, level: int) -> None:
        """One step in which an episode ended; `level` is 1 while episodes are long, −1 while short, else 0."""
        s = self.settings
        self.value = float(np.clip(self.value * (1.0 + s.degree * level), s.lowest, s.highest))


class KernelWidths:
    """The σ of every tracking kernel; adaptive, they shrink to the running mean of the error (KungfuBot, 2506.12851).

    Args:
        rate: weight of a step's mean error in the running mean; 0 keeps the published widths.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self.sigma: dict[str, float] = dict(SIGMA)
        self.mean_error: dict[str, float] = dict(SIGMA)

    def update(self, context: RewardContext, alive: NDArray[np.bool_]) -> None:
        """Take in the errors of one step of the robots that did not fail in it."""
        if not self._rate or not alive.any():
            return
        for name, error in ERRORS.items():
            self.mean_error[name] += self._rate * (float(error(context)[alive].mean()) - self.mean_error[name])
            self.sigma[name] = min(self.sigma[name], self.mean_error[name])

    def state_dict(self) -> dict[str, dict[str, float]]:
        """Widths and running means, for a checkpoint."""
        return {"sigma": dict(self.sigma), "mean_error": dict(self.mean_error)}

    def load_state_dict(self, state: Mapping[str, Mapping[str, float]]) -> None:
        """Take back what `state_dict` gave."""
        self.sigma, self.mean_error = dict(state["sigma"]), dict(state["mean_error"])
