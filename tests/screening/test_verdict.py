from __future__ import annotations

import numpy as np
import pytest

from asap_core.screening.verdict import Trial, ranges


def test_ranges_are_inclusive_and_all_of_them() -> None:
    assert ranges(np.array([1, 1, 0, 1, 0, 0, 1], bool)) == [[0, 1], [3, 3], [6, 6]]
    assert ranges(np.zeros(4, bool)) == []


def test_share_counts_inner_frames_only_and_names_the_worst() -> None:
    values = np.zeros(26)
    values[[0, 1, 10, 11, 25]] = [9.0, 9.0, 2.0, 3.0, 9.0]
    trial = Trial(26)
    trial.share("slide", values > 1, 0.05, values, "m/s")
    verdict = trial.verdict()
    reason = verdict.reasons[0]
    assert reason.found == pytest.approx(2 / 20)
    assert reason.frames == [[0, 1], [10, 11], [25, 25]]
    assert reason.detail == "worst 9.00 m/s in frame 0"
    assert verdict.score == pytest.approx(1 - 5 / 26)
    assert verdict.figures == {"slide_share": pytest.approx(0.1)}


def test_share_at_the_limit_is_accepted() -> None:
    values = np.zeros(26)
    values[10] = 2.0
    trial = Trial(26)
    trial.share("slide", values > 1, 0.05, values, "m/s")
    assert trial.verdict().accepted


def test_peak_is_broken_by_one_frame() -> None:
    trial = Trial(20)
    trial.peak("speed", np.where(np.arange(20) == 7, 5.0, 1.0), 4.0, "m/s")
    verdict = trial.verdict()
    assert verdict.rules == {"speed"}
    assert verdict.reasons[0].frames == [[7, 7]]


def test_text_spells_out_five_ranges() -> None:
    trial = Trial(40)
    trial.peak("speed", np.arange(40) % 2.0, 0.5, "m/s")
    assert trial.verdict().reasons[0].text().endswith("(frames 1-1, 3-3, 5-5, 7-7, 9-9, and 15 more)")
