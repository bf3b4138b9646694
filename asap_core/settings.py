"""The base of all typed settings: unknown keys are refused, values do not change after reading."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """A section of `params.yaml`. Each room derives its own in `<room>/settings.py`."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
