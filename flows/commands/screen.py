"""`asap screen`: is a motion physically plausible, and why not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from asap_core.errors import AsapError
from flows.commands.console import wide_console

if TYPE_CHECKING:
    from asap_core.screening.screen_files import Judgement, Screener

_ACCEPTED, _REJECTED, _UNREADABLE = 0, 1, 2


def add_to(app: typer.Typer) -> None:
    """Register this module's command on `app`."""
    app.command()(screen)


def screen(
    paths: Annotated[list[Path], typer.Argument(help="Motion files, or folders of them.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    robot_motion: Annotated[
        bool, typer.Option("--robot-motion", help="Retarget a person's clip and judge the robot's motion too.")
    ] = False,
    imitate: Annotated[bool, typer.Option("--imitate", help="Let a simulated robot follow the clip.")] = False,
    imitator: Annotated[
        Literal["mujoco", "masked_mimic"],
        typer.Option(help="What imitates: our controller, or an installed MaskedMimic."),
    ] = "mujoco",
    plot: Annotated[Path | None, typer.Option(help="Folder for one picture per clip.")] = None,
    root: Annotated[Path, typer.Option("--root", help="The project's folder.", show_default="the current one")] = Path(
        "."
    ),
) -> None:
    """Judge motions by physics: verdict, score and reasons with their frames. What is rejected stays listed.

    Exit code 0: all accepted; 1: some rejected; 2: a file cannot be read.
    """
    from asap_core.motions.files_of import find_motions
    from asap_core.screening.screen_files import judge_file

    screener = _screener(root, robot_motion, imitator if imitate else None)
    found = find_motions(paths)
    judged: dict[str, list[Judgement]] = {}
    unreadable = {str(error.path): str(error) for error in found.unreadable}
    for path in found.files:
        try:
            judged[str(path)] = judge_file(path, screener)
        except AsapError as error:
            unreadable[str(path)] = str(error)
            continue
        if plot is not None:
            _plot(judged[str(path)], plot)
    if as_json:
        files = {path: [one.to_json() for one in each] for path, each in judged.items()}
        passed = [str(path) for path in found.passed_over]
        typer.echo(json.dumps({"files": files, "unreadable": unreadable, "passed_over": passed}, indent=2))
    else:
        _print(judged, unreadable)
        for path in found.passed_over:
            typer.echo(f"passed over, no motion format has its suffix: {path}")
    accepted = all(one.verdict.accepted for each in judged.values() for one in each)
    raise typer.Exit(_UNREADABLE if unreadable else _ACCEPTED if accepted else _REJECTED)


def _screener(root: Path, robot_motion: bool, imitator: Literal["mujoco", "masked_mimic"] | None) -> Screener:
    from asap_core.robots import get_profile
    from asap_core.screening.screen_files import Screener
    from tasks.stages import limit_threads, read_params

    limit_threads()
    params = read_params(root)
    return Screener(
        profile=get_profile(params.robot),
        settings=params.screen,
        retargeting=params.retarget,
        physics=params.simulation.physics,
        robot_motion=robot_motion,
        imitator=imitator,
        folder=root / ".asap" / "masked_mimic",
    )


def _plot(judged: list[Judgement], folder: Path) -> None:
    from asap_core.files import atomic_file, file_name, make_folder
    from asap_core.screening.plots import verdict_figure

    make_folder(folder)
    for one in judged:
        if one.screen == "imitator":
            continue
        with atomic_file(folder / f"{file_name(one.clip)}_{one.screen}.png") as partial:
            verdict_figure(one.verdict, one.fps, one.clip).savefig(partial, format="png", dpi=110)


def _print(judged: dict[str, list[Judgement]], unreadable: dict[str, str]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="Screen", title_justify="left")
    for column in ("clip", "screen", "verdict", "score", "reasons"):
        table.add_column(column, overflow="fold")
    for each in judged.values():
        for one in each:
            word = "[green]accepted[/green]" if one.verdict.accepted else "[red]rejected[/red]"
            reasons = "\n".join(reason.text() for reason in one.verdict.reasons)
            table.add_row(escape(one.clip), one.screen, word, f"{one.verdict.score:.2f}", escape(reasons))
    console = wide_console()
    console.print(table)
    for text in unreadable.values():
        console.print(f"[red]unreadable[/red] {escape(text)}", highlight=False, soft_wrap=True)
