"""What the three stages before training share: a batch of clips goes on without those that fail, and says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asap_core.errors import AsapError, StageError
from asap_core.files import read_object
from asap_core.progress import console, track


@dataclass
class Batch:
    """The clips of one stage."""

    stage: str
    done: dict[str, Any] = field(default_factory=dict)
    """Clip -> what the stage keeps of it."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Clip -> why, from this stage and those before it."""
    before: frozenset[str] = frozenset()
    """Those that stages before this one left out."""

    def run(self, names: list[str], make: Callable[[str], Any]) -> None:
        """Call `make(name)` for each clip; one that raises an `AsapError` is left out with its text.

        Raises:
            StageError: from `make`: a full disk is no fault of the clip.
        """
        with track(self.stage, len(names)) as tracker:
            for name in names:
                try:
                    self.done[name] = make(name)
                except StageError:
                    raise
                except AsapError as error:
                    self.left_out[name] = str(error)
                tracker.advance(note=name)

    def reject(self, verdicts: Mapping[str, Mapping[str, Any]]) -> None:
        """Leave out the clips whose verdict (`Verdict.to_header`) is not accepted, with its texts."""
        for name, verdict in verdicts.items():
            if not verdict["accepted"]:
                self.left_out[name] = "; ".join(verdict["texts"])
                del self.done[name]

    def require(self, train: str) -> None:
        """Say which clips this stage left out; stop it if no clip is left or the one to train on is not.

        Raises:
            StageError: naming every clip that was left out, and why.
        """
        if train in self.done:
            for name in self.left_out.keys() - self.before:
                console.print(f"{self.stage}: left out {name}: {self.left_out[name]}", highlight=False, soft_wrap=True)
            return
        reasons = "\n".join(f"  {name}: {why}" for name, why in self.left_out.items())
        what = f"motion {train!r} (motions.train) was left out" if self.done else "no motion is left"
        raise StageError(f"{self.stage}: {what}; left out:\n{reasons}")


def carried(batch: Batch, report: Path) -> list[str]:
    """The clips that the stage before handed on in `report`; those it left out are left out here too.

    Raises:
        InputFileError: the report is missing, not JSON or of another shape.
    """
    content = read_object(report, ("motions", "left_out"))
    batch.left_out.update(content["left_out"])
    batch.before = frozenset(batch.left_out)
    return list(content["motions"])
