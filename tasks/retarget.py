"""Stage `retarget`: accepted human clips become motions of the robot, which are screened in turn."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from asap_core.config import Params
from asap_core.files import atomic_dir, content_key, read_json, sha256_file, write_json
from asap_core.motions.human import HumanMotion
from asap_core.retargeting.retarget import retarget, retarget_figures
from asap_core.robots import get_profile
from asap_core.robots.profile import RobotProfile
from asap_core.screening.robot import screen_robot
from tasks._motions import Batch, carried
from tasks.item_store import ItemStore, code_version, robot_version

CODE = (
    "asap_core/banded.py",
    "asap_core/rotations.py",
    "asap_core/robots",
    "asap_core/motions",
    "asap_core/retargeting",
    "asap_core/screening",
    "tasks/_motions.py",
    "tasks/retarget.py",
)
"""What the stage runs; its results are kept under a digest of it."""


def run(params: Params, root: Path) -> dict[str, float | int | str]:
    """Retarget data/screened to the robot; writes data/retargeted with each clip's figures and verdict.

    A motion that the robot's screen rejects is left out, with the reasons.

    Raises:
        StageError: no clip is left, or not the one to train on.
    """
    source = root / "data" / "screened"
    profile = get_profile(params.robot)
    batch = Batch("retarget")
    store, code = ItemStore(root), code_version(*CODE)
    names = carried(batch, source / "report.json")
    batch.run(names, lambda name: _item(source / f"{name}.parquet", profile, params, store, code))
    verdicts = {name: read_json(item / "verdict.json") for name, item in batch.done.items()}
    batch.reject(verdicts)
    batch.require(params.motions.train)
    figures = {name: read_json(item / "figures.json") for name, item in batch.done.items()}
    with atomic_dir(root / "data" / "retargeted") as out:
        for name, item in batch.done.items():
            shutil.copyfile(item / "motion.parquet", out / f"{name}.parquet")
        write_json(out / "report.json", {"motions": figures, "left_out": batch.left_out, "verdicts": verdicts})
    return {"motions": len(figures), "left_out": len(batch.left_out), **figures[params.motions.train]}


def _item(path: Path, profile: RobotProfile, params: Params, store: ItemStore, code: str) -> Path:
    settings, physics = params.retarget, params.simulation.physics

    def make(folder: Path) -> None:
        human = HumanMotion.load(path)
        motion = retarget(human, profile, settings)
        verdict = screen_robot(motion, profile, params.screen, physics).to_header()
        replace(motion, screening={**(motion.screening or {}), "robot": verdict}).save(folder / "motion.parquet")
        write_json(folder / "figures.json", retarget_figures(human, motion, profile, settings))
        write_json(folder / "verdict.json", verdict)

    robot = (profile.name, robot_version(params.robot))
    values = [section.model_dump(mode="json") for section in (settings, params.screen, physics)]
    return store.get_or_make(content_key("retarget", sha256_file(path), *robot, *values, code), make)
