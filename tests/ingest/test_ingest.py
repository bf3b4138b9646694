"""Ingest as a whole, on logs of a twin whose truth is known: actions, states, clocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import CLIP

from asap_core.errors import ConfigError
from asap_core.robots import get_profile
from asap_core.rollouts.export import export_rollout
from asap_core.rollouts.ingest.actions import ActionRule
from asap_core.rollouts.ingest.ingest import Ingested, ingest
from asap_core.rollouts.ingest.readers import read_log
from asap_core.rollouts.ingest.twin_log import TwinRecord
from asap_core.rollouts.record import Rollout, concatenate

PROFILE = get_profile("g1_23dof")
DEFAULT = np.asarray(PROFILE.default_joint_pos)
SCALE = 0.25
RULE = ActionRule.from_values(
    PROFILE, dict(zip(PROFILE.joint_names, DEFAULT.tolist(), strict=True)), SCALE, clip=CLIP / SCALE
)


@pytest.fixture(scope="module")
def of_mcap(twin_mcap: Path) -> Ingested:
    return ingest(read_log(twin_mcap), PROFILE, RULE)


@pytest.fixture(scope="module")
def of_npz(twin_npz: Path) -> Ingested:
    return ingest(read_log(twin_npz), PROFILE, RULE)


@pytest.fixture(params=["mcap", "npz"])
def ingested(request: pytest.FixtureRequest) -> Ingested:
    found: Ingested = request.getfixturevalue(f"of_{request.param}")
    return found


def _rollout(ingested: Ingested) -> Rollout:
    assert ingested.rollout is not None, ingested.why_no_rollout
    return ingested.rollout


def test_recovered_actions_are_those_of_the_twin(ingested: Ingested, twin: TwinRecord) -> None:
    """C17: 29 motors to 23 joints by name, rows aligned, raw actions to 1e-6, and back to the same commands."""
    rollout = _rollout(ingested)
    rows = rollout.frame[rollout.valid]
    assert len(rows) > 980
    np.testing.assert_allclose(rollout.action[rollout.valid], (twin.joint_target[rows] - DEFAULT) / SCALE, atol=1e-6)
    again = RULE.apply(rollout.action[rollout.valid])
    np.testing.assert_allclose(again, twin.joint_target[rows], rtol=0, atol=1e-6)
    np.testing.assert_allclose(rollout.joint_target[rollout.valid], twin.joint_target[rows], rtol=0, atol=1e-6)


def test_every_saturated_row_is_flagged_and_no_other(ingested: Ingested, twin: TwinRecord) -> None:
    rollout = _rollout(ingested)
    target = twin.joint_target[rollout.frame]
    at_clip = np.abs(target - DEFAULT) >= CLIP - 1e-9
    at_limit = (target <= PROFILE.joint_lower + 1e-9) | (target >= PROFILE.joint_upper - 1e-9)
    truth = (at_clip | at_limit).any(axis=1)
    assert 0.05 < truth.mean() < 0.95
    np.testing.assert_array_equal(rollout.masks["action_saturated"], truth)
    assert "action_saturated" in {finding.code for finding in ingested.findings}


@pytest.mark.parametrize(("default", "scale", "missing"), [(None, 0.25, "--action-default"), ({}, None, "--action-sc")])
def test_a_missing_default_or_scale_is_an_error(
    default: dict[str, float] | None, scale: float | None, missing: str
) -> None:
    with pytest.raises(ConfigError, match=missing):
        ActionRule.from_values(PROFILE, default, scale)


def test_a_default_without_a_joint_is_an_error() -> None:
    pose = {name: 0.0 for name in PROFILE.joint_names if name != "left_knee_joint"}
    with pytest.raises(ConfigError, match="left_knee_joint"):
        ActionRule.from_values(PROFILE, pose, 0.25)


def _rms(rollout: Rollout, twin: TwinRecord, name: str) -> float:
    at = 10 * rollout.frame[rollout.valid]
    return float(np.sqrt(((getattr(rollout.state, name)[rollout.valid] - getattr(twin.state, name)[at]) ** 2).mean()))


# rms over all axes, measured 0.24 mm, 0.45 mrad, 0.86 mm/s, 20 mrad/s, 0.21 mrad, 38 mrad/s; the twin's joint
# velocities ripple at 50 Hz, which the 20 Hz low-pass takes out.
BOUNDS_MCAP = {
    "root_pos": 6e-4, "root_quat": 1e-3, "root_lin_vel": 1.5e-3, "root_ang_vel": 0.025, "joint_pos": 3e-4,
    "joint_vel": 0.05,
}  # fmt: skip
# One sample a step, differentiated at 50 Hz: measured 0.3 mm, 0.83 mrad, 3.1 mm/s, 77 mrad/s, 0.1 mrad, 5 mrad/s.
BOUNDS_NPZ = {
    "root_pos": 6e-4, "root_quat": 1.5e-3, "root_lin_vel": 5e-3, "root_ang_vel": 0.1, "joint_pos": 1.5e-4,
    "joint_vel": 7e-3,
}  # fmt: skip


@pytest.mark.parametrize("name", list(BOUNDS_MCAP))
def test_states_are_those_of_the_twin(of_mcap: Ingested, of_npz: Ingested, twin: TwinRecord, name: str) -> None:
    assert _rms(_rollout(of_mcap), twin, name) < BOUNDS_MCAP[name]
    assert _rms(_rollout(of_npz), twin, name) < BOUNDS_NPZ[name]


def test_nothing_speaks_against_a_sound_log(ingested: Ingested) -> None:
    assert [finding for finding in ingested.findings if finding.severity != "note"] == []
    assert ingested.understood.open == ()
    assert ingested.quality is not None
    assert ingested.quality.usable_s > 19.8


def test_clock_and_lag_are_those_of_the_twin(of_mcap: Ingested) -> None:
    assert of_mcap.sync is not None
    assert of_mcap.lag is not None
    assert of_mcap.sync.clock.offset_s == pytest.approx(0.4, abs=5e-4)
    assert of_mcap.lag.lag_s == pytest.approx(0.0, abs=5e-4)


def test_a_rollout_says_that_a_twin_acted_and_what_it_was_made_from(ingested: Ingested) -> None:
    source = _rollout(ingested).source
    assert source["kind"] == "twin"
    assert source["sha256"] == ingested.raw.sha256
    assert source["base_velocity"] == ("mocap+imu" if ingested.raw.format == "mcap" else "mocap")


def test_logs_with_clocks_of_their_own_can_be_read_together(
    of_mcap: Ingested, of_npz: Ingested, twin_npz: Path, tmp_path: Path
) -> None:
    """The loop's 20 ms are 20.06 ms by the clock of the second, as no two clocks agree."""
    with np.load(twin_npz) as content:
        arrays = dict(content)
    arrays["time"] = arrays["time"][0] + 1.003 * (arrays["time"] - arrays["time"][0])
    np.savez(tmp_path / "motion_1.npz", allow_pickle=False, **arrays)
    slow = ingest(read_log(tmp_path / "motion_1.npz"), PROFILE, RULE)
    joined = concatenate([_rollout(found) for found in (of_mcap, of_npz, slow)])
    assert joined.control_dt == 0.02
    assert "control_rate" not in {finding.code for finding in slow.findings}
    arrays["time"] = arrays["time"][0] + 1.02 * (arrays["time"] - arrays["time"][0])
    np.savez(tmp_path / "motion_2.npz", allow_pickle=False, **arrays)
    found = ingest(read_log(tmp_path / "motion_2.npz"), PROFILE, RULE).findings
    assert [finding.code for finding in found if finding.severity != "note"] == ["control_rate"]


def test_the_streams_are_kept_at_their_own_rate(of_mcap: Ingested, twin: TwinRecord) -> None:
    assert len(of_mcap.table["time"]) == len(twin.time)
    knee = twin.joint_names.index("left_knee_joint")
    np.testing.assert_allclose(of_mcap.table["joint_pos.left_knee_joint"], twin.state.joint_pos[:, knee], atol=1e-3)


def test_without_a_rule_there_are_gaps_and_quality_but_no_rollout(twin_npz: Path) -> None:
    done = ingest(read_log(twin_npz), PROFILE, None)
    assert done.rollout is None
    assert done.why_no_rollout is not None
    assert "--policy" in done.why_no_rollout
    assert len(done.gaps) == PROFILE.num_joints
    assert done.quality is not None


def test_an_exported_rollout_reads_back_the_same(of_mcap: Ingested, tmp_path: Path) -> None:
    """ASAP's pkl holds the state after each action, so rows are one later."""
    rollout = _rollout(of_mcap)
    export_rollout(rollout, PROFILE, tmp_path / "out.pkl", "asap_pkl")
    log = read_log(tmp_path / "out.pkl")
    state, command, pose = (log.of_kind(kind)[0].values for kind in ("joint_state", "joint_command", "odometry"))
    rows = rollout.transitions()
    np.testing.assert_array_equal(command["action"], rollout.action[rows])
    np.testing.assert_array_equal(state["joint_pos"], rollout.state.joint_pos[rows + 1])
    np.testing.assert_array_equal(state["joint_vel"], rollout.state.joint_vel[rows + 1])
    np.testing.assert_array_equal(pose["pos"], rollout.state.root_pos[rows + 1])
    np.testing.assert_array_equal(pose["lin_vel"], rollout.state.root_lin_vel[rows + 1])
