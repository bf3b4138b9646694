"""Stage `align` as a Prefect flow."""

from __future__ import annotations

from flows._stage import stage_flow

align = stage_flow("align")
