"""Recorded behaviour of a target: the `Rollout` record, its dataset and its recorder."""

from __future__ import annotations

from asap_core.rollouts.dataset import check_disjoint, load_split, split_folder
from asap_core.rollouts.record import Rollout, concatenate
from asap_core.rollouts.settings import SPLITS, CollectSettings, Split, TwinSettings

__all__ = [
    "SPLITS",
    "CollectSettings",
    "Rollout",
    "Split",
    "TwinSettings",
    "check_disjoint",
    "concatenate",
    "load_split",
    "split_folder",
]
