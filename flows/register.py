"""Stage `register` as a Prefect flow."""

from __future__ import annotations

from flows._stage import stage_flow

register = stage_flow("register")
