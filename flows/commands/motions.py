"""Commands on motion files: doctor, convert, screen, profile."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asap_core.errors import AsapError
from flows.commands.console import wide_console

if TYPE_CHECKING:
    from rich.console import Console

    from asap_core.motions.doctor.examine import Diagnosis, FileReport

_CLEAN, _PROBLEMS, _UNREADABLE = 0, 1, 2
_COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}

Robot = Annotated[str | None, typer.Option("--robot", help="Robot of the files: g1_29dof, or a profile (.json).")]
Fps = Annotated[float | None, typer.Option("--fps", help="Frame rate of the files, if they do not say it right.")]
JointOrder = Annotated[str | None, typer.Option("--joint-order", help="unitree29, isaac29, asap23, unitree23, …")]
DofSet = Annotated[str | None, typer.Option("--dof-set", help="asap23 or unitree23, for 23 nameless joints.")]
QuatOrder = Annotated[str | None, typer.Option("--quat-order", help="wxyz or xyzw.")]
UpAxis = Annotated[str | None, typer.Option("--up-axis", help="y or z.")]


def add_to(app: typer.Typer) -> None:
    """Register this module's commands on `app`."""
    app.command()(doctor)
    app.command()(convert)


def doctor(
    files: Annotated[list[Path], typer.Argument(help="Motion files, or folders of them.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    robot: Robot = None,
    fps: Fps = None,
    joint_order: JointOrder = None,
    dof_set: DofSet = None,
    quat_order: QuatOrder = None,
    up_axis: UpAxis = None,
) -> None:
    """What motion files are, with the evidence; what is wrong with them, and how to mend it.

    Exit code 0: all clean; 1: problems or open questions; 2: a file cannot be read.
    """
    from rich.markup import escape

    from asap_core.environments.doctor_preflight import with_preflight
    from asap_core.environments.terminations import TerminationSettings
    from asap_core.motions.doctor.examine import examine
    from asap_core.motions.doctor.options import Options
    from asap_core.motions.files_of import find_motions

    options = Options(robot, fps, joint_order, dof_set, quat_order, up_axis)
    code = _CLEAN
    results: dict[str, Any] = {}
    found = find_motions(files)
    unreadable: dict[Path, AsapError] = {error.path: error for error in found.unreadable}
    for path in found.files:
        try:
            report = with_preflight(examine(path, options), TerminationSettings())
        except AsapError as error:
            unreadable[path] = error
            continue
        code = max(code, _CLEAN if report.clean else _PROBLEMS)
        results[str(path)] = _to_json(report)
        if not as_json:
            _print_report(report)
    for path, reason in unreadable.items():
        results[str(path)] = {"unreadable": str(reason)}
        code = _UNREADABLE
        if not as_json:
            wide_console().print(f"[red]unreadable[/red] {escape(str(reason))}", highlight=False, soft_wrap=True)
    if as_json:
        passed = [str(path) for path in found.passed_over]
        typer.echo(json.dumps({"files": results, "passed_over": passed}, indent=2))
    elif found.passed_over:
        typer.echo(f"passed over, no motion format has their suffix: {', '.join(map(str, found.passed_over))}")
    raise typer.Exit(code)


def convert(
    source: Annotated[Path, typer.Argument(help="A motion file, or a folder of them.")],
    destination: Annotated[Path, typer.Argument(help="A file; for a folder or several clips, a folder.")],
    to: Annotated[str | None, typer.Option("--to", help="Format to write; by the suffix if absent.")] = None,
    to_fps: Annotated[float | None, typer.Option("--to-fps", help="Frame rate to resample to.")] = None,
    to_robot: Annotated[str | None, typer.Option("--to-robot", help="Robot profile to write for.")] = None,
    fill_default: Annotated[
        bool, typer.Option("--fill-default", help="Set joints that the clip lacks to the default pose.")
    ] = False,
    recompute_velocities: Annotated[
        bool, typer.Option("--recompute-velocities", help="Accept clips whose stored velocities are inconsistent.")
    ] = False,
    bridge: Annotated[bool, typer.Option("--bridge", help="Interpolate frames that a video lacks.")] = False,
    robot: Robot = None,
    fps: Fps = None,
    joint_order: JointOrder = None,
    dof_set: DofSet = None,
    quat_order: QuatOrder = None,
    up_axis: UpAxis = None,
) -> None:
    """Convert motions as the doctor understands them: another format, rate or robot.

    A folder as SRC makes a folder with a manifest; what is left out is listed there and makes the exit code 1.
    """
    from asap_core.motions.convert import Target
    from asap_core.motions.convert_files import MANIFEST, convert_file, convert_folder
    from asap_core.motions.doctor.options import Options

    options = Options(robot, fps, joint_order, dof_set, quat_order, up_axis)
    target = Target(to, to_fps, to_robot, fill_default, recompute_velocities, bridge)
    if not (os.path.isdir(source) or os.path.isdir(destination)) and destination.suffix:
        result = convert_file(source, destination, options, target)
        for note in result.notes:
            typer.echo(note)
        typer.echo(f"wrote {result.output}")
        return
    results = convert_folder(source, destination, options, target)
    left_out = [result for result in results if result.output is None]
    for result in left_out:
        named = result.reason.startswith(result.source)
        typer.echo(f"left out {'' if named else f'{result.source}: '}{result.reason}", err=True)
    typer.echo(f"{len(results) - len(left_out)} written, {len(left_out)} left out; see {destination / MANIFEST}")
    raise typer.Exit(_PROBLEMS if left_out else _CLEAN)


def _print_report(report: FileReport) -> None:
    from rich.markup import escape

    console = wide_console()
    console.print(f"[bold]{escape(str(report.path))}[/bold]", soft_wrap=True, highlight=False)
    console.print(f"  {escape(report.format.text)}", soft_wrap=True, highlight=False)
    for found in report.clips:
        if len(report.clips) > 1:
            console.print(f"  [bold]{escape(found.clip.name)}[/bold]", soft_wrap=True, highlight=False)
        _print_decisions(console, found)
        for problem in found.problems:
            colour = _COLOURS[problem.severity]
            where = f" (frames {problem.frames})" if problem.frames else ""
            line = f"[{colour}]{problem.severity}[/{colour}] {problem.code}: {escape(problem.text)}{where}"
            console.print(f"  {line}", soft_wrap=True, highlight=False)
            if problem.mend:
                console.print(f"    mend: {escape(problem.mend)}", soft_wrap=True, highlight=False)
        if found.clean:
            console.print("  [green]clean[/green]")


def _print_decisions(console: Console, found: Diagnosis) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 2))
    for name in ("question", "answer", "figure", "next", "evidence"):
        table.add_column(name, overflow="fold")
    for decision in found.decisions:
        figure = f"{decision.figure:.4g} {decision.unit}".strip()
        other = "" if decision.runner_up is None else f"{decision.runner_up} {decision.figure - decision.margin:.4g}"
        answer = escape(decision.answer) if decision.answer else f"[red]open[/red]: settle with {decision.option}"
        table.add_row(decision.question, answer, figure, other, escape(decision.how))
    console.print(table)


def _to_json(report: FileReport) -> dict[str, Any]:
    clips = []
    for found in report.clips:
        clips.append(
            {
                "name": found.clip.name,
                "clean": found.clean,
                "decisions": [_decision(decision) for decision in found.decisions],
                "problems": [vars(problem) for problem in found.problems],
            }
        )
    return {"format": _decision(report.format), "clean": report.clean, "clips": clips}


def _decision(decision: Any) -> dict[str, Any]:
    """A decision's fields; JSON has no infinity, so a margin without runner-up is null."""
    values = dict(vars(decision))
    if decision.runner_up is None:
        values["margin"] = None
    return values
