"""The BVH file itself: a hierarchy of joints with offsets and Euler channels, and a table of frames."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError
from asap_core.rotations import Array

_MOST_JOINTS = 1000
_MOST_BYTES = 1 << 30
_CHANNELS = {f"{axis}{kind}": (kind, axis.lower()) for axis in "XYZ" for kind in ("position", "rotation")}
_COMMON_RATES = (*(float(n) for n in range(1, 481)), *(n / 1.001 for n in (24.0, 30.0, 60.0, 120.0)))


@dataclass
class BvhJoint:
    """One joint of the hierarchy."""

    name: str
    parent: int
    """Index, -1 for the root."""
    offset: Array
    """(3,) from the parent, in the file's unit."""
    channels: list[str] = field(default_factory=list)
    end: Array | None = None
    """(3,) offset of its end site, if it has one."""

    def turns(self, values: Array) -> Array:
        """Rotations (T, 3, 3) against the parent from the joint's channels (T, n), degrees in the order listed."""
        from scipy.spatial.transform import Rotation

        columns = [k for k, name in enumerate(self.channels) if _CHANNELS[name][0] == "rotation"]
        if not columns:
            return np.tile(np.eye(3), (len(values), 1, 1))
        order = "".join(_CHANNELS[self.channels[k]][1].upper() for k in columns)
        return Rotation.from_euler(order, values[:, columns], degrees=True).as_matrix()

    def places(self, values: Array) -> Array:
        """Offsets (T, 3) from the parent."""
        offset = np.tile(self.offset, (len(values), 1))
        columns = [k for k, name in enumerate(self.channels) if _CHANNELS[name][0] == "position"]
        if self.parent < 0 or values[:, columns].any():
            for k in columns:
                offset[:, "xyz".index(_CHANNELS[self.channels[k]][1])] = values[:, k]
        return offset


@dataclass(frozen=True)
class BvhFile:
    """A hierarchy with its motion."""

    joints: list[BvhJoint]
    """Every parent before its children."""
    frames: Array
    """(T, number of channels)."""
    fps: float
    notes: tuple[str, ...] = ()
    """What is doubtful, for the user."""

    @property
    def names(self) -> list[str]:
        """Of the joints, in the file's order."""
        return [joint.name for joint in self.joints]

    def pose(self) -> tuple[Array, Array]:
        """World rotations (T, J, 3, 3) and positions (T, J, 3) of the joints.

        Position channels replace the offset; those of an inner joint that are zero throughout leave it as it is.
        """
        count, first = len(self.frames), 0
        turns, places = np.empty((count, len(self.joints), 3, 3)), np.empty((count, len(self.joints), 3))
        for index, joint in enumerate(self.joints):
            values = self.frames[:, first : first + len(joint.channels)]
            first += len(joint.channels)
            local, offset = joint.turns(values), joint.places(values)
            if joint.parent < 0:
                turns[:, index], places[:, index] = local, offset
            else:
                up = turns[:, joint.parent]
                turns[:, index] = up @ local
                places[:, index] = places[:, joint.parent] + np.einsum("tij,tj->ti", up, offset)
        return turns, places

    def zero_pose(self) -> Array:
        """Joint positions (J, 3) where every rotation is zero, the root at the origin."""
        places = np.zeros((len(self.joints), 3))
        for index, joint in enumerate(self.joints):
            if joint.parent >= 0:
                places[index] = places[joint.parent] + joint.offset
        return places


def load_bvh(path: Path) -> BvhFile:
    """Read a BVH file.

    Raises:
        InputFileError: missing, no text, truncated, or another layout; with the line or the field.
    """
    if not path.is_file():
        raise InputFileError(path, "a folder, expected a file" if path.is_dir() else "missing")
    if path.stat().st_size > _MOST_BYTES:
        raise InputFileError(path, f"size: found {path.stat().st_size} bytes, expected at most {_MOST_BYTES}")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputFileError(path, f"not a BVH text file: {error}") from None
    head, mark, tail = text.partition("MOTION")
    if not head.lstrip().startswith("HIERARCHY") or not mark:
        raise InputFileError(path, "not a BVH file: expected HIERARCHY and then MOTION")
    joints = _Hierarchy(path, head).joints
    frames, fps, notes = _motion(path, tail, sum(len(joint.channels) for joint in joints))
    return BvhFile(joints, frames, fps, notes)


class _Hierarchy:
    """The joints of the text before MOTION."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.joints = path, list[BvhJoint]()
        self._words = iter(text.replace("{", " { ").replace("}", " } ").split())
        stack: list[int] = []
        """Indices of the open joints; -1 stands for an end site."""
        for word in self._words:
            if word in ("ROOT", "JOINT"):
                stack.append(self._open(stack))
            elif word == "End":
                stack.append(self._end(stack))
            elif word == "OFFSET":
                self._offset(stack)
            elif word == "CHANNELS":
                self._channels(stack)
            elif word == "}" and stack:
                stack.pop()
            elif word != "HIERARCHY":
                raise self._error(f"found {word[:40]!r}, expected ROOT, JOINT, End Site, OFFSET, CHANNELS or }}")
        if stack or not self.joints:
            raise self._error(f"{len(stack)} joints are not closed" if stack else "no joint")

    def _error(self, reason: str) -> InputFileError:
        return InputFileError(self.path, f"HIERARCHY: {reason}")

    def _next(self) -> str:
        word = next(self._words, None)
        if word is None:
            raise self._error("ends early")
        return word

    def _numbers(self, field_name: str) -> Array:
        words = [self._next() for _ in range(3)]
        try:
            values = np.array([float(word) for word in words])
        except ValueError:
            raise self._error(f"{field_name}: found {' '.join(words)!r}, expected three numbers") from None
        if not np.isfinite(values).all():
            raise self._error(f"{field_name}: found {' '.join(words)!r}, expected finite numbers")
        return values

    def _open(self, stack: list[int]) -> int:
        name, words = self._next(), list[str]()
        while (word := self._next()) != "{":
            words.append(word)
        name = " ".join([name, *words])
        if bool(stack) != bool(self.joints) or (stack and stack[-1] < 0):
            raise self._error(f"{name}: found a second root, or a joint in an end site")
        if len(self.joints) == _MOST_JOINTS:
            raise self._error(f"found more than {_MOST_JOINTS} joints")
        self.joints.append(BvhJoint(name, stack[-1] if stack else -1, np.zeros(3)))
        return len(self.joints) - 1

    def _end(self, stack: list[int]) -> int:
        if not stack or stack[-1] < 0:
            raise self._error("End Site outside of a joint")
        for expected in ("Site", "{", "OFFSET"):
            if (word := self._next()) != expected:
                raise self._error(f"End Site: found {word[:40]!r}, expected {expected}")
        self.joints[stack[-1]].end = self._numbers(f"End Site of {self.joints[stack[-1]].name}")
        return -1

    def _offset(self, stack: list[int]) -> None:
        if not stack or stack[-1] < 0:
            raise self._error("OFFSET outside of a joint")
        self.joints[stack[-1]].offset = self._numbers(f"OFFSET of {self.joints[stack[-1]].name}")

    def _channels(self, stack: list[int]) -> None:
        if not stack or stack[-1] < 0:
            raise self._error("CHANNELS outside of a joint")
        joint, count = self.joints[stack[-1]], self._next()
        if not count.isdecimal() or int(count) > len(_CHANNELS):
            raise self._error(f"CHANNELS of {joint.name}: found {count[:40]!r}, expected at most {len(_CHANNELS)}")
        joint.channels = [self._next() for _ in range(int(count))]
        wrong = [name for name in joint.channels if name not in _CHANNELS]
        if wrong or len(set(joint.channels)) != len(joint.channels):
            found = " ".join(joint.channels)[:120]
            raise self._error(f"CHANNELS of {joint.name}: found {found}, expected some of {', '.join(_CHANNELS)}, once")


def _motion(path: Path, text: str, width: int) -> tuple[Array, float, tuple[str, ...]]:
    """Frames (T, width), the rate and notes from the text after MOTION."""
    words = text.split()
    if len(words) < 5 or words[0] != "Frames:" or words[2:4] != ["Frame", "Time:"]:
        raise InputFileError(path, f"MOTION: found {' '.join(words[:5])[:80]!r}, expected Frames: and Frame Time:")
    try:
        count, seconds = int(words[1]), float(words[4])
    except ValueError:
        raise InputFileError(path, f"MOTION: found {words[1][:20]!r} frames of {words[4][:20]!r} s") from None
    numbers = len(words) - 5
    if count < 2 or width == 0 or numbers != count * width:
        expected = f"expected {count} frames of {width} numbers, at least 2 of 1"
        raise InputFileError(path, f"MOTION: found {numbers} numbers, {expected}")
    if not (math.isfinite(seconds) and 1e-3 <= seconds <= 1.0):
        raise InputFileError(path, f"Frame Time: found {words[4][:20]} s, expected 0.001 to 1")
    try:
        values = np.array(words[5:], dtype=np.float64)
    except ValueError as error:
        raise InputFileError(path, f"MOTION: {error}") from None
    rates = _rates(words[4], seconds)
    notes = (f"Frame Time {words[4]} fits {rates[1]:.6g} Hz as well as {rates[0]:.6g}",) if len(rates) > 1 else ()
    return values.reshape(count, width), rates[0], notes


def _rates(text: str, seconds: float) -> list[float]:
    """Frames per second: the usual rates that the printed digits of the frame time allow, or 1/seconds."""
    digits = len(text.partition(".")[2]) if "e" not in text.lower() else 17
    half = 0.5 * 10.0**-digits * 1.0001
    fitting = [rate for rate in _COMMON_RATES if abs(1 / rate - seconds) <= half]
    return sorted(fitting, key=lambda rate: abs(1 / rate - seconds)) or [1.0 / seconds]
