"""How the delta action model is fitted; section `align` of `params.yaml`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from asap_core.settings import Settings


class RefineSettings(Settings):
    """Gauss-Newton on the true multi-step replay error, starting from the best label fit."""

    iterations: int = Field(default=2, ge=0)
    horizon_s: float = Field(default=0.5, gt=0)
    segments: int = Field(default=32, ge=1)
    """Recorded segments of the fit split that each iteration replays."""
    prior: float = Field(default=0.05, ge=0)
    """Pull towards the start, relative to the mean curvature."""


class AlignSettings(Settings):
    """Section `align` of `params.yaml`. Which candidate wins is decided on the validation split."""

    delta_limit: float = Field(default=0.5, gt=0)
    """rad; the output is bounded by this per joint."""
    label_regularisation: float = Field(default=1.6e-7, ge=0)
    """Weight of |Δq|² beside the inertia-weighted one-step residual."""
    label_envs: int = Field(default=960, ge=24)
    """Robots stepped at once while labelling."""
    ridge: tuple[Annotated[float, Field(gt=0)], ...] = Field(default=(1.0, 10.0, 100.0), min_length=1)
    """Strengths of the per-joint linear fits that are tried."""
    residual_epochs: int = Field(default=20, ge=0)
    """Training epochs of the network on what the linear fit leaves; 0 tries none."""
    residual_shares: tuple[Annotated[float, Field(gt=0)], ...] = (0.5, 1.0)
    """Shares of the network's output that are tried."""
    refine: RefineSettings = RefineSettings()
    max_ratio: float = Field(default=1.0, gt=0)
    """The stage fails when the held-out 1.0 s error exceeds this share of the uncorrected one."""
