"""Stage `reconstruct` as a Prefect flow."""

from __future__ import annotations

from flows._stage import stage_flow

reconstruct = stage_flow("reconstruct")
