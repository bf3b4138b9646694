"""The `asap` command line. The method is imported only when a command needs it, so that `asap --help` is instant."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asap_core.errors import AsapError, ConfigError, StageError
from flows.commands import ingest, motions, profile, rounds, screen, training, video
from flows.commands.console import wide_console

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(
    help="ASAP for humanoid skills: align a simulator with a robot, train policies that survive the difference.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
models_app = typer.Typer(help="The model registry.", invoke_without_command=True, no_args_is_help=False)
app.add_typer(models_app, name="models")
motions.add_to(app)
profile.add_to(app)
screen.add_to(app)
ingest.add_to(app)
training.add_to(app)
rounds.add_to(app)
video.add_to(app)

Json = Annotated[bool, typer.Option("--json", help="Print one flat JSON object instead of a table.")]
Root = Annotated[Path, typer.Option("--root", help="The project's folder.", show_default="the current one")]
HERE = Path(".")


@app.command()
def run(
    stage: Annotated[str, typer.Argument(help="A stage of dvc.yaml, such as retarget.")],
    as_json: Json = False,
    root: Root = HERE,
) -> None:
    """Run one stage now, as a Prefect flow if PREFECT_API_URL is set; `dvc repro` runs those that are out of date."""
    from tasks.stages import check_stage, limit_threads, run_stage

    check_stage(stage)
    limit_threads()
    figures = _run_as_flow(stage, root) if os.environ.get("PREFECT_API_URL") else run_stage(stage, root)
    _show(figures, as_json, title=stage)


@app.command()
def params(
    check: Annotated[bool, typer.Option("--check", help="Print nothing if all is right.")] = False,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Put presets/NAME.yaml into params.yaml: asap, cpu, fast, many, real_robot, isaaclab, isaaclab-cpu."
        ),
    ] = None,
    as_json: Json = False,
    root: Root = HERE,
) -> None:
    """Validate params.yaml and print it with every default filled in."""
    from tasks.stages import read_params
    from tasks.summary import flatten

    if preset is not None:
        from asap_core.presets import apply_preset

        changed = apply_preset(root / "params.yaml", preset, root / "presets")
        typer.echo(f"params.yaml: {', '.join(changed) or 'nothing'} changed to preset {preset}", err=True)
    values = dict(flatten(read_params(root).model_dump(mode="json")))
    if not check:
        _show(values, as_json, title="params.yaml")


@app.command()
def summary(as_json: Json = False, root: Root = HERE) -> None:
    """What the pipeline made: the comparison, the registered models, where the report and the UIs are."""
    from tasks.registry import read_manifest
    from tasks.summary import flat_figures, left_out_clips, read_metrics

    metrics = read_metrics(root)
    if as_json:
        _print_json(flat_figures(metrics))
        return
    manifest = read_manifest(root)
    _print_comparison(root)
    _print_table("Registered models", _manifest_rows(manifest))
    for name, reason in left_out_clips(root).items():
        typer.echo(f"left out:   {name}: {reason}")
    typer.echo(f"deployable: {manifest.gate.verdict}: {manifest.gate.reason}")
    typer.echo(f"report:     {root / 'evaluation' / 'report.html'}")
    typer.echo("both UIs:   make ui")
    typer.echo("MLflow:     .venv/bin/mlflow ui --backend-store-uri sqlite:///.asap/mlflow.db")
    typer.echo("Prefect:    PREFECT_HOME=.asap/prefect .venv/bin/prefect server start")


@app.command()
def evaluate(
    policy: Annotated[Path | None, typer.Argument(help="An ONNX policy to run on --motion, instead.")] = None,
    motion: Annotated[Path | None, typer.Option(help="Robot motion that the policy tracks, in any format.")] = None,
    contract: Annotated[
        str | None, typer.Option(help="asap: the contract of ASAP's published policies, which carry none.")
    ] = None,
    pd: Annotated[str | None, typer.Option("--pd", help="implicit or explicit; params.yaml's if absent.")] = None,
    as_json: Json = False,
    root: Root = HERE,
) -> None:
    """Run the evaluation stage and print its figures; the plain names are those of the ASAP policy on the target.

    With a policy and a motion: one closed-loop run in the nominal simulator from the motion's exact first frame.
    """
    from tasks.stages import limit_threads, read_params, run_stage
    from tasks.summary import flat_figures, read_metrics

    limit_threads()
    if policy is not None and motion is not None:
        from tasks.policy import evaluate_policy

        figures = evaluate_policy(read_params(root), policy, motion, contract, pd)
        _show(figures, as_json, title=f"{policy.name} on {motion.name}")
        return
    if policy or motion or contract or pd:
        raise ConfigError("asap evaluate: a policy file and --motion belong together; without both, no other option")
    run_stage("evaluate", root)
    if as_json:
        _print_json(flat_figures(read_metrics(root)))
    else:
        _print_comparison(root)


@models_app.callback()
def models(context: typer.Context, as_json: Json = False, root: Root = HERE) -> None:
    """The model registry; without a subcommand, its versions."""
    if context.invoked_subcommand is None:
        models_list(as_json, root)


@models_app.command("list")
def models_list(as_json: Json = False, root: Root = HERE) -> None:
    """Every version with its aliases."""
    from tasks.registry import list_models

    rows = list_models(root)
    if as_json:
        _print_json({f"{row['model']}/{row['version']}": f"{row['arm']} {row['aliases']}".strip() for row in rows})
        return
    _print_table("Registered models", rows)
    _print_gate(root)


@models_app.command("sync")
def models_sync(as_json: Json = False, root: Root = HERE) -> None:
    """Rebuild the registry from registry/manifest.json; a second call adds nothing."""
    from tasks.registry import sync

    _show(sync(root), as_json, title="models sync")


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help="doctor, ingest, retarget, screen, …; any other name lists them.")],
    only: Annotated[str | None, typer.Option(help="tracking: of speed,squat,walk,jump.")] = None,
    seeds: Annotated[
        int | None, typer.Option(help="tracking, closed-loop: trainings of each clip and arm.", show_default="3")
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="tracking: limit of each training.")] = None,
    threads: Annotated[int | None, typer.Option(help="tracking: of each training, in place of the preset's.")] = None,
    targets: Annotated[
        str | None, typer.Option(help="alignment, ablations, closed-loop: such as altered,altered_delay.")
    ] = None,
    rivals: Annotated[str | None, typer.Option(help="alignment: of zero,sysid,delta_dynamics,delta,two_stage.")] = None,
    folds: Annotated[str | None, typer.Option(help="alignment, ablations: of 0,1,2,3 and all, in sample.")] = None,
    kept: Annotated[bool | None, typer.Option("--kept", help="alignment: show what is kept, fit nothing.")] = None,
    motions: Annotated[str | None, typer.Option(help="closed-loop: published policies, such as CR7_level1.")] = None,
    arms: Annotated[str | None, typer.Option(help="closed-loop: such as vanilla,finetune_only,asap,oracle.")] = None,
    iterations: Annotated[int | None, typer.Option(help="closed-loop: of each fine-tuning.")] = None,
    as_json: Json = False,
    root: Root = HERE,
) -> None:
    """Measure one thing on this machine."""
    from tasks.bench import run_bench
    from tasks.stages import limit_threads

    limit_threads()
    given = {"only": only, "seeds": seeds, "minutes": minutes, "threads": threads, "targets": targets}
    given |= {"motions": motions, "arms": arms, "iterations": iterations}
    given |= {"rivals": rivals, "folds": folds, "kept": kept}
    figures = run_bench(name, root, **{key: value for key, value in given.items() if value is not None})
    if as_json or not all("/" in key for key in figures):
        _show(figures, as_json, title=f"bench {name}")
    else:
        _print_table(f"bench {name}", _rows(figures))


@app.command()
def ui(
    prefect_port: Annotated[int, typer.Option(help="Port of the Prefect server.")] = 4200,
    mlflow_port: Annotated[int, typer.Option(help="Port of the MLflow server.")] = 5000,
    root: Root = HERE,
) -> None:
    """Prefect, MLflow and a worker for the loop on loopback, until Ctrl-C."""
    from infra.local import serve

    serve(root.resolve(), prefect_port, mlflow_port, typer.echo)


def main() -> None:
    """Entry point: an `AsapError` becomes its message on stderr and exit status 1.

    What the terminal's encoding lacks, as in file names of another one, is printed as escapes.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except AsapError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)


def _run_as_flow(stage: str, root: Path) -> Mapping[str, Any]:
    import importlib

    os.environ.setdefault("PREFECT_HOME", str((root / ".asap" / "prefect").resolve()))
    os.environ.setdefault("DO_NOT_TRACK", "1")
    flow = getattr(importlib.import_module(f"flows.{stage}"), stage)
    try:
        state = flow(str(root), return_state=True)
    except RuntimeError as error:
        if "Failed to reach API" not in str(error):
            raise
        raise StageError(f"PREFECT_API_URL: {error}; start it with `make ui`, or unset the variable") from None
    if not state.is_completed():
        raise StageError(state.message or f"{stage}: the flow run ended {state.name}")
    figures: Mapping[str, Any] = state.result()
    return figures


def _manifest_rows(manifest: Any) -> list[dict[str, Any]]:
    return [
        {"model": e.model, "arm": e.arm, "aliases": ", ".join(e.aliases), "sha256": e.sha256[:12]}
        for e in manifest.models
    ]


def _print_gate(root: Path) -> None:
    from tasks.registry import MANIFEST, read_manifest

    if (root / MANIFEST).exists():
        gate = read_manifest(root).gate
        typer.echo(f"deployable: {gate.verdict}: {gate.reason}")


def _show(figures: Mapping[str, Any], as_json: bool, title: str) -> None:
    if as_json:
        _print_json(figures)
    else:
        _print_table(title, [{"figure": key, "value": value} for key, value in figures.items()])


def _rows(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Figures called `row/column` as the rows of a table."""
    rows: dict[str, dict[str, Any]] = {}
    for key, value in figures.items():
        row, _, column = key.partition("/")
        rows.setdefault(row, {"": row})[column] = value
    return list(rows.values())


def _print_json(figures: Mapping[str, Any]) -> None:
    typer.echo(json.dumps(figures, sort_keys=True))


def _print_table(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for column in rows[0] if rows else ["nothing"]:
        table.add_column(column)
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    _print_rich(table)


def _print_comparison(root: Path) -> None:
    from asap_core.reporting.tables import comparison_table

    _print_rich(comparison_table(root))


def _print_rich(table: Table) -> None:
    wide_console().print(table)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
