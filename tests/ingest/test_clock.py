"""Packets: counters that wrap, reset or come late, arrival jitter, gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from asap_core.errors import StageError
from asap_core.rollouts.ingest.clock import clocked, count_up, in_line, lower_line
from asap_core.rollouts.ingest.streams import Stream


def _stream(stamps: np.ndarray, sequence: np.ndarray | None = None, values: np.ndarray | None = None) -> Stream:
    values = np.arange(len(stamps), dtype=float)[:, None] if values is None else values
    return Stream("lowstate", "joint_state", {"joint_pos": values}, receive_time=stamps, sequence=sequence)


def test_lower_line_is_the_hull_edge_at_the_mean() -> None:
    x = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    y = np.array([1.0, 5.0, 2.0, 9.0, 3.5])
    offset, slope = lower_line(x, y)
    # Hull corners (0, 1), (2, 2), (4, 3.5); mean x is 2, the edge that ends there is taken.
    assert (offset, slope) == pytest.approx((1.0, 0.5))
    assert (y >= offset + slope * x - 1e-12).all()


def test_one_sided_jitter_is_removed_by_sequence_numbers() -> None:
    rng = np.random.default_rng(0)
    tick = np.arange(5000) * 2
    truth = 100.0 + tick * 1e-3 * (1 + 20e-6)
    arrival = truth + rng.exponential(3e-3, len(tick))
    fixed = clocked(_stream(arrival, tick.astype(np.int64)))
    assert fixed.packets.source == "sequence"
    assert np.abs(fixed.time - truth).max() < 2e-5
    assert fixed.packets.jitter_p95_s == pytest.approx(3e-3 * np.log(20), rel=0.05)
    assert fixed.packets.rate_hz == pytest.approx(500.0, rel=1e-4)


def test_late_and_double_packets_are_sorted_out_and_counted() -> None:
    sequence = np.array([10, 12, 16, 14, 18, 18, 20, 24, 26, 28, 30, 32], dtype=np.int64)
    stamps = 1.0 + np.arange(len(sequence)) * 2e-3
    fixed = clocked(_stream(stamps, sequence))
    assert (fixed.packets.out_of_order, fixed.packets.duplicates, fixed.packets.dropped) == (1, 1, 1)
    assert fixed.stream.sequence is not None
    assert fixed.stream.sequence.tolist() == [10, 12, 14, 16, 18, 20, 24, 26, 28, 30, 32]
    assert fixed.stream.values["joint_pos"][:, 0].tolist() == [0, 1, 3, 2, 4, 6, 7, 8, 9, 10, 11]


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_a_counter_that_wraps_goes_on(bits: int) -> None:
    truth = 2**bits - 20 + np.arange(40, dtype=np.int64) * 2
    counted = count_up(truth % 2**bits)
    assert counted.wraps == 1
    assert (counted.count - counted.count[0]).tolist() == (truth - truth[0]).tolist()
    assert not counted.segment.any()


def test_a_counter_that_starts_anew_is_a_reset() -> None:
    sequence = np.append(np.arange(5000, 7000, 2), np.arange(0, 3000, 2)).astype(np.int64)
    stamps = np.append(np.arange(1000), np.arange(1500) + 1500) * 2e-3
    fixed = clocked(_stream(stamps, sequence))
    assert (fixed.packets.resets, fixed.packets.wraps, fixed.packets.out_of_order) == (1, 0, 0)
    np.testing.assert_allclose(fixed.time, stamps, atol=1e-9)
    np.testing.assert_allclose(fixed.packets.gaps, [[999 * 2e-3, 3.0]], atol=1e-9)


def test_regular_stamps_are_put_on_a_line_and_missing_ones_counted() -> None:
    rng = np.random.default_rng(1)
    kept = np.delete(np.arange(500), [100, 101, 102, 300])
    stamps = kept * 0.02 + rng.normal(0.0, 4e-4, len(kept))
    fixed = clocked(_stream(stamps))
    assert fixed.packets.source == "counted"
    assert fixed.packets.dropped == 4
    assert np.abs(fixed.time - kept * 0.02).max() < 1e-4
    assert len(fixed.packets.gaps) == 1


def test_bursts_without_numbers_are_left_as_they_came() -> None:
    stamps = np.repeat(np.arange(100) * 0.05, 3) + np.tile([0.0, 1e-4, 2e-4], 100)
    fixed = clocked(_stream(stamps))
    assert fixed.packets.source == "stamps"
    np.testing.assert_array_equal(fixed.time, stamps)


def test_repeated_payloads_show_the_rate_behind_them() -> None:
    values = np.repeat(np.arange(50.0), 10)[:, None]
    fixed = clocked(_stream(np.arange(500) * 2e-3, np.arange(500, dtype=np.int64), values))
    assert fixed.packets.repeats == 450
    assert fixed.packets.unique_rate_hz == pytest.approx(50.0)


@pytest.mark.parametrize(
    ("stamps", "words"),
    [(np.array([1.0]), "1 sample"), (np.array([1.0, np.nan]), "sample 1"), (np.array([1.0, 1.0]), "all time stamps")],
)
def test_streams_without_a_clock_are_refused(stamps: np.ndarray, words: str) -> None:
    with pytest.raises(StageError, match=words):
        clocked(_stream(stamps))


@pytest.mark.parametrize("stamps", ["source_time", "receive_time"])
def test_episodes_that_start_anew_follow_each_other(stamps: str) -> None:
    once = np.arange(40) * 0.02
    values = {"joint_pos": np.arange(80.0)[:, None], "episode": np.repeat([0, 1], 40)}
    times: dict[str, Any] = {stamps: np.tile(once, 2)}
    twice = Stream("set", "joint_state", values, **times)
    found = clocked(in_line(twice))
    np.testing.assert_array_equal(found.stream.values["joint_pos"], values["joint_pos"])
    np.testing.assert_allclose(found.time[40:], found.time[39] + 1.0 + once, atol=1e-9)
    assert found.packets.duplicates == found.packets.out_of_order == 0
    assert len(found.packets.gaps) == found.packets.dropped == 0
    one = Stream("run", "joint_state", values, source_time=np.arange(80) * 0.02)
    assert in_line(one) is one
