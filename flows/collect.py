"""Stage `collect` as a Prefect flow."""

from __future__ import annotations

from flows._stage import stage_flow

collect = stage_flow("collect")
