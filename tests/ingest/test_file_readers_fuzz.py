"""Damaged files of every layout: a shorter log that says so, or a clear error; never another exception."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from log_fixtures import WRITERS, file_log_fixtures

from asap_core.errors import InputFileError
from asap_core.rollouts.ingest.readers import READERS, c3d, read_log

MUTATIONS, SLOW_MUTATIONS = 24, 8
"""Per layout; C3D has fewer, for each is read in a process of its own. 584 in all."""
SUFFIXES = sorted({suffix for reader in READERS.values() for suffix in reader.suffixes} - {""})


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return file_log_fixtures(tmp_path_factory.mktemp("logs"))


def damage(data: bytes, rng: np.random.Generator) -> bytes:
    """`data` cut, with flipped, zeroed, repeated or removed bytes."""
    kind, size = rng.integers(6), len(data)
    start = int(rng.integers(size))
    length = int(rng.integers(1, max(2, size // 8)))
    if kind == 0:
        return data[:start]
    if kind == 1:
        return data[:start] + bytes(min(length, size - start)) + data[start + length :]
    if kind == 2:
        return data[:start] + data[start + length :]
    if kind == 3:
        return data[:start] + data[start : start + length] * 2 + data[start + length :]
    out = bytearray(data)
    places = rng.integers(size if kind == 4 else min(size, 2048), size=int(rng.integers(1, 12)))
    for place in places:
        out[place] = rng.integers(256)
    return bytes(out)


@pytest.mark.parametrize("layout", list(WRITERS))
def test_damaged_files_give_a_log_or_a_clear_error(
    logs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    monkeypatch.setattr(c3d, "_PATIENCE_S", 5.0)
    rng = np.random.default_rng(list(WRITERS).index(layout))
    source = logs[layout]
    reader = READERS[next(name for name in sorted(READERS, key=len, reverse=True) if layout.startswith(name))]
    whole = reader.read(source)
    rows = {stream.name: stream.num_samples for stream in whole.streams}
    for number in range(MUTATIONS if layout != "c3d" else SLOW_MUTATIONS):
        copy = tmp_path / str(number) / source.name
        if source.is_dir():
            shutil.copytree(source, copy)
            files = sorted(file for file in copy.rglob("*") if file.is_file())
            target = files[int(rng.integers(len(files)))]
        else:
            copy.parent.mkdir()
            target = copy
        original = (source / target.relative_to(copy) if source.is_dir() else source).read_bytes()
        target.write_bytes(damage(original, rng))
        try:
            log = reader.read(copy)
        except InputFileError:
            continue
        assert log.streams
        for stream in log.streams:
            assert stream.num_samples <= 2 * rows.get(stream.name, 120)


@pytest.mark.parametrize("content", [b"", b"\x00" * 64, b"hello\n", b"PK\x03\x04", b"\x89HDF\r\n\x1a\n", b"a,b\n1,2\n"])
@pytest.mark.parametrize(
    "suffix", sorted({suffix for reader in READERS.values() for suffix in reader.suffixes if suffix})
)
def test_empty_and_foreign_files_are_refused(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(content)
    with pytest.raises(InputFileError):
        read_log(path)


def test_every_reader_refuses_every_foreign_layout_or_reads_it(logs: dict[str, Path]) -> None:
    mine = {name for name in READERS if any(layout.startswith(name) for layout in WRITERS)}
    for name in mine:
        for layout, path in logs.items():
            if path.is_dir() != ("" in READERS[name].suffixes):
                continue
            try:
                log = READERS[name].read(path)
            except InputFileError:
                continue
            assert log.streams, (name, layout)
