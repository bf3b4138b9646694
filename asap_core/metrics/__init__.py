"""Tracking errors, success and the intervals around them."""

from __future__ import annotations

from asap_core.metrics.intervals import Interval, bootstrap_interval, paired_difference, t_interval
from asap_core.metrics.tracking import FAILURE_DISTANCE_M, METRIC_NAMES, TrackingErrors, failure_frame, tracking_errors

__all__ = [
    "FAILURE_DISTANCE_M",
    "METRIC_NAMES",
    "Interval",
    "TrackingErrors",
    "bootstrap_interval",
    "failure_frame",
    "paired_difference",
    "t_interval",
    "tracking_errors",
]
