"""Where the other estimators are installed: part of section `reconstruct` of `params.yaml`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from asap_core.settings import Settings


class EstimatorSettings(Settings):
    """How one estimator is run. Its code, weights and licences are the user's own."""

    folder: Path
    """Its checkout, which is also the working folder: all three look for their weights there."""
    python: str = "python"
    """The interpreter of its environment, such as `~/miniconda3/envs/tram/bin/python`; also the {python} of `steps`."""
    steps: tuple[tuple[str, ...], ...] = ()
    """Commands to run one after another in place of the usual ones; {python}, {video}, {out} and {name} are filled in:
    the video's link, the folder for results, and the name under which the tool shall write them."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables to set, such as CUDA_VISIBLE_DEVICES."""
    timeout_s: float = Field(default=7200.0, gt=0)
    """For all steps together; then the tool and all that it started are ended."""
    moving_camera: bool = False
    """False tells the tools that the camera stands still, which TRAM and GVHMR make use of."""


class EstimatorsSettings(Settings):
    """Those that are installed."""

    tram: EstimatorSettings | None = None
    gvhmr: EstimatorSettings | None = None
    wham: EstimatorSettings | None = None
