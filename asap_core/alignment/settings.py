"""How the delta action model is fitted; section `align` of `params.yaml`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from asap_core.alignment.acceptance import AcceptanceSettings
from asap_core.settings import Settings


class RefineSettings(Settings):
    """Gauss-Newton on the true multi-step replay error, starting from zero."""

    iterations: int = Field(default=2, ge=0)
    """Of each horizon; 0 tries none."""
    horizons_s: tuple[Annotated[float, Field(gt=0)], ...] = Field(default=(0.1, 0.1, 0.25, 0.5), min_length=1)
    """Lengths of the replayed pieces, one after another: short ones are smooth, long ones are what counts."""
    seconds: float = Field(default=8.0, gt=0)
    """Recorded time of the fit split that each iteration replays, another part each time; all where it is shorter."""
    step_shrink: float = Field(default=0.7, gt=0, le=1)
    """Factor on the finite-difference steps from one horizon to the next."""
    prior: float = Field(default=0.01, ge=0)
    """Pull of the joints' weights towards each other, relative to the mean curvature."""


class AlignSettings(Settings):
    """Section `align` of `params.yaml`. Which candidate wins is decided on the validation split."""

    joints: Literal["ankles", "legs", "all"] = "all"
    """Which joints are corrected. The paper's real robot had data enough for the ankles alone."""
    delta_limit: float = Field(default=1.0, gt=0)
    """rad; the output is bounded by this per joint. A delay asks for whole changes of a target, so for as much."""
    label_regularisation: float = Field(default=1.6e-7, ge=0)
    """Weight of |Δq|² beside the inertia-weighted one-step residual."""
    label_envs: int = Field(default=960, ge=24)
    """Robots stepped at once while labelling."""
    ridge: tuple[Annotated[float, Field(gt=0)], ...] = (1.0, 10.0)
    """Strengths of the per-joint linear fits of one-step labels that are tried; none tries none."""
    residual_epochs: int = Field(default=20, ge=0)
    """Training epochs of the network on what the linear fit leaves; 0 tries none."""
    residual_shares: tuple[Annotated[float, Field(gt=0)], ...] = (0.5, 1.0)
    """Shares of the network's output that are tried."""
    refine: RefineSettings = RefineSettings()
    acceptance: AcceptanceSettings = AcceptanceSettings()
    rank_against: tuple[Literal["sysid", "delta_dynamics"], ...] = ()
    """Rivals that are fitted on the same rollouts, to print where the delta stands; nothing depends on it."""
    max_ratio: float = Field(default=1.0, gt=0)
    """The stage fails when the held-out 1.0 s error exceeds this share of the uncorrected one."""
