"""Stage `pretrain` as a Prefect flow."""

from __future__ import annotations

from flows._stage import stage_flow

pretrain = stage_flow("pretrain")
