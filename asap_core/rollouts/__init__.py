"""Recorded behaviour of a target: the `Rollout` record, its dataset and its recorder."""

from __future__ import annotations

from asap_core.rollouts.dataset import check_disjoint, kind_folder, load_split, split_folder
from asap_core.rollouts.record import Rollout, concatenate
from asap_core.rollouts.settings import SPLITS, CollectSettings, Kind, RolloutsSettings, Split, TwinSettings

__all__ = [
    "SPLITS",
    "CollectSettings",
    "Kind",
    "Rollout",
    "RolloutsSettings",
    "Split",
    "TwinSettings",
    "check_disjoint",
    "concatenate",
    "kind_folder",
    "load_split",
    "split_folder",
]
