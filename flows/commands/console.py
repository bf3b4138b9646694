"""Where tables and reports are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_PIPE_WIDTH = 160
"""Characters of a line that goes to a file or a pipe."""


def wide_console() -> Console:
    """The terminal's width, or a fixed one where there is no terminal."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=_PIPE_WIDTH)
