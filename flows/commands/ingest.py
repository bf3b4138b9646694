"""Commands on logs of real runs: ingest, gaps, export."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from flows.commands.console import wide_console

if TYPE_CHECKING:
    from rich.console import Console

    from asap_core.evaluation.replay_gap import ReplayGapRow
    from asap_core.rollouts.ingest.gap import JointGap
    from asap_core.rollouts.ingest.ingest import Ingested
    from asap_core.settings import Settings
    from tasks.ingest import LogResult

S = TypeVar("S", bound="Settings")
_COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}


def add_to(app: typer.Typer) -> None:
    """Register this module's commands on `app`."""
    app.command()(ingest)
    app.command()(export)
    app.command()(gaps)


def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Logs, or folders of them.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Data set to append to; without it the logs are looked at only."),
    ] = None,
    robot: Annotated[str, typer.Option(help="Robot profile, or a file of asap profile add.")] = "g1_23dof",
    split: Annotated[str, typer.Option(help="fit, validation or heldout.")] = "fit",
    policy: Annotated[Path | None, typer.Option(help="The policy that acted (ONNX with its contract).")] = None,
    start_frame: Annotated[
        int | None, typer.Option(help="Reference frame of the first control step, if the policy acts about its clip.")
    ] = None,
    action_default: Annotated[
        str | None, typer.Option(help="Without a policy: profile, the robot's default pose, is what action 0 commands.")
    ] = None,
    action_scale: Annotated[float | None, typer.Option(help="Without a policy: rad per unit action.")] = None,
    motion: Annotated[str | None, typer.Option(help="Name of the motion, if no policy says it.")] = None,
    control_dt: Annotated[float, typer.Option(help="s between actions.")] = 0.02,
    body: Annotated[str | None, typer.Option(help="Mocap body on the pelvis.")] = None,
    mocap: Annotated[
        Path | None, typer.Option(help="Motion capture of the run in a file of its own; for one log.")
    ] = None,
    columns: Annotated[Path | None, typer.Option(help="YAML that says what the columns of CSV files are.")] = None,
    joint_order: Annotated[str | None, typer.Option(help="unitree29, isaac29, asap23, unitree23: of states.")] = None,
    command_order: Annotated[str | None, typer.Option(help="The same of commands.")] = None,
    imu_quat_order: Annotated[str | None, typer.Option(help="wxyz or xyzw.")] = None,
    pose_quat_order: Annotated[str | None, typer.Option(help="wxyz or xyzw, of mocap.")] = None,
    time_unit: Annotated[float | None, typer.Option(help="s per unit of the stamps.")] = None,
    angle_unit: Annotated[str | None, typer.Option(help="rad or deg.")] = None,
    velocity_unit: Annotated[str | None, typer.Option(help="rad or deg, of joint velocities.")] = None,
    gyro_unit: Annotated[str | None, typer.Option(help="rad/s or deg/s.")] = None,
    accel_unit: Annotated[str | None, typer.Option(help="m/s2 or g.")] = None,
    length_unit: Annotated[str | None, typer.Option(help="m, cm or mm.")] = None,
    up_axis: Annotated[str | None, typer.Option(help="x, y or z.")] = None,
    twist_frame: Annotated[str | None, typer.Option(help="world or body.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Read logs anew that are in the data set.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list, one object a log.")] = False,
) -> None:
    """Logs of real runs become control steps, each choice with its evidence, appended to a data set.

    Exit code 0: every log is in (or was looked at); 1: a log has an error; 2: a log was left out.
    """
    from asap_core.robots import get_profile
    from asap_core.rollouts.ingest.ingest import IngestSettings
    from asap_core.rollouts.ingest.understand import UnderstandOptions
    from asap_core.rollouts.settings import as_split
    from tasks.ingest import ActionSource, Request, ingest_logs, to_json

    said = {
        "joint_order": joint_order,
        "command_order": command_order,
        "imu_quat_order": imu_quat_order,
        "pose_quat_order": pose_quat_order,
        "time_unit": time_unit,
        "angle_unit": angle_unit,
        "velocity_unit": velocity_unit,
        "gyro_unit": gyro_unit,
        "accel_unit": accel_unit,
        "length_unit": length_unit,
        "up_axis": up_axis,
        "twist_frame": twist_frame,
    }
    request = Request(
        paths=tuple(paths),
        output=output,
        split=as_split(split),
        profile=get_profile(robot),
        actions=ActionSource(policy, start_frame, action_default, action_scale),
        motion=motion,
        replace=replace,
        mocap=mocap,
        columns=columns,
        settings=_validated(IngestSettings, {"control_dt": control_dt, "body": body}),
        options=_validated(UnderstandOptions, said),
    )
    results = ingest_logs(request)
    if as_json:
        typer.echo(json.dumps([to_json(result) for result in results], indent=2))
    else:
        for result in results:
            _print_result(result)
        _print_summary(results, output)
    raise typer.Exit(max(map(_code, results)))


def _validated(kind: type[S], values: dict[str, Any]) -> S:
    """Settings from options.

    Raises:
        ConfigError: a value is not among the valid ones; the option is named.
    """
    from pydantic import ValidationError

    from asap_core.errors import ConfigError

    try:
        return kind.model_validate(values)
    except ValidationError as error:
        problems = [
            f"--{'.'.join(map(str, p['loc'])).replace('_', '-')}: {p['msg']}; found {p['input']!r}"
            for p in error.errors()
        ]
        raise ConfigError("; ".join(problems)) from None


def _code(result: LogResult) -> int:
    if result.outcome == "left out":
        return 2
    errors = [] if result.ingested is None else [f for f in result.ingested.findings if f.severity == "error"]
    return 1 if errors else 0


def _print_result(result: LogResult) -> None:
    console = wide_console()
    console.print(f"\n[bold]{result.path}[/bold]: {result.outcome}", highlight=False)
    if result.problem:
        console.print(f"  [red]{result.problem}[/red]", highlight=False)
    if result.ingested is not None:
        _print_ingested(result.ingested, console)


def _print_ingested(done: Ingested, console: Console) -> None:
    for item in done.summaries():
        rate = "" if item.rate_hz is None else f" {item.rate_hz:.1f} Hz,"
        left_out = "" if item.used else " (left out)"
        text = f"  {item.name}: {item.kind},{rate} {item.samples} samples: {', '.join(item.fields)}{left_out}"
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    for decision in done.understood.decisions:
        console.print(f"  {decision.text}", style="dim", highlight=False, markup=False, soft_wrap=True)
    for finding in done.findings:
        text = f"  {finding.severity}: {finding.text}"
        console.print(text, style=_COLOURS[finding.severity], highlight=False, markup=False, soft_wrap=True)
    if done.gaps:
        _print_gaps(done.gaps, console)
    if done.quality is not None:
        quality = done.quality
        console.print(f"  usable: {quality.usable_s:.1f} of {quality.recorded_s:.1f} s in {len(quality.runs)} runs")
    if done.why_no_rollout:
        console.print(f"  no rollout: {done.why_no_rollout}", style="yellow", markup=False, soft_wrap=True)


def gaps(
    dataset: Annotated[Path, typer.Argument(help="Data set of asap ingest.")],
    split: Annotated[str, typer.Option(help="fit, validation or heldout.")] = "heldout",
    robot: Annotated[str, typer.Option(help="Robot profile.")] = "g1_23dof",
    root: Annotated[Path, typer.Option(help="The project's folder, for its nominal simulator.")] = Path("."),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """The gap of logged runs: joint by joint, and of their open-loop replay in the nominal simulator.

    Beside each replay error stands its floor: the error that the nominal simulator has against itself, given what
    ingest does not know of the states.
    """
    from dataclasses import asdict

    from asap_core.robots import get_profile
    from asap_core.rollouts.settings import as_split
    from tasks.gaps import gaps_of
    from tasks.stages import read_params

    found = gaps_of(dataset, as_split(split), get_profile(robot), read_params(root).simulation)
    if as_json:
        nulls = json.loads(json.dumps(asdict(found)).replace("NaN", "null"))
        typer.echo(json.dumps(nulls, indent=2))
        return
    console = wide_console()
    console.print(f"{found.logs} logs of a {found.kind}, split {split}", highlight=False)
    _print_gaps(found.joints, console)
    _print_replay(found.replay, console)


def _print_replay(rows: Sequence[ReplayGapRow], console: Console) -> None:
    from rich.table import Table

    title = f"open-loop replay in the nominal simulator, mm over all links, {rows[0].segments} segments"
    table = Table(title=title, title_justify="left")
    for column in ("horizon s", "error", "floor of the same simulator"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(f"{row.horizon_s:g}", row.error.text(), row.floor.text())
    console.print(table)


def _print_gaps(gaps: Sequence[JointGap], console: Console) -> None:
    from rich.table import Table

    table = Table(title="gap between command and joint", title_justify="left")
    for column in ("joint", *gaps[0].FIELDS):
        table.add_column(column, justify="left" if column == "joint" else "right")
    for gap in gaps:
        values = (getattr(gap, name) for name in gap.FIELDS)
        table.add_row(gap.joint, *("" if value != value else f"{value:.3g}" for value in values))
    console.print(table)


def _print_summary(results: list[LogResult], output: Path | None) -> None:
    counts: dict[str, int] = {}
    for result in results:
        counts[result.outcome] = counts.get(result.outcome, 0) + 1
    typer.echo(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    if output is not None and any(result.outcome in ("added", "replaced") for result in results):
        typer.echo(f"data set: {output}; keep it under DVC with: dvc add {output}")


def export(
    source: Annotated[Path, typer.Argument(help="A rollout (.parquet).")],
    destination: Annotated[Path, typer.Argument(help="File or folder to write.")],
    to: Annotated[str, typer.Option("--to", help="asap_pkl, pace, lerobot or csv.")],
    robot: Annotated[str, typer.Option(help="Robot profile.")] = "g1_23dof",
) -> None:
    """Write a rollout in a format of other tools."""
    from asap_core.robots import get_profile
    from asap_core.rollouts.export import export_rollout
    from asap_core.rollouts.record import Rollout

    profile = get_profile(robot)
    rollout = Rollout.load(source, profile)
    export_rollout(rollout, profile, destination, to)
    typer.echo(f"wrote {destination}")
