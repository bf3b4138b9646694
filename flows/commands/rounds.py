"""`asap rounds`: the loop several times over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from flows.commands.console import wide_console

HERE = Path(".")


def add_to(app: typer.Typer) -> None:
    """Register this module's command on `app`."""
    app.command()(rounds)


def rounds(
    count: Annotated[int, typer.Argument(help="How many rounds; finished ones are kept.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    root: Annotated[Path, typer.Option("--root", help="The project's folder.", show_default="the current one")] = HERE,
) -> None:
    """Collect, align, fine-tune and evaluate again and again, each time from the policy before: what each round bought.

    The table is evaluation/rounds.csv too. Begins with models/pretrained; nothing of the pipeline is overwritten.
    """
    from rich.table import Table

    from tasks.rounds import run_rounds
    from tasks.stages import limit_threads

    limit_threads()
    rows = run_rounds(root, count)
    if as_json:
        typer.echo(json.dumps({f"{row['round']}/{k}": v for row in rows for k, v in row.items()}, sort_keys=True))
        return
    table = Table(title="On the target, E_g_mpjpe in mm", title_justify="left")
    for column in ("round", "delta", "1.0 s open loop, zero → delta", "start", "fine-tune only", "ASAP", "success",
                   "bought", "beyond the control", "gate"):  # fmt: skip
        table.add_column(column)
    for row in rows:
        table.add_row(
            str(row["round"]),
            f"{row['delta']}, {row['acceptance']}",
            f"{row['open_loop_1.0s_zero_mm']:.1f} → {row['open_loop_1.0s_delta_mm']:.1f} mm",
            *(f"{row[f'{arm}_E_g_mpjpe']:.1f}" for arm in ("start", "finetune_only", "asap")),
            " → ".join(f"{row[f'{arm}_success']:.2f}" for arm in ("start", "asap")),
            *(
                f"{row[f'{n}_mm']:.1f} [{row[f'{n}_low']:.1f}, {row[f'{n}_high']:.1f}]"
                for n in ("bought", "beyond_control")
            ),
            str(row["gate"]),
        )
    wide_console().print(table)
