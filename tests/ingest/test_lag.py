"""Command-to-state lag by the drives' PD law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from asap_core.rollouts.ingest.clock import Clocked, clocked
from asap_core.rollouts.ingest.lag import command_lag
from asap_core.rollouts.ingest.streams import Stream

_NAMES = ("left_knee_joint", "right_knee_joint")


def _run(lag_s: float, noise: float = 0.0) -> tuple[Clocked, Clocked]:
    """States at 500 Hz and commands at 50.3 Hz whose torques follow the PD law `lag_s` after the command's stamp."""
    rng = np.random.default_rng(0)
    time, ticks = np.arange(0.0, 10.0, 2e-3), np.arange(0.0, 10.0, 1 / 50.3)
    pos = np.stack([0.3 * np.sin(5 * time), 0.4 * np.cos(3 * time)], axis=1)
    vel = np.stack([1.5 * np.cos(5 * time), -1.2 * np.sin(3 * time)], axis=1)
    target = np.stack([0.3 * np.sin(5 * ticks + 0.2), 0.4 * np.cos(3 * ticks)], axis=1)
    target += rng.normal(0.0, 0.05, target.shape)
    held = target[np.maximum(np.searchsorted(ticks, time - lag_s + 1e-9, side="right") - 1, 0)]
    torque = 100.0 * (held - pos) - 2.0 * vel
    torque += rng.normal(0.0, noise, torque.shape)
    state = Stream(
        "lowstate",
        "joint_state",
        {"joint_pos": pos, "joint_vel": vel, "joint_torque": torque},
        source_time=time,
        labels=_NAMES,
    )
    gains = {"kp": np.full(target.shape, 100.0), "kd": np.full(target.shape, 2.0)}
    command = Stream("lowcmd", "joint_command", {"joint_target": target, **gains}, source_time=ticks, labels=_NAMES)
    return clocked(state), clocked(command)


@pytest.mark.parametrize("lag_s", [0.0043, 0.0112, 0.0207, 0.0331])
def test_the_lag_is_found_finer_than_a_sample(lag_s: float) -> None:
    found = command_lag(*_run(lag_s, noise=0.3))
    assert found.lag_s == pytest.approx(lag_s, abs=4e-4)
    assert found.r2 > 0.95 > found.r2_at_zero


def test_no_lag_is_no_lag() -> None:
    found = command_lag(*_run(0.0))
    assert found.lag_s == 0.0
    assert found.r2 == pytest.approx(1.0, abs=1e-9)


def test_what_is_missing_is_named() -> None:
    state, command = _run(0.01)
    bare = {"joint_target": command.stream.values["joint_target"]}
    found = command_lag(state, replace(command, stream=replace(command.stream, values=bare)))
    assert found.lag_s is None
    assert found.refused == "the log has no command kp, no command kd"


def test_torques_of_another_law_give_no_lag() -> None:
    state, command = _run(0.01)
    values = dict(state.stream.values)
    values["joint_torque"] = np.random.default_rng(1).normal(0.0, 10.0, values["joint_torque"].shape)
    found = command_lag(replace(state, stream=replace(state.stream, values=values)), command)
    assert found.lag_s is None
    assert found.refused is not None
    assert "PD law explains" in found.refused
