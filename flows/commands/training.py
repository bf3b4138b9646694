"""Commands around a training: preflight before it, show-dump after it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from flows.commands.console import wide_console

HERE = Path(".")


def add_to(app: typer.Typer) -> None:
    """Register this module's commands on `app`."""
    app.command()(preflight)
    app.command("show-dump")(show_dump)


def preflight(
    motion: Annotated[Path, typer.Argument(help="A robot's motion, in any format.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    root: Annotated[Path, typer.Option("--root", help="The project's folder.", show_default="the current one")] = HERE,
) -> None:
    """Can a policy be trained on this motion: terminations, joint limits, speeds and the least drive torques.

    Exit code 0: yes, perhaps with warnings; 1: refused, as `asap run pretrain` would.
    """
    from rich.table import Table

    from tasks.preflight import preflight_motion
    from tasks.stages import read_params

    found = preflight_motion(read_params(root), motion)
    if as_json:
        said = {"motion": found.motion, "verdict": found.verdict, "reasons": found.reasons, "joints": found.rows()}
        typer.echo(json.dumps(said, sort_keys=True))
    else:
        table = Table(title="worst value (when, share of frames beyond the limit)", title_justify="left")
        table.add_column("joint")
        for demand in found.demands:
            table.add_column(f"{demand.name}, {demand.unit}", justify="right")
        for row in found.rows():
            cells = (
                f"{row[f'{d.name} {d.unit}']:.2f} ({row[f'{d.name} at s']:.2f} s, {row[f'{d.name} share']:.0%})"
                for d in found.demands
            )
            table.add_row(str(row["joint"]), *cells)
        wide_console().print(table)
        typer.echo(found.text())
    raise typer.Exit(1 if found.verdict == "refused" else 0)


def show_dump(
    file: Annotated[Path, typer.Argument(help="The dump of a training in which a robot exploded (.npz).")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Picture to write.", show_default="FILE with .png")
    ] = None,
) -> None:
    """The last steps before a robot's state was no number or exploded: a table, and a picture of its first robot."""
    from rich.table import Table

    from asap_core.environments.guard import read_dump
    from asap_core.files import atomic_file
    from asap_core.reporting.dump import dump_figure, dump_rows

    dump = read_dump(file)
    rows = dump_rows(dump)
    table = Table(title=file.name, title_justify="left")
    for column in rows[0]:
        table.add_column(column)
    for row in rows:
        table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()))
    wide_console().print(table)
    picture = output or file.with_suffix(".png")
    with atomic_file(picture) as partial:
        dump_figure(dump, 0).savefig(partial, format="png", dpi=110)
    typer.echo(f"wrote {picture}")
