"""Several reference motions as one row of frames, for one policy over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from asap_core.environments.reference import Phase, ReferenceMotion
from asap_core.robots.kinematics import LinkStates
from asap_core.simulators.protocol import RobotState

Array = NDArray[np.floating]


@dataclass(frozen=True)
class MotionSet:
    """M motions one after the other: frame numbers go over all of them, and an episode stays within one.

    Args:
        motions: at the same control rate, at least one.

    Raises:
        ValueError: no motion, different rates, or a name that stands twice.
    """

    motions: tuple[ReferenceMotion, ...]

    def __post_init__(self) -> None:
        names = [motion.name for motion in self.motions]
        rates = {motion.control_dt for motion in self.motions}
        if len(rates) != 1:
            raise ValueError(f"motions {', '.join(names)}: control steps {sorted(rates)}, expected one")
        if len(set(names)) < len(names):
            raise ValueError(f"motions {', '.join(names)}: a name stands twice")

    @property
    def name(self) -> str:
        """The names, in order."""
        return ", ".join(motion.name for motion in self.motions)

    @property
    def control_dt(self) -> float:
        """s."""
        return self.motions[0].control_dt

    @cached_property
    def state(self) -> RobotState:
        """Root and joints of all frames."""
        names = RobotState.__dataclass_fields__
        return RobotState(**{name: np.concatenate([getattr(m.state, name) for m in self.motions]) for name in names})

    @cached_property
    def links(self) -> LinkStates:
        """Link states of all frames, world frame."""
        names = LinkStates.__dataclass_fields__
        return LinkStates(**{name: np.concatenate([getattr(m.links, name) for m in self.motions]) for name in names})

    @property
    def num_frames(self) -> int:
        """Of all motions."""
        return sum(motion.num_frames for motion in self.motions)

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """(M,) first frame of each motion."""
        lengths = [motion.num_frames for motion in self.motions]
        return np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.intp)

    @cached_property
    def first_frame(self) -> NDArray[np.intp]:
        """(T,) for each frame the first one of its motion."""
        return np.repeat(self.starts, [motion.num_frames for motion in self.motions])

    @cached_property
    def last_frame(self) -> NDArray[np.intp]:
        """(T,) for each frame the last one of its motion."""
        lengths = np.array([motion.num_frames for motion in self.motions])
        return np.repeat(self.starts + lengths - 1, lengths)

    def phases(self, kind: Phase) -> Array:
        """(T,) phase of each frame in its own motion."""
        return np.concatenate([motion.phases(kind) for motion in self.motions])

    def motion_of(self, frame: NDArray[np.intp]) -> NDArray[np.intp]:
        """(N,) place in `motions` of the motion that frames (N,) belong to."""
        return np.searchsorted(self.starts, frame, side="right") - 1


Reference = ReferenceMotion | MotionSet
"""What an environment tracks."""


def joined(motions: Sequence[ReferenceMotion]) -> Reference:
    """The one motion, or the set of several."""
    return motions[0] if len(motions) == 1 else MotionSet(tuple(motions))


def motions_of(reference: Reference) -> tuple[ReferenceMotion, ...]:
    """The motions of a reference, one by one."""
    return reference.motions if isinstance(reference, MotionSet) else (reference,)
