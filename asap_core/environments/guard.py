"""Keeps the last frames before a state that is no number or explodes, and dumps them once."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.environments.terminations import finite
from asap_core.errors import InputFileError
from asap_core.files import atomic_file
from asap_core.simulators.protocol import Array, RobotState

FRAMES = 100
JOINT_SPEED = 1000.0
"""rad/s beyond which a joint has exploded; the fastest drive's limit is 37."""
ROOT_SPEED = 100.0
"""m/s of the root, and rad/s of it, beyond which a robot has."""
_MOST_ROBOTS = 8
_STATE = tuple(RobotState.__dataclass_fields__)


def exploded(state: RobotState) -> NDArray[np.bool_]:
    """(N,) robots with a number that is not finite, or a speed that no robot has."""
    with np.errstate(invalid="ignore"):
        fast = (np.abs(state.joint_vel) > JOINT_SPEED).any(axis=1)
        fast |= (np.abs(state.root_lin_vel) > ROOT_SPEED).any(axis=1)
        fast |= (np.abs(state.root_ang_vel) > ROOT_SPEED).any(axis=1)
    return fast | ~finite(state)


@dataclass(frozen=True)
class Dump:
    """Up to `FRAMES` control steps of M robots, the last of which exploded; arrays (K, M, …), see `RobotState`."""

    states: dict[str, Array]
    action: Array
    """(K, M, J) raw, applied before the state of the same row."""
    joint_target: Array
    """(K, M, J) rad."""
    ref_frame: NDArray[np.intp]
    """(K, M) reference frame of the state."""
    robots: tuple[int, ...]
    joint_names: tuple[str, ...]
    control_dt: float


class StateGuard:
    """Watches N robots. It holds references to arrays that the environment makes anyway, so that it costs no copies.

    Attributes:
        path: where to dump; nothing is written while it is None.
        dumped: whether it has.
    """

    def __init__(self, joint_names: tuple[str, ...], control_dt: float) -> None:
        self.path: Path | None = None
        self.dumped = False
        self._joint_names = joint_names
        self._dt = control_dt
        self._frames: deque[tuple[RobotState, Array, Array, NDArray[np.intp]]] = deque(maxlen=FRAMES)

    def watch(
        self, state: RobotState, action: Array, joint_target: Array, ref_frame: NDArray[np.intp]
    ) -> NDArray[np.bool_]:
        """Take in one step; (N,) robots that exploded in it, after the first dump as before."""
        self._frames.append((state, action, joint_target, ref_frame))
        broken = exploded(state)
        if broken.any() and self.path is not None and not self.dumped:
            self._dump(self.path, np.nonzero(broken)[0][:_MOST_ROBOTS])
            self.dumped = True
        return broken

    def _dump(self, path: Path, ids: NDArray[np.intp]) -> None:
        states, actions, targets, frames = zip(*self._frames, strict=True)
        arrays: dict[str, Any] = {name: np.stack([getattr(s, name)[ids] for s in states]) for name in _STATE}
        about = {"joint_names": self._joint_names, "control_dt": self._dt, "robots": ids.tolist()}
        with atomic_file(path) as partial, open(partial, "wb") as stream:
            np.savez_compressed(
                stream,
                about=np.array(json.dumps(about)),
                action=np.stack([a[ids] for a in actions]),
                joint_target=np.stack([t[ids] for t in targets]),
                ref_frame=np.stack([f[ids] for f in frames]),
                **arrays,
            )


def read_dump(path: Path | str) -> Dump:
    """Read what a guard wrote.

    Raises:
        InputFileError: missing, or not such a file.
    """
    try:
        with np.load(path, allow_pickle=False) as content:
            arrays = {name: content[name] for name in content.files}
        about = json.loads(str(arrays.pop("about")))
        return Dump(
            states={name: arrays[name] for name in _STATE},
            action=arrays["action"],
            joint_target=arrays["joint_target"],
            ref_frame=arrays["ref_frame"],
            robots=tuple(about["robots"]),
            joint_names=tuple(about["joint_names"]),
            control_dt=float(about["control_dt"]),
        )
    except FileNotFoundError:
        raise InputFileError(path, "missing; expected a dump of the state guard (.npz)") from None
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        raise InputFileError(path, f"no dump of the state guard: {error}") from None
