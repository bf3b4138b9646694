"""A person's own skeleton from SMPL betas, where the user has a licensed model file. None is shipped or fetched.

Read are npz and pkl files of SMPL, SMPL+H and SMPL-X with `v_template` (V, 3), `shapedirs` (V, 3, B) and `J_regressor`
(J, V). Pickles go through the restricted reader: chumpy and scipy.sparse are never imported, their arrays are taken out
of the stored fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.errors import InputFileError
from asap_core.motions.formats.clip import HumanClip
from asap_core.motions.formats.fields import NpzFields, numbers, require_mapping
from asap_core.motions.skeleton import NUM_JOINTS, PARENTS
from asap_core.motions.tables import check_array
from asap_core.pickle_stand_ins import Foreign
from asap_core.restricted_pickle import load_restricted
from asap_core.rotations import Array

_FIELDS = ("v_template", "shapedirs", "J_regressor")
_HANDS = {24: (22, 23), 52: (25, 40), 55: (28, 43)}
"""Joints that stand for SMPL's two hands: SMPL+H and SMPL-X have the middle fingers' first joints instead."""
_MOST_NUMBERS = 1 << 27


@dataclass(frozen=True)
class SmplModel:
    """The joints of a body model at rest as a linear function of its shape."""

    mean: Array
    """(24, 3) m, rest frame (x left, y up, z forward)."""
    directions: Array
    """(24, 3, B) m per unit of each beta."""

    def rest_joints(self, betas: Array | None) -> Array:
        """(24, 3) from the model's origin; of the mean shape without betas, and with those the model knows."""
        if betas is None:
            return self.mean
        known = min(len(betas), self.directions.shape[2])
        joints: Array = self.mean + self.directions[:, :, :known] @ betas[:known]
        return joints

    def offsets(self, betas: Array | None) -> Array:
        """(24, 3) of each joint from its parent, row 0 zero."""
        joints = self.rest_joints(betas)
        offsets = np.zeros((NUM_JOINTS, 3))
        offsets[1:] = joints[1:] - joints[list(PARENTS[1:])]
        return offsets


def load_smpl_model(path: Path | str) -> SmplModel:
    """Read a model file.

    Raises:
        InputFileError: missing, damaged, holding code, or another layout.
    """
    path = Path(path)
    template, shapes, regressor = _fields(path).values()
    check_array(path, "v_template", template, (None, 3))
    if regressor.ndim == 2 and regressor.shape[1] != len(template) == regressor.shape[0]:
        regressor = regressor.T
    if regressor.ndim != 2 or regressor.shape[1] != len(template) or len(regressor) not in _HANDS:
        expected = f"(one of {', '.join(map(str, _HANDS))}, {len(template)})"
        raise InputFileError(path, f"J_regressor: found shape {regressor.shape}, expected {expected}")
    if shapes.ndim != 3 or shapes.shape[:2] != template.shape:
        raise InputFileError(path, f"shapedirs: found shape {shapes.shape}, expected ({len(template)}, 3, B)")
    joints = [*range(22), *_HANDS[len(regressor)]]
    mean, directions = regressor @ template, np.einsum("jv,vab->jab", regressor, shapes)
    for name, values in (("v_template", mean), ("shapedirs", directions)):
        if not np.isfinite(values).all():
            raise InputFileError(path, f"{name}: found values that are no finite numbers")
    return SmplModel(mean[joints], directions[joints])


@cache
def _load_once(path: Path, changed: int) -> SmplModel:
    return load_smpl_model(path)


def body_for(clip: HumanClip, folder: Path | None) -> SmplModel | None:
    """The model of the clip's kind and gender in `folder`, by the names that the models are handed out under.

    Looked for are `<model>/<MODEL>_<GENDER>.npz` and `.pkl`, in the folder itself too; a clip of unknown gender takes
    the neutral one. None without a folder, or where it has no such file.

    Raises:
        InputFileError: the folder is missing, or the file is damaged.
    """
    if folder is None or clip.body_model is None or clip.skeleton is not None:
        return None
    if not folder.is_dir():
        raise InputFileError(folder, "motions.body_models: missing, expected a folder of SMPL model files")
    kind, gender = clip.body_model, (clip.gender or "neutral").lower()
    names = [f"{kind.upper()}_{gender.upper()}{suffix}" for suffix in (".npz", ".pkl")]
    for place in [folder / kind, folder]:
        for name in names:
            if (place / name).is_file():
                return _load_once(place / name, (place / name).stat().st_mtime_ns)
    return None


def _fields(path: Path) -> dict[str, Array]:
    if path.suffix == ".npz":
        with NpzFields(path) as fields:
            return {name: fields[name] for name in _FIELDS}
    content = require_mapping(path, "file", load_restricted(path), ", ".join(_FIELDS))
    missing = [name for name in _FIELDS if name not in content]
    if missing:
        raise InputFileError(path, f"{', '.join(missing)}: missing; expected a SMPL model with {', '.join(_FIELDS)}")
    return {name: _dense(path, name, content[name]) for name in _FIELDS}


def _dense(path: Path, name: str, value: Any) -> Array:
    """Numbers of an array, of a chumpy array, or of a sparse matrix."""
    if not isinstance(value, Foreign):
        return numbers(path, name, value)
    kind, fields = value.kind.rpartition(".")[2], value.fields
    try:
        if kind == "Ch":
            return _dense(path, name, fields["x"])
        if kind == "Select":
            picked = _dense(path, name, fields["a"]).reshape(-1)[numbers(path, name, fields["idxs"]).astype(int)]
            return picked.reshape(tuple(int(n) for n in fields["preferred_shape"]))
        return _from_sparse(path, name, fields, by_columns=kind == "csc_matrix")
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise InputFileError(path, f"{name}: {value.kind} of another layout: {error}") from None


def _from_sparse(path: Path, name: str, fields: Mapping[str, Any], by_columns: bool) -> Array:
    shape = tuple(int(n) for n in (fields["_shape"] if "_shape" in fields else fields["shape"]))
    data = numbers(path, name, fields["data"])
    inner, starts = (numbers(path, name, fields[key]).astype(int) for key in ("indices", "indptr"))
    if len(shape) != 2 or min(shape) < 1 or shape[0] * shape[1] > _MOST_NUMBERS:
        raise ValueError(f"shape {shape}")
    if len(starts) != shape[int(by_columns)] + 1 or len(inner) != len(data) or inner.min(initial=0) < 0:
        raise ValueError("parts that do not fit each other")
    outer = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    dense = np.zeros(shape)
    np.add.at(dense, (inner, outer) if by_columns else (outer, inner), data)
    return dense
