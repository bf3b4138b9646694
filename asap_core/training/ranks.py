"""The processes that train one policy together: torchrun starts them, rsl-rl averages their gradients.

A process alone is the first of one, and every function here then does nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import distributed

_PATIENCE = timedelta(hours=1)
"""The first process also evaluates, writes checkpoints and exports while the others wait."""

_SEED_STEP = 1_000_003


@dataclass(frozen=True)
class Ranks:
    """Which of the processes this one is."""

    rank: int = 0
    world_size: int = 1

    @property
    def first(self) -> bool:
        """Whether this process evaluates and writes."""
        return self.rank == 0

    @property
    def seed_offset(self) -> int:
        """Added to the seeds of this process's environment, so that no two processes see the same episodes."""
        return _SEED_STEP * self.rank

    @property
    def multi_gpu(self) -> dict[str, int] | None:
        """What rsl-rl's algorithms take as `multi_gpu_cfg`."""
        if self.world_size == 1:
            return None
        return {"global_rank": self.rank, "local_rank": self.rank, "world_size": self.world_size}

    def device(self, kind: str) -> str:
        """This process's own device of a kind, `cpu` or `cuda`."""
        return f"cuda:{self.rank}" if kind == "cuda" and self.world_size > 1 else kind

    def gather(self, value: Any) -> list[Any]:
        """The values of all processes, in order, on the first one; nothing on the others."""
        if self.world_size == 1:
            return [value]
        together: list[Any] | None = [None] * self.world_size if self.first else None
        distributed.gather_object(value, together)
        return together or []

    def share(self, value: Any) -> Any:
        """The first process's value, on all of them. Also waits for all."""
        if self.world_size == 1:
            return value
        box = [value]
        distributed.broadcast_object_list(box, src=0)
        return box[0]


def join_ranks(device: str) -> Ranks:
    """This process's place among those that torchrun started, with NCCL on GPUs and Gloo on a CPU."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return Ranks()
    if not distributed.is_initialized():
        rank = int(os.environ["RANK"])
        if device == "cuda":
            torch.cuda.set_device(rank)
        distributed.init_process_group("nccl" if device == "cuda" else "gloo", timeout=_PATIENCE)
    return Ranks(distributed.get_rank(), size)
