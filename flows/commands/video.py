"""`asap reconstruct`: a person's video becomes a human motion."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from asap_core.errors import ConfigError, InputFileError, StageError
from flows.commands.console import wide_console

if TYPE_CHECKING:
    from asap_core.motions.human import HumanMotion
    from asap_core.reconstruction.camera import Known
    from asap_core.reconstruction.reconstruct import Choice, Reconstruction

_BESIDE = ("estimates.json", "preview.png", "overlay.mp4")
"""What is written beside the motion."""


def add_to(app: typer.Typer) -> None:
    """Register this module's command on `app`."""
    app.command()(reconstruct)


def reconstruct(
    videos: Annotated[
        list[Path],
        typer.Argument(help="A video; several with --calibration, one per camera; or a result of TRAM, GVHMR or WHAM."),
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The motion to write, .parquet; the rest goes beside it.")
    ] = None,
    camera_height: Annotated[float | None, typer.Option(help="Of the camera above the ground, m.")] = None,
    pitch: Annotated[float | None, typer.Option(help="By which the camera looks down, degrees.")] = None,
    roll: Annotated[
        float | None, typer.Option(help="By which it is turned clockwise, seen from behind, degrees.")
    ] = None,
    focal: Annotated[float | None, typer.Option(help="Focal length, px of the full image.")] = None,
    height: Annotated[float | None, typer.Option(help="Of the person, m.")] = None,
    model: Annotated[Literal["full", "heavy"], typer.Option(help="The landmark network; heavy is slower.")] = "full",
    start: Annotated[float | None, typer.Option("--from", help="Where the motion begins, s.")] = None,
    end: Annotated[float | None, typer.Option("--to", help="Where it ends, s.")] = None,
    calibration: Annotated[
        Path | None, typer.Option(help="Cameras of several videos: Pose2Sim TOML or OpenCV YAML.")
    ] = None,
    estimator: Annotated[
        str | None, typer.Option("--with", help="tram, gvhmr or wham, as params.yaml says where they are installed.")
    ] = None,
    fps: Annotated[float | None, typer.Option(help="Frame rate of the video that a finished result is of.")] = None,
    pictures: Annotated[bool, typer.Option(help="Write the overlay video and the preview.")] = True,
    root: Annotated[Path, typer.Option("--root", help="The project's folder.", show_default="the current one")] = Path(
        "."
    ),
) -> None:
    """A person's video as a motion, with what was estimated, a video to look at and a preview, for asap screen."""
    from tasks.stages import limit_threads

    limit_threads()
    from asap_core.files import write_json
    from asap_core.reconstruction.estimators.estimators import ESTIMATORS, result_of
    from asap_core.reconstruction.overlay import write_overlay
    from asap_core.reconstruction.preview import write_preview
    from asap_core.reconstruction.reconstruct import Choice
    from asap_core.reconstruction.video_file import VIDEO_SUFFIXES
    from asap_core.reconstruction.weights import FOLDER

    destination = output or Path(f"{videos[0].stem}.parquet")
    if destination.suffix != ".parquet":
        raise ConfigError(
            f"--output {destination}: expected a name that ends in .parquet; asap convert makes the others"
        )
    finished = result_of(videos[0]) if videos[0].suffix.lower() not in VIDEO_SUFFIXES else None
    if finished is None and videos[0].suffix in {Path(tool.results).suffix for tool in ESTIMATORS.values()}:
        raise InputFileError(videos[0], f"no whole result of {', '.join(ESTIMATORS)}: damaged, or another file")
    _check_writable(destination)
    if estimator is not None or finished is not None:
        unused: dict[str, object] = {"--camera-height": camera_height, "--pitch": pitch, "--roll": roll}
        unused |= {"--focal": focal, "--height": height, "--from": start, "--to": end, "--calibration": calibration}
        _refuse_unused("--with" if finished is None else f"a result of {finished}", unused)
        _write_all(_estimated(videos, estimator, finished, fps, destination, root), destination)
        return
    _refuse_unused("the embedded estimator", {"--fps": fps})
    choice = Choice(model, root / FOLDER, start, end)
    made = _reconstructed(
        videos, _known(focal, pitch, roll, camera_height, height), choice, destination.stem, calibration
    )
    made.lift.motion.save(destination)
    beside = [destination.with_suffix(f".{kind}") for kind in _BESIDE]
    _remove_files(beside)
    written = [destination, *beside[: 3 if pictures else 1]]
    write_json(written[1], made.to_json())
    if pictures:
        write_preview(made.lift, written[2])
        write_overlay(videos[0], made, written[3])
    _print(made, written)


def _check_writable(destination: Path) -> None:
    """Before the long work, not after it."""
    from asap_core.files import make_folder

    make_folder(destination.parent)
    if not os.access(destination.parent, os.W_OK):
        raise StageError(f"{destination.parent}: the folder cannot be written to")
    if destination.is_dir():
        raise StageError(f"{destination}: a folder, expected the name of a file to write")


def _remove_files(paths: Sequence[Path]) -> None:
    """Those of an earlier motion of the name, so that none is taken for this one's."""
    for path in paths:
        if path.is_file():
            path.unlink()


def _refuse_unused(by: str, options: Mapping[str, object]) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise ConfigError(f"{', '.join(given)}: not used by {by}; leave it out")


def _estimated(
    videos: list[Path], estimator: str | None, finished: str | None, fps: float | None, destination: Path, root: Path
) -> list[HumanMotion]:
    """What another estimator makes of a video, or has made of it."""
    from asap_core.reconstruction.estimators.estimators import import_result, run_estimator
    from tasks.stages import read_params

    if len(videos) > 1:
        raise ConfigError(f"{len(videos)} files: expected one")
    if finished is not None:
        if fps is None:
            raise ConfigError(
                f"{videos[0]}: a result of {finished}, which stores no frame rate; give the video's with --fps"
            )
        return import_result(videos[0], finished, fps)
    estimators = read_params(root).reconstruct.estimators
    return run_estimator(str(estimator), videos[0], estimators, destination.parent / f"{destination.stem}.{estimator}")


def _write_all(motions: list[HumanMotion], destination: Path) -> None:
    """One motion as `destination`, several with numbers."""
    for number, motion in enumerate(motions):
        path = destination if len(motions) == 1 else destination.with_stem(f"{destination.stem}_{number}")
        motion.save(path)
        typer.echo(f"wrote {path}: {motion.name}, {motion.num_frames} frames at {motion.fps:.4g}/s")


def _known(
    focal: float | None, pitch: float | None, roll: float | None, camera_height: float | None, height: float | None
) -> Known:
    from asap_core.reconstruction.camera import Known

    return Known(
        focal=focal,
        pitch=None if pitch is None else math.radians(pitch),
        roll=None if roll is None else math.radians(roll),
        camera_height=camera_height,
        person_height=height,
    )


def _reconstructed(
    videos: list[Path], known: Known, choice: Choice, name: str, calibration: Path | None
) -> Reconstruction:
    from asap_core.reconstruction.reconstruct import reconstruct, reconstruct_views

    if calibration is not None:
        if known.focal or known.pitch is not None or known.camera_height:
            raise ConfigError(
                "--calibration says where the cameras are: leave out --focal, --pitch and --camera-height"
            )
        return reconstruct_views(videos, calibration, known, choice, name)
    if len(videos) > 1:
        raise ConfigError(f"{len(videos)} videos: expected one, or --calibration with the cameras of all")
    return reconstruct(videos[0], known, choice, name, str(videos[0]))


def _print(made: Reconstruction, written: list[Path]) -> None:
    from rich.markup import escape
    from rich.table import Table

    motion = made.lift.motion
    table = Table(
        title=f"{escape(motion.name)}: {motion.num_frames} frames at {motion.fps:.4g}/s", title_justify="left"
    )
    for column in ("quantity", "value", "unit", "from"):
        table.add_column(column)
    for name, estimate in made.lift.estimates.items():
        table.add_row(name.replace("_", " "), f"{estimate.value:.4g}", estimate.unit, estimate.origin)
    table.add_row("confidence", f"{made.lift.confidence.mean():.2f}", "mean", "the network")
    table.add_row("bridged frames", str(int(made.lift.bridged.sum())), "", "")
    console = wide_console()
    console.print(table)
    for note in made.track.notes:
        console.print(f"note: {note}", highlight=False, soft_wrap=True, markup=False)
    for path in written:
        console.print(f"wrote {path}", highlight=False, soft_wrap=True, markup=False)
