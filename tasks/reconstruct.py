"""Stage `reconstruct`: human clips in the AMASS layout, and videos, become `HumanMotion` records."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from asap_core.config import Params
from asap_core.errors import InputFileError
from asap_core.files import atomic_dir, content_key, read_json, sha256_file, sha256_tree, write_json
from asap_core.motions.formats.amass import read_amass
from asap_core.motions.human import HumanMotion
from asap_core.reconstruction.reconstruct import Choice, reconstruct
from asap_core.reconstruction.settings import ClipSettings, ReconstructSettings
from asap_core.reconstruction.video_file import VIDEO_SUFFIXES
from asap_core.reconstruction.weights import FOLDER
from tasks._motions import Batch
from tasks.item_store import ItemStore, code_version

CODE = (
    "asap_core/banded.py",
    "asap_core/pickle_stand_ins.py",
    "asap_core/restricted_pickle.py",
    "asap_core/rotations.py",
    "asap_core/motions",
    "asap_core/reconstruction",
    "tasks/_motions.py",
    "tasks/reconstruct.py",
)
"""What the stage runs; its results are kept under a digest of it."""
MOTION, ESTIMATES = "motion.parquet", "estimates.json"
"""Files of an item in the store."""
SUFFIXES = (".npz", *VIDEO_SUFFIXES)


def run(params: Params, root: Path) -> dict[str, float | int | str]:
    """Read `motions.names` from `motions.source`; writes data/reconstructed with a manifest.

    A name is that of an npz file or of a video. What is missing for videos (`make video` brings it) leaves them out, as
    any other fault of a clip does.

    Raises:
        StageError: no clip can be read, or not the one to train on.
    """
    batch = Batch("reconstruct")
    store, code = ItemStore(root), code_version(*CODE)
    models = None if params.motions.body_models is None else root / params.motions.body_models
    key = code if models is None else content_key(code, sha256_tree(models))

    def item(name: str) -> Path:
        named, file = _file_of(params.motions.source, name, root)
        if file.suffix in VIDEO_SUFFIXES:
            return _from_video(file, name, named, params.reconstruct, root, store, code)
        return _from_npz(file, name, named, store, key, models)

    batch.run(list(params.motions.names), item)
    batch.require(params.motions.train)
    motions: dict[str, Any] = {}
    with atomic_dir(root / "data" / "reconstructed") as out:
        for name, kept in batch.done.items():
            shutil.copyfile(kept / MOTION, out / f"{name}.parquet")
            motion = HumanMotion.load(kept / MOTION)
            motions[name] = {"frames": motion.num_frames, "fps": motion.fps, "source": motion.source.to_header()}
            if (kept / ESTIMATES).exists():
                motions[name]["video"] = read_json(kept / ESTIMATES)
        write_json(out / "manifest.json", {"motions": motions, "left_out": batch.left_out})
    frames = sum(motion["frames"] for motion in motions.values())
    return {"motions": len(motions), "left_out": len(batch.left_out), "frames": frames}


def _file_of(source: str, name: str, root: Path) -> tuple[str, Path]:
    """The npz file or video of a clip: as the manifest names it, and its path."""
    folder = root / source
    found = [path for path in (folder / f"{name}{suffix}" for suffix in SUFFIXES) if path.is_file()]
    if len(found) == 1:
        return f"{source}/{found[0].name}", found[0]
    if found:
        both = " and ".join(path.name for path in found)
        raise InputFileError(f"{source}/{name}", f"found {both}, expected one; rename the other")
    present = ", ".join(sorted(path.stem for path in folder.glob("*") if path.suffix in SUFFIXES)) or "no npz or video"
    raise InputFileError(f"{source}/{name}.npz", f"missing; found in {source}: {present}")


def _from_npz(path: Path, name: str, named: str, store: ItemStore, key: str, models: Path | None) -> Path:
    def make(folder: Path) -> None:
        try:
            motion = read_amass(path, name, named, models)
        except InputFileError as error:
            raise InputFileError(named, error.reason) from None
        motion.save(folder / MOTION)

    return store.get_or_make(content_key("reconstruct", sha256_file(path), named, key), make)


def _from_video(
    path: Path, name: str, named: str, settings: ReconstructSettings, root: Path, store: ItemStore, code: str
) -> Path:
    clip = settings.clips.get(name, ClipSettings())
    choice = Choice(settings.model, root / FOLDER, clip.start, clip.end)

    def make(folder: Path) -> None:
        try:
            made = reconstruct(path, clip.known(), choice, name, named)
        except InputFileError as error:
            raise (InputFileError(named, error.reason) if error.path == path else error) from None
        made.lift.motion.save(folder / MOTION)
        write_json(folder / ESTIMATES, made.to_json())

    known = [settings.model, clip.model_dump(mode="json")]
    return store.get_or_make(content_key("reconstruct", sha256_file(path), named, code, *known), make)
