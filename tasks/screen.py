"""Stage `screen`: clips that no person could have done on a floor are put aside, with the reason."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from asap_core.config import Params
from asap_core.files import atomic_dir, content_key, read_json, sha256_file, write_json
from asap_core.motions.human import HumanMotion
from asap_core.screening.screen import screen
from asap_core.screening.settings import ScreenSettings
from tasks._motions import Batch, carried
from tasks.item_store import ItemStore, code_version

CODE = (
    "asap_core/rotations.py",
    "asap_core/motions",
    "asap_core/screening",
    "tasks/_motions.py",
    "tasks/screen.py",
)
"""What the stage runs; its results are kept under a digest of it."""


def run(params: Params, root: Path) -> dict[str, float | int | str]:
    """Judge data/reconstructed; writes data/screened (accepted clips, and a report on all).

    Raises:
        StageError: no clip is accepted, or not the one to train on.
    """
    source = root / "data" / "reconstructed"
    batch = Batch("screen")
    store, code = ItemStore(root), code_version(*CODE)
    names = carried(batch, source / "manifest.json")
    batch.run(names, lambda name: _item(source / f"{name}.parquet", params.screen, store, code))
    items: dict[str, Path] = dict(batch.done)
    verdicts = {name: read_json(item / "verdict.json") for name, item in items.items()}
    batch.reject(verdicts)
    batch.require(params.motions.train)
    with atomic_dir(root / "data" / "screened") as out:
        for name in batch.done:
            shutil.copyfile(items[name] / "motion.parquet", out / f"{name}.parquet")
        accepted = {name: verdicts[name]["figures"] for name in batch.done}
        report: dict[str, Any] = {"motions": accepted, "left_out": batch.left_out, "verdicts": verdicts}
        write_json(out / "report.json", report)
    return {"accepted": len(batch.done), "left_out": len(batch.left_out)}


def _item(path: Path, settings: ScreenSettings, store: ItemStore, code: str) -> Path:
    def make(folder: Path) -> None:
        motion = HumanMotion.load(path)
        verdict = screen(motion, settings).to_header()
        write_json(folder / "verdict.json", verdict)
        motion.with_screening(verdict).save(folder / "motion.parquet")

    return store.get_or_make(content_key("screen", sha256_file(path), settings.model_dump(mode="json"), code), make)
