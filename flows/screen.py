"""Stage `screen` as a Prefect flow."""

from __future__ import annotations

from flows._stage import stage_flow

screen = stage_flow("screen")
