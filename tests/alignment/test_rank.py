"""The rank of a delta among rivals fitted on the same rollouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from asap_core.alignment.corrected import ZeroRival
from asap_core.alignment.rank import Rank, rank_delta
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.settings import Split
from asap_core.simulators.settings import SimulationSettings
from tests.alignment.conftest import MakeRollout

WEAK = PhysicsSettings(strength={"knee": 0.7})


class Truth(ZeroRival):
    """Knows the target's physics."""

    def fit(self, *given: object):  # type: ignore[no-untyped-def, override]
        from asap_core.alignment.corrected import Corrected

        return Corrected("truth", self.physics)


def test_place_and_text() -> None:
    rank = Rank({"sysid": 5.0, "delta": 6.0, "delta_dynamics": 21.3, "zero": 39.5})
    assert rank.place == 2
    assert rank.text() == "2 of 4: sysid 5.0, delta 6.0, delta_dynamics 21.3, zero 39.5 mm"
    assert Rank({"delta": 6.0, "zero": 6.0}).place == 1


def test_rivals_are_held_against_the_same_segments(
    profile: RobotProfile, make_rollout: MakeRollout, tmp_path: Path
) -> None:
    splits: tuple[Split, ...] = ("fit", "validation", "heldout")
    rollouts = {split: make_rollout(WEAK, 2, 60, seed) for seed, split in enumerate(splits)}
    simulation = SimulationSettings(threads=1)
    rank = rank_delta(1.0, [Truth(WEAK, "sysid")], rollouts, profile, simulation, 0, tmp_path)
    assert list(rank.errors_mm) == ["sysid", "delta", "zero"]
    assert rank.errors_mm["sysid"] == pytest.approx(0.0, abs=1e-3)
    assert rank.errors_mm["zero"] > 1.5
    assert rank.place == 2
