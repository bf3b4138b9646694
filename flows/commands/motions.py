"""Commands on motion files: doctor, convert, screen, profile."""

from __future__ import annotations

import typer


def add_to(app: typer.Typer) -> None:
    """Register this module's commands on `app`."""
