"""`asap profile`: robots of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

profile_app = typer.Typer(help="Robot profiles.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Register this module's commands on `app`."""
    app.add_typer(profile_app, name="profile")


@profile_app.callback()
def profile() -> None:
    """Robot profiles: what the product knows of a robot."""


@profile_app.command("add")
def add(
    model: Annotated[Path, typer.Argument(help="URDF or MJCF of a humanoid that faces +x with z up.")],
    name: Annotated[str | None, typer.Option(help="Name of the robot.", show_default="the file's stem")] = None,
    role: Annotated[
        list[str] | None, typer.Option(help="ROLE=LINK where names do not tell, such as left_foot=l_sole.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write it.", show_default="profiles/NAME.json")
    ] = None,
) -> None:
    """Make a robot profile: links, limits, gains, soles, collision primitives; say what was chosen or changed."""
    from asap_core.errors import ConfigError
    from asap_core.files import file_name
    from asap_core.robots.importing.importer import import_model
    from asap_core.robots.profile_file import write_profile

    roles = {}
    for item in role or []:
        key, equals, link = item.partition("=")
        if not equals:
            raise ConfigError(f"--role {item!r}: expected ROLE=LINK")
        roles[key] = link
    name = name or model.stem
    path = output or Path("profiles") / f"{file_name(name)}.json"
    if path.suffix != ".json" or path.is_dir():
        raise ConfigError(f"--output {path}: expected the name of a .json file, by which a profile is known")
    made, report = import_model(model, name, roles)
    notes = [f"changed: {text}" for text in report.changes] + [f"chosen: {text}" for text in report.chosen]
    write_profile(path, made, notes)
    typer.echo(f"{name}: {made.num_joints} joints, {len(made.links)} links, {sum(x.mass for x in made.links):.1f} kg")
    for found, link in report.roles.items():
        typer.echo(f"  {found:15} {link}")
    for note in notes:
        typer.echo(f"  {note}")
    typer.echo(f"written: {path}; check it, then set `robot: {path.as_posix()}` in params.yaml")
