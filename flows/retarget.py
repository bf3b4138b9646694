"""Stage `retarget` as a Prefect flow."""

from __future__ import annotations

from flows._stage import stage_flow

retarget = stage_flow("retarget")
