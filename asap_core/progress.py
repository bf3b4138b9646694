"""Progress of long work: a rich bar on a terminal, an occasional plain line elsewhere, and whoever listens."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

console = Console(stderr=True)
_PLAIN_INTERVAL_S = 10.0


class Listener(Protocol):
    """Hears what long work tells while it runs."""

    def progress(self, description: str, done: int, total: int, note: str) -> None:
        """`done` of `total` steps are over."""

    def curve(self, name: str, step: int, values: Mapping[str, float]) -> None:
        """Figures of a step of the curve `name`, such as a training's iteration."""

    def said(self, text: str) -> None:
        """A line meant for the person."""


_listeners: list[Listener] = []


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Let `listener` hear all that is told within."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell_curve(name: str, step: int, values: Mapping[str, float]) -> None:
    """Tell the listeners the figures of one step."""
    for listener in _listeners:
        listener.curve(name, step, values)


def say(text: str) -> None:
    """A line for the person, and for the listeners."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)
    for listener in _listeners:
        listener.said(text)


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
        for listener in _listeners:
            listener.progress(self._description, self._done, self._total, note)
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
