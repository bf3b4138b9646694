"""Conversion of files and folders: each clip to a file of its own, failures listed, a manifest of everything."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path

from asap_core.errors import AsapError, ConfigError
from asap_core.files import file_name, sha256_tree, write_json
from asap_core.motions.convert import Target, convert, format_for, kind_of, suffix_of, write_motion
from asap_core.motions.doctor.examine import Diagnosis, examine
from asap_core.motions.doctor.options import Options
from asap_core.motions.files_of import find_motions

MANIFEST = "manifest.json"
_DEFAULT_FORMAT = {"robot": "robot_parquet", "human": "human_parquet"}


@dataclass(frozen=True)
class Converted:
    """What became of one clip, or of a file that could not be read."""

    source: str
    clip: str | None
    output: str | None
    """None if it was left out."""
    sha256: str | None
    """Of the output."""
    reason: str
    """Why it was left out; empty if it was not."""
    notes: tuple[str, ...] = ()
    """Decisions, problems, and what was filled in or left out on the way."""


def convert_file(source: Path, destination: Path, options: Options, target: Target) -> Converted:
    """Convert the one clip of a file.

    Raises:
        InputFileError: unreadable, a question is open, or something is wrong that the options do not settle.
        ConfigError: the format is not said, the file holds several clips, or is the destination.
    """
    _check_other(source, destination)
    report = examine(source, options)
    if len(report.clips) > 1:
        raise ConfigError(f"{source}: holds {len(report.clips)} clips; give a folder to put them in")
    return _write(
        source, report.clips[0], destination, format_for(destination, kind_of(report.clips[0]), target), target
    )


def convert_folder(sources: Path, folder: Path, options: Options, target: Target) -> tuple[Converted, ...]:
    """Convert every clip under a file or folder into `folder`, and list all in its manifest, those left out too.

    Raises:
        InputFileError: `sources` cannot be read or holds no motion file.
        ConfigError: `folder` is `sources`.
        StageError: the place is read-only or the disk is full.
    """
    _check_other(sources, folder)
    found = find_motions([sources])
    if not found.files:
        raise found.unreadable[0]
    taken = {_real(source) for source in found.files}
    results: list[Converted] = []
    for source in found.files:
        results += _convert_all(source, sources, folder, options, target, taken)
    results += [Converted(str(path), None, None, None, "no motion format has its suffix") for path in found.passed_over]
    results += [Converted(str(error.path), None, None, None, str(error)) for error in found.unreadable]
    write_json(folder / MANIFEST, {"clips": [asdict(result) for result in results]})
    return tuple(results)


def _convert_all(
    source: Path, sources: Path, folder: Path, options: Options, target: Target, taken: set[str]
) -> list[Converted]:
    try:
        report = examine(source, options)
    except AsapError as error:
        return [Converted(str(source), None, None, None, str(error))]
    inside = source.relative_to(sources).parent if source != sources else Path()
    results = []
    for found in report.clips:
        kind = kind_of(found)
        try:
            name = target.format or _DEFAULT_FORMAT[kind]
            chosen = format_for(Path(f"x{suffix_of(name)}"), kind, Target(format=name))
            stem = source.stem if len(report.clips) == 1 else f"{source.stem}.{file_name(found.clip.name)}"
            path = _free(folder / inside / f"{stem}{suffix_of(chosen)}", taken)
            results.append(_write(source, found, path, chosen, target))
        except AsapError as error:
            results.append(Converted(str(source), found.clip.name, None, None, str(error)))
    return results


def _free(path: Path, taken: set[str]) -> Path:
    """`path`, or with a number if it is one of the sources or this run has already written it."""
    choice, number = path, 2
    while _real(choice) in taken:
        choice = path.with_name(f"{path.stem}-{number}{path.suffix}")
        number += 1
    taken.add(_real(choice))
    return choice


def _check_other(source: Path, destination: Path) -> None:
    if _real(source) == _real(destination):
        raise ConfigError(f"{destination}: is the source itself")


def _real(path: Path) -> str:
    """The file that a path means, links followed; links in circles stay as they are."""
    return os.path.realpath(path)


def _write(source: Path, found: Diagnosis, path: Path, format_name: str, target: Target) -> Converted:
    motion, notes = convert(found, target)
    write_motion(path, motion, format_name)
    said = [decision.text for decision in found.decisions]
    said += [f"{problem.severity}: {problem.text}" for problem in found.problems]
    return Converted(str(source), found.clip.name, str(path), sha256_tree(path), "", (*said, *notes))
