"""Stage `reconstruct`: human clips in the AMASS layout become `HumanMotion` records."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from asap_core.config import Params
from asap_core.errors import InputFileError
from asap_core.files import atomic_dir, content_key, sha256_file, sha256_tree, write_json
from asap_core.motions.formats.amass import read_amass
from asap_core.motions.human import HumanMotion
from tasks._motions import Batch
from tasks.item_store import ItemStore, code_version

CODE = (
    "asap_core/pickle_stand_ins.py",
    "asap_core/restricted_pickle.py",
    "asap_core/rotations.py",
    "asap_core/motions",
    "tasks/_motions.py",
    "tasks/reconstruct.py",
)
"""What the stage runs; its results are kept under a digest of it."""


def run(params: Params, root: Path) -> dict[str, float | int | str]:
    """Read `motions.names` from `motions.source`; writes data/reconstructed with a manifest.

    Raises:
        StageError: no clip can be read, or not the one to train on.
    """
    batch = Batch("reconstruct")
    store, code = ItemStore(root), code_version(*CODE)
    models = None if params.motions.body_models is None else root / params.motions.body_models
    key = code if models is None else content_key(code, sha256_tree(models))
    batch.run(list(params.motions.names), lambda name: _item(params.motions.source, name, root, store, key, models))
    batch.require(params.motions.train)
    motions: dict[str, Any] = {}
    with atomic_dir(root / "data" / "reconstructed") as out:
        for name, item in batch.done.items():
            shutil.copyfile(item, out / f"{name}.parquet")
            motion = HumanMotion.load(item)
            motions[name] = {"frames": motion.num_frames, "fps": motion.fps, "source": motion.source.to_header()}
        write_json(out / "manifest.json", {"motions": motions, "left_out": batch.left_out})
    frames = sum(motion["frames"] for motion in motions.values())
    return {"motions": len(motions), "left_out": len(batch.left_out), "frames": frames}


def _item(source: str, name: str, root: Path, store: ItemStore, code: str, models: Path | None) -> Path:
    named = f"{source}/{name}.npz"
    path = root / named
    if not path.is_file():
        present = ", ".join(sorted(p.stem for p in path.parent.glob("*.npz"))) or "no npz file"
        raise InputFileError(named, f"missing; found in {source}: {present}")

    def make(folder: Path) -> None:
        try:
            motion = read_amass(path, name, named, models)
        except InputFileError as error:
            raise InputFileError(named, error.reason) from None
        motion.save(folder / "motion.parquet")

    return store.get_or_make(content_key("reconstruct", sha256_file(path), named, code), make) / "motion.parquet"
