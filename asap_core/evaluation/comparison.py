"""Arms side by side: means with intervals, and paired differences over the same starts."""

from __future__ import annotations

import numpy as np

from asap_core.evaluation.closed_loop import ClosedLoopResult
from asap_core.metrics import METRIC_NAMES, Interval, paired_difference, t_interval

ARMS = ("vanilla", "finetune_only", "asap")
"""The pre-trained policy; the same budget of fine-tuning without a delta; fine-tuning in the aligned simulator."""


def arm_figures(result: ClosedLoopResult, world: str, confidence: float) -> dict[str, dict[str, Interval]]:
    """Arm → figure → mean over all starts and seeds, the interval over seeds where there are several."""
    return {
        arm: {
            name: t_interval(result.values(world, arm, name), result.seeds(world, arm), confidence)
            for name in METRIC_NAMES
        }
        for arm in result.arms
    }


def paired(result: ClosedLoopResult, world: str, first: str, second: str, metric: str, confidence: float) -> Interval:
    """`first − second` by start, clustered by the seeds of `first`.

    Equal seeds are paired; an arm that has one seed (`vanilla`) meets every seed of the other.

    Raises:
        ValueError: the arms' starts or seeds cannot be paired.
    """
    a = _by_seed(result, world, first, metric)
    b = _by_seed(result, world, second, metric)
    if len(b) == 1:
        b = dict.fromkeys(a, next(iter(b.values())))
    if a.keys() != b.keys():
        raise ValueError(f"seeds of {first} {sorted(a)} and of {second} {sorted(b)} cannot be paired")
    left = np.concatenate([a[seed] for seed in a])
    right = np.concatenate([b[seed] for seed in a])
    clusters = [seed for seed in a for _ in a[seed]]
    return paired_difference(left, right, clusters, confidence)


def best_seed(result: ClosedLoopResult, arm: str) -> int:
    """The seed of highest success, then of lowest E_g_mpjpe, on the target.

    Its own figures flatter it; comparison and gate therefore speak of all seeds of an arm.
    """
    success = _by_seed(result, "target", arm, "success")
    error = _by_seed(result, "target", arm, "E_g_mpjpe")
    return min(success, key=lambda seed: (-success[seed].mean(), error[seed].mean(), seed))


def _by_seed(result: ClosedLoopResult, world: str, arm: str, metric: str) -> dict[int, np.ndarray]:
    values, seeds = result.values(world, arm, metric), np.array(result.seeds(world, arm))
    return {int(seed): values[seeds == seed] for seed in dict.fromkeys(seeds.tolist())}
