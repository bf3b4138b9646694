"""What is collected on which target; the sections `collect` of `params.yaml`."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from asap_core.errors import unknown_name
from asap_core.robots.physics import PhysicsSettings
from asap_core.settings import Settings
from asap_core.simulators.settings import Backend

Split = Literal["fit", "validation", "heldout"]
SPLITS: tuple[Split, ...] = ("fit", "validation", "heldout")
Kind = Literal["twin", "robot"]
"""What acted: a simulator that stands for a robot, or a robot."""


def as_split(name: str) -> Split:
    """The split called `name`.

    Raises:
        UnknownNameError: there is none.
    """
    for split in SPLITS:
        if split == name:
            return split
    raise unknown_name("split", name, SPLITS)


class RolloutsSettings(Settings):
    """Section `rollouts` of `params.yaml`: which data the alignment is fitted on and judged by."""

    kind: Kind = "twin"


class TwinSettings(Settings):
    """How the target differs from the nominal simulator. Read by `collect` and `evaluate` only, never by the fit."""

    strength: dict[str, float] = Field(default_factory=lambda: {"knee": 0.8, "ankle": 0.8})
    """Joint-name part → factor on gains and torque limit."""
    armature: float = Field(default=0.03, ge=0)
    """kg m², every joint."""
    frictionloss: float = Field(default=0.5, ge=0)
    """Nm, every joint."""
    added_mass: dict[str, float] = Field(default_factory=lambda: {"torso_link": 2.0})
    """Link → kg."""
    action_delay: int = Field(default=0, ge=0, le=50)
    """Control steps."""

    def physics(self, nominal: PhysicsSettings) -> PhysicsSettings:
        """The nominal physics with these differences, validated."""
        return PhysicsSettings.model_validate(nominal.model_dump() | self.model_dump())


class StartNoise(Settings):
    """Normal disturbance of a start state."""

    joint_pos: float = Field(default=0.02, ge=0, le=0.5)
    """rad."""
    joint_vel: float = Field(default=0.1, ge=0)
    """rad/s."""


class SplitSettings(Settings):
    """One split of the rollouts. Splits share neither policy snapshots nor start states."""

    snapshots: int = Field(ge=1)
    """How many policy snapshots are rolled out."""
    episodes: int = Field(ge=1)
    """Episodes per snapshot."""


class LocomotionSettings(Settings):
    """A walk that is repeated until enough is recorded, for the standing and stepping between tasks."""

    motion: str
    """One of `motions.names`."""
    minutes: float = Field(default=10.0, gt=0)
    """Of all splits together, which share it as they share the runs of a task."""


class CollectSettings(Settings):
    """Section `collect` of `params.yaml`."""

    motions: tuple[str, ...] = ()
    """Rolled out by each snapshot, `episodes` times each; none: `motions.train`."""
    locomotion: LocomotionSettings | None = None
    """Rolled out besides."""

    backend: Backend | None = None
    """The engine of the twin, in `collect` and `evaluate`; that of `simulation` if not given."""
    twin: TwinSettings = TwinSettings()
    start_noise: StartNoise = StartNoise()
    fit: SplitSettings = SplitSettings(snapshots=4, episodes=4)
    validation: SplitSettings = SplitSettings(snapshots=1, episodes=6)
    heldout: SplitSettings = SplitSettings(snapshots=1, episodes=8)

    @property
    def num_snapshots(self) -> int:
        """Policy snapshots of all splits together."""
        return sum(self.of(split).snapshots for split in SPLITS)

    @property
    def runs(self) -> int:
        """Episodes of one motion in all splits together."""
        return sum(self.of(split).snapshots * self.of(split).episodes for split in SPLITS)

    def locomotion_episodes(self, split: Split, length_s: float) -> int:
        """Episodes a snapshot of `split` walks, where one lasts `length_s`: the least that fill its share."""
        if self.locomotion is None:
            return 0
        share = self.of(split).episodes / self.runs
        return math.ceil(60.0 * self.locomotion.minutes * share / length_s)

    def of(self, split: Split) -> SplitSettings:
        """The settings of one split."""
        settings: SplitSettings = getattr(self, split)
        return settings
