"""The tracking environment's own terminations, evaluated on the reference itself before anything is trained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap_core.environments.reference import ReferenceMotion
from asap_core.environments.terminations import TerminationSettings, failed, tilt_of
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.profile import RobotProfile


@dataclass(frozen=True)
class Preflight:
    """What the terminations say of each of T reference frames, as if the robot were exactly there."""

    ends: NDArray[np.bool_]
    """(T,) frames in which an episode would end although the robot follows perfectly."""
    texts: tuple[str, ...]
    """One for each kind of violation, with the frame and the figure beside its limit."""

    @property
    def accepted(self) -> bool:
        """No frame ends an episode."""
        return not self.ends.any()

    def text(self) -> str:
        """Where the first episode would end, and why."""
        first, count = int(self.ends.argmax()), int(self.ends.sum())
        share = f"{count} of {len(self.ends)} frames end an episode"
        return f"would end at step {first}: {'; '.join(self.texts)} ({share})"


def preflight(reference: ReferenceMotion, profile: RobotProfile, settings: TerminationSettings) -> Preflight:
    """Evaluate the terminations with a robot that is exactly in each reference frame, at the first distance limit.

    The robot's links come from its joints by kinematics, the reference's are those the environment compares with: a
    reference whose links do not belong to its joints fails too.
    """
    state = reference.state
    links = Kinematics(profile).forward(state.root_pos, state.root_quat, state.joint_pos).pos
    distance = np.linalg.norm(links - reference.links.pos, axis=-1)
    limit = settings.distance_start
    tilt = tilt_of(state.root_quat)
    texts = []
    if (tilt > settings.tilt).any():
        frame = int((tilt > settings.tilt).argmax())
        texts.append(f"pelvis tilt {tilt[frame]:.2f} > {settings.tilt:.2f} in frame {frame}")
    if (distance > limit).any():
        frame, link = (int(i[0]) for i in np.nonzero(distance > limit))
        name = profile.link_names[link]
        texts.append(f"{name} {distance[frame, link]:.2f} m > {limit:.2f} m from its own reference in frame {frame}")
    ends = failed(state, distance, limit, settings.tilt)
    if ends.any() and not texts:
        texts.append(f"a joint angle or speed is not finite in frame {int(ends.argmax())}")
    return Preflight(ends, tuple(texts))
