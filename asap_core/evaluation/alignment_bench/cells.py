"""One cell of the open-loop table: a rival fitted to a target with some motions held out, and its errors on these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.evaluation.alignment_bench.score import SegmentErrors
from asap_core.files import read_object, write_json

_PLAIN = ("target", "rival", "fold", "seed", "code", "chosen", "wall_s", "cpu_s", "report")


@dataclass(frozen=True)
class Cell:
    """A fit's errors on motions that it has not seen (`fold` "all": that it has)."""

    target: str
    rival: str
    fold: str
    seed: int
    code: str
    """Digest of the code that it was made with."""
    errors: SegmentErrors
    zero: SegmentErrors
    """Of the nominal simulator on the same segments."""
    chosen: str
    """Which candidate the rival settled on."""
    report: dict[str, Any]
    wall_s: float
    """Of the fit; of its last part where an earlier run had begun it. So is `cpu_s`, over all threads."""
    cpu_s: float

    def save(self, path: Path) -> None:
        """As JSON, atomically."""
        errors = {"figures": self.errors.figures.tolist(), "zero": self.zero.figures.tolist()}
        plain = {name: getattr(self, name) for name in _PLAIN}
        write_json(path, {**plain, **errors, "episode": list(self.errors.episode)})

    @classmethod
    def load(cls, path: Path) -> Cell:
        """One that `save` wrote.

        Raises:
            InputFileError: damaged.
        """
        content = read_object(path)
        missing = [name for name in (*_PLAIN, "figures", "zero", "episode") if name not in content]
        if missing:
            raise InputFileError(path, f"fields missing: {', '.join(missing)}; delete it to fit anew")
        try:
            episode = tuple(content["episode"])
            errors, zero = (SegmentErrors(np.array(content[key], dtype=float), episode) for key in ("figures", "zero"))
        except (TypeError, ValueError) as error:
            raise InputFileError(path, f"fields figures, zero, episode: {error}; delete it to fit anew") from None
        return cls(errors=errors, zero=zero, **{name: content[name] for name in _PLAIN})


def kept_cells(cache: Path) -> list[Cell]:
    """Of each target, rival, fold and seed the cell made last, whatever the code; of all under `cache`."""
    newest = {(c.target, c.rival, c.fold, c.seed): c for c in _by_age(cache)}
    return list(newest.values())


def _by_age(cache: Path) -> Iterator[Cell]:
    for path in sorted((cache / "scores").glob("*/*.json"), key=lambda p: p.stat().st_mtime):
        yield Cell.load(path)
