"""Physics settings refuse what a simulator could not run."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from asap_core.robots.physics import PhysicsSettings


def test_nominal_has_four_substeps() -> None:
    assert PhysicsSettings().substeps == 4
    assert PhysicsSettings(physics_dt=0.002, control_dt=0.02).substeps == 10


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"physics_dt": 0.003}, "does not divide control_dt"),
        ({"physics_dt": 0.02, "control_dt": 0.01}, "does not divide control_dt"),
        ({"physics_dt": 0.0}, "greater than 0"),
        ({"strength": {"knee": 0.0}}, "expected a factor > 0"),
        ({"strength": {"": 0.5}}, "empty joint pattern"),
        ({"armature": -0.01}, "greater than or equal to 0"),
        ({"friction": 0.0}, "greater than 0"),
        ({"action_delay": -1}, "greater than or equal to 0"),
        ({"armatures": 0.01}, "Extra inputs"),
        ({"friction": float("nan")}, "finite"),
    ],
)
def test_impossible_values_are_refused(fields: dict, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        PhysicsSettings(**fields)
