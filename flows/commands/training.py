"""Commands on what a training leaves: show-dump."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.commands.console import wide_console


def add_to(app: typer.Typer) -> None:
    """Register this module's commands on `app`."""
    app.command("show-dump")(show_dump)


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
