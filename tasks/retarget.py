"""Stage `retarget`: accepted human clips become motions of the robot."""

from __future__ import annotations

import shutil
from pathlib import Path

from asap_core.config import Params
from asap_core.files import atomic_dir, content_key, read_json, sha256_file, write_json
from asap_core.motions.human import HumanMotion
from asap_core.retargeting.retarget import retarget, retarget_figures
from asap_core.retargeting.settings import RetargetSettings
from asap_core.robots import get_profile
from asap_core.robots.profile import RobotProfile
from tasks._motions import Batch, carried
from tasks.item_store import ItemStore, code_version

CODE = (
    "asap_core/rotations.py",
    "asap_core/robots",
    "asap_core/motions",
    "asap_core/retargeting",
    "tasks/_motions.py",
    "tasks/retarget.py",
)
"""What the stage runs; its results are kept under a digest of it."""


def run(params: Params, root: Path) -> dict[str, float | int | str]:
    """Retarget data/screened to the robot; writes data/retargeted with the figures of each clip.

    Raises:
        StageError: no clip is left, or not the one to train on.
    """
    source = root / "data" / "screened"
    profile = get_profile(params.robot)
    batch = Batch("retarget")
    store, code = ItemStore(root), code_version(*CODE)
    names = carried(batch, source / "report.json")
    batch.run(names, lambda name: _item(source / f"{name}.parquet", profile, params.retarget, store, code))
    batch.require(params.motions.train)
    figures = {name: read_json(item / "figures.json") for name, item in batch.done.items()}
    with atomic_dir(root / "data" / "retargeted") as out:
        for name, item in batch.done.items():
            shutil.copyfile(item / "motion.parquet", out / f"{name}.parquet")
        write_json(out / "report.json", {"motions": figures, "left_out": batch.left_out})
    return {"motions": len(figures), "left_out": len(batch.left_out), **figures[params.motions.train]}


def _item(path: Path, profile: RobotProfile, settings: RetargetSettings, store: ItemStore, code: str) -> Path:
    def make(folder: Path) -> None:
        human = HumanMotion.load(path)
        motion = retarget(human, profile, settings)
        motion.save(folder / "motion.parquet")
        write_json(folder / "figures.json", retarget_figures(human, motion, profile, settings))

    key = content_key("retarget", sha256_file(path), profile.name, settings.model_dump(mode="json"), code)
    return store.get_or_make(key, make)
