"""Stage `evaluate` as a Prefect flow."""

from __future__ import annotations

from flows._stage import stage_flow

evaluate = stage_flow("evaluate")
