"""Progress display for long work: a rich bar on a terminal, an occasional plain line elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

console = Console(stderr=True)
_PLAIN_INTERVAL_S = 10.0


class Tracker:
    """Reports the advance of one task. `advance` may carry a short note such as a loss or a success rate."""

    def __init__(self, description: str, total: int, bar: Progress | None) -> None:
        self._description = description
        self._total = total
        self._done = 0
        self._bar = bar
        self._task = bar.add_task(description, total=total, note="") if bar else None
        self._last = time.monotonic()

    def advance(self, steps: int = 1, note: str = "") -> None:
        """Move on by `steps` of the total."""
        self._done += steps
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=steps, note=note)
        elif time.monotonic() - self._last > _PLAIN_INTERVAL_S or self._done == self._total:
            self._last = time.monotonic()
            console.print(f"{self._description}: {self._done}/{self._total} {note}".rstrip(), highlight=False)


@contextmanager
def track(description: str, total: int, done: int = 0) -> Iterator[Tracker]:
    """Show the progress of `total` steps, of which `done` were finished by an earlier, interrupted run."""
    if sys.stderr.isatty():
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        )
        with Progress(*columns, console=console) as bar:
            tracker = Tracker(description, total, bar)
            if done:
                tracker.advance(done, "resumed")
            yield tracker
    else:
        tracker = Tracker(description, total, None)
        if done:
            tracker.advance(done, "resumed")
        yield tracker
