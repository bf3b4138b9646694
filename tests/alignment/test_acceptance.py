"""Acceptance of a delta model: each criterion on figures that are known, and the refusal in `finetune`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from asap_core.alignment.acceptance import Acceptance, Check, beats_zero, bounded, in_range, work_bounded
from asap_core.config import load_params
from asap_core.errors import InputFileError, StageError
from asap_core.files import write_json
from tasks import finetune

RNG = np.random.default_rng(0)


def test_a_gain_on_every_episode_beats_zero() -> None:
    zero = RNG.uniform(20.0, 40.0, 12)
    check = beats_zero(zero, 0.5 * zero, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
    assert check.passed
    assert "50%" in check.reason
    assert "over 4 units" in check.reason


def test_a_gain_on_one_episode_of_four_does_not() -> None:
    zero = np.full(12, 30.0)
    delta = np.repeat([5.0, 31.0, 31.0, 31.0], 3)
    assert delta.mean() < zero.mean()
    assert not beats_zero(zero, delta, np.repeat([0, 1, 2, 3], 3).tolist()).passed


def test_zero_does_not_beat_itself() -> None:
    zero = np.full(6, 30.0)
    assert not beats_zero(zero, zero, [0, 0, 1, 1, 2, 2]).passed


def test_one_episode_alone_is_said() -> None:
    assert "one episode alone" in beats_zero(np.full(4, 30.0), np.full(4, 20.0), [7] * 4).reason


def test_bounds() -> None:
    delta = RNG.uniform(-0.4, 0.4, (50, 4))
    assert bounded(delta, 0.5, 0.02).passed
    beyond = delta.copy()
    beyond[3, 1] = 0.6
    assert not bounded(beyond, 0.5, 0.02).passed
    beyond[3, 1] = np.nan
    assert not bounded(beyond, 0.5, 0.02).passed
    stuck = delta.copy()
    stuck[:, 0] = 0.5
    check = bounded(stuck, 0.5, 0.02)
    assert not check.passed
    assert check.reason.startswith("25.00% of corrections at the bound")


def test_range() -> None:
    fitted = RNG.uniform(-1.0, 1.0, (2000, 3, 2))
    assert in_range(fitted, RNG.uniform(-1.0, 1.0, (500, 3, 2)), 0.95).passed
    far = RNG.uniform(-1.0, 1.0, (500, 3, 2))
    far[:, 0, 0] = 5.0
    check = in_range(fitted, far, 0.95)
    assert not check.passed
    assert check.reason.startswith("83.3%")


def test_work() -> None:
    """A stiffness deficit of 0.2 takes a fifth of the drives' work; a correction along the velocity feeds energy in."""
    vel, torque, kp = RNG.normal(size=(400, 3)), RNG.normal(size=(400, 3)), np.array([100.0, 50.0, 20.0])
    torque = np.abs(torque) * np.sign(vel)
    taken = work_bounded(-0.2 * torque / kp, torque, vel, kp, 0.5)
    assert taken.passed
    assert "-0.20 of the drives' work" in taken.reason
    assert not work_bounded(0.7 * torque / kp, torque, vel, kp, 0.5).passed


@pytest.mark.parametrize("passed", [True, False])
def test_one_failed_check_rejects(passed: bool) -> None:
    acceptance = Acceptance((Check("a", True, "fine"), Check("b", passed, "too much")))
    assert acceptance.verdict == ("accepted" if passed else "rejected")
    assert acceptance.reasons == (() if passed else ("too much",))


def test_finetune_refuses_a_rejected_delta(tmp_path: Path, repo_root: Path) -> None:
    params = load_params(repo_root / "params.yaml")
    report = tmp_path / "models" / "delta" / "report.json"
    report.parent.mkdir(parents=True)
    write_json(report, {"chosen": "zero"})
    with pytest.raises(InputFileError, match="field acceptance"):
        finetune.run(params, tmp_path)
    rejected = Acceptance((Check("beats_zero", False, "gain 0.00 [0.00, 0.00] mm"),))
    write_json(report, {"acceptance": rejected.as_dict()})
    with pytest.raises(StageError, match=r"rejected: beats_zero: gain 0\.00.*allow_rejected_delta"):
        finetune.run(params, tmp_path)
    allowed = params.model_copy(update={"finetune": params.finetune.model_copy(update={"allow_rejected_delta": True})})
    with pytest.raises(InputFileError, match="retargeted"):
        finetune.run(allowed, tmp_path)
