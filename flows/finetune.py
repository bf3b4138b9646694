"""Stage `finetune` as a Prefect flow."""

from __future__ import annotations

from flows._stage import stage_flow

finetune = stage_flow("finetune")
