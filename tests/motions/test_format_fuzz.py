"""Damaged files of every format: whatever was done to them, readers and doctor answer or raise `InputFileError`."""

from __future__ import annotations

import io
import os
import pickle
import random
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from human_fixtures import human_fixtures
from motion_fixtures import robot_fixtures, swaying_motion

from asap_core.errors import InputFileError
from asap_core.motions.doctor.examine import examine
from asap_core.motions.doctor.options import Options
from asap_core.motions.formats.clip import HumanClip, RobotClip
from asap_core.motions.formats.table import FORMATS, sniff
from asap_core.restricted_pickle import load_restricted

_LONGEST_READ_S = 20
_FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect", "pty.spawn")
_events: list[str] | None = None


def _audit(event: str, _: Any) -> None:
    if _events is not None and event in _FORBIDDEN:
        _events.append(event)


sys.addaudithook(_audit)


@contextmanager
def _watched() -> Iterator[None]:
    """Fail on a read that hangs and on a process that a file starts."""
    global _events

    def stop(*_: Any) -> None:
        raise TimeoutError

    old = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_LONGEST_READ_S)
    _events = []
    try:
        yield
        assert _events == []
    finally:
        _events = None
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


class _Bomb:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.mark}",)


def _truncated(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def _flipped(data: bytes, rng: random.Random) -> bytes:
    """Some bits turned, often near the start or the end where the structure is."""
    out = bytearray(data)
    end = min(len(out), 600)
    for _ in range(rng.choice((1, 3, 30))):
        place = rng.choice((rng.randrange(len(out)), rng.randrange(end), -1 - rng.randrange(end)))
        out[place] ^= 1 << rng.randrange(8)
    return bytes(out)


_TYPES = (b"<f4", b"<f8", b"<i8", b"<i4", b"<U4", b"|O8", b"|b1", b">f4", b"<c8", b"|V9")


def _relabelled(data: bytes, rng: random.Random) -> bytes:
    """A numpy type or a number in the file's structure written over by another."""
    old = [kind for kind in (*_TYPES, b"f4", b"f8", b"i8") if kind in data]
    if not old:
        return _flipped(data, rng)
    kind = rng.choice(old)
    return data.replace(
        kind, rng.choice([new for new in _TYPES if len(new) == 3])[-len(kind) :], rng.choice((1, 2, -1))
    )


def _odd_value(old: Any, rng: random.Random) -> Any:
    shaped = old if isinstance(old, np.ndarray) and old.ndim else np.zeros((4, 3))
    return rng.choice(
        [
            None, "text", b"bytes", True, -1, float("nan"), 1e308, [], {}, [[1, 2], [3]], {"a": 1}, np.array("text"),
            np.zeros(0), np.zeros((0, 3)), np.zeros((3, 0)), np.array(3), np.array([1 + 2j]), np.array(["a", "b"]),
            shaped.astype(str), shaped[..., None], shaped[:1], shaped[:-1], shaped.reshape(-1),
            np.full(shaped.shape, np.inf), np.zeros(shaped.shape, dtype=bool), np.zeros(shaped.shape, dtype="M8[s]"),
        ]
    )  # fmt: skip


def _retyped(path: Path, data: bytes, mark: Path, rng: random.Random) -> bytes:
    """One field holds something else; in a pickle it may be code."""
    if path.suffix == ".npz":
        return _retyped_npz(path, rng)
    if path.suffix in (".pkl", ".npy"):
        return _retyped_pickle(path, mark, rng)
    if path.suffix in (".csv", ".bvh", ".txt"):
        words = data.decode("utf-8", "replace").replace("\n", " \n ").replace(",", " , ").split(" ")
        words[rng.randrange(len(words))] = rng.choice(
            ("nan", "text", "1e400", "", "-", "\n", "9" * 5000, "\x00", "é", "inf")
        )
        return " ".join(words).encode()
    return _relabelled(data, rng)


def _object(value: Any) -> Any:
    """A 0-d array that holds a Python object, which numpy pickles."""
    out = np.empty((), dtype=object)
    out[()] = value
    return out


def _retyped_npz(path: Path, rng: random.Random) -> bytes:
    with np.load(path) as archive:
        fields = dict(archive)
    name = rng.choice(sorted(fields))
    value = _odd_value(fields[name], rng)
    fields[name] = _object(value) if value is None or isinstance(value, list | dict) else np.asarray(value)
    if rng.random() < 0.2:
        del fields[rng.choice(sorted(fields))]
    buffer = io.BytesIO()
    np.savez(buffer, **fields)
    return buffer.getvalue()


def _retyped_pickle(path: Path, mark: Path, rng: random.Random) -> bytes:
    content = load_restricted(path)
    place = content
    while isinstance(place, dict) and place:
        key = rng.choice(list(place))
        if not isinstance(place[key], dict) or not place[key] or rng.random() < 0.1:
            place[key] = _Bomb(mark) if rng.random() < 0.3 else _odd_value(place[key], rng)
            break
        place = place[key]
    if path.suffix == ".npy":
        buffer = io.BytesIO()
        np.save(buffer, _object(content), allow_pickle=True)
        return buffer.getvalue()
    return pickle.dumps(content, rng.randrange(6))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder, motion = tmp_path_factory.mktemp("whole"), swaying_motion(seconds=0.3)
    paths = list(robot_fixtures(folder / "robot", motion).values()) + list(human_fixtures(folder / "human").values())
    return sorted(paths)


def _damage(path: Path, target: Path, mark: Path, rng: random.Random) -> tuple[Path, str]:
    """A damaged copy of a file or of one file in a folder, sometimes under another name; and what was done."""
    kind = rng.choice(("truncated", "flipped", "relabelled", "retyped", "renamed"))
    suffix = rng.choice((".pkl", ".npz", ".npy", ".pt", ".csv", ".bvh", ".parquet", ".h5", "", ".motion"))
    copy = target / (f"copy{suffix}" if kind == "renamed" else f"copy{path.suffix}")
    if path.is_dir():
        shutil.copytree(path, copy)
        victim = rng.choice(sorted(item for item in copy.rglob("*") if item.is_file()))
        if kind == "renamed":
            victim.rename(victim.with_suffix(suffix))
            return copy, kind
        original = victim
    else:
        for item in path.parent.iterdir():  # what a format keeps beside its file
            if item.is_file() and item.name.startswith("camera"):
                shutil.copy(item, target / item.name)
        original, victim = path, copy
    data = original.read_bytes()
    edits: dict[str, Callable[[], bytes]] = {
        "truncated": lambda: _truncated(data, rng),
        "flipped": lambda: _flipped(data, rng),
        "relabelled": lambda: _relabelled(data, rng),
        "retyped": lambda: _retyped(original, data, mark, rng),
        "renamed": lambda: data,
    }
    victim.write_bytes(edits[kind]())
    return copy, kind


def _outcome(visit: Callable[[Path], Any], path: Path) -> str:
    with _watched():
        try:
            found = visit(path)
        except InputFileError:
            return "refused"
    assert found
    return "read"


def _read_as(name: str) -> Callable[[Path], Any]:
    def read(path: Path) -> Any:
        clips = FORMATS[name].read(path)
        assert all(isinstance(clip, RobotClip | HumanClip) for clip in clips)
        return clips

    return read


def _fuzz(files: list[Path], folder: Path, cases: int, seed: int) -> Counter[str]:
    """Counts of what was done to a file and what came of it, "truncated refused" for instance."""
    rng = random.Random(seed)
    mark, seen = folder / "mark", Counter[str]()
    for case in range(cases):
        file, target = files[case % len(files)], folder / f"case{case}"
        target.mkdir()
        path, kind = _damage(file, target, mark, rng)
        try:
            with _watched():
                others = [candidate.format.id for candidate in sniff(path)[1:]]
            seen[f"{kind} {_outcome(lambda path: examine(path, Options()), path)}"] += 1
            for name in (*others, rng.choice(sorted(FORMATS))):
                _outcome(_read_as(name), path)
        except Exception as error:
            raise AssertionError(f"case {case}: {file.name} {kind}") from error
        assert not mark.exists()
        shutil.rmtree(target)
    assert sum(seen.values()) == cases
    return seen


def test_200_damaged_files_are_understood_or_refused(files: list[Path], tmp_path: Path) -> None:
    seen = _fuzz(files, tmp_path, 200, seed=1)
    assert seen["renamed read"] > 10
    assert seen["truncated refused"] > 10
    assert seen["retyped refused"] > 10


@pytest.mark.slow
def test_2000_damaged_files_are_understood_or_refused(files: list[Path], tmp_path: Path) -> None:
    seen = _fuzz(files, tmp_path, 2000, seed=2)
    assert seen["renamed read"] > 100
    assert seen["truncated refused"] > 100
    assert seen["retyped refused"] > 100
