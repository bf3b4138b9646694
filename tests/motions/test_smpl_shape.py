from __future__ import annotations

import pickle
import sys
import types
from pathlib import Path
from typing import Any

import human_fixtures as made
import numpy as np
import pytest
import scipy.sparse

from asap_core.errors import InputFileError
from asap_core.motions.formats.amass import read_amass
from asap_core.motions.formats.clip import HumanClip
from asap_core.motions.formats.table import read_any
from asap_core.motions.ground_frame import to_human_motion
from asap_core.motions.skeleton import PARENTS
from asap_core.motions.smpl_shape import SmplModel, body_for, load_smpl_model

VERTICES = 60
HANDS = {24: (22, 23), 52: (25, 40), 55: (28, 43)}


def _model(joints: int = 24) -> dict[str, np.ndarray]:
    """Random arrays in the layout of a SMPL file; each joint is a mean of a few vertices."""
    rng = np.random.default_rng(3)
    regressor = rng.random((joints, VERTICES)) * (rng.random((joints, VERTICES)) < 0.2)
    return {
        "v_template": rng.normal(size=(VERTICES, 3)),
        "shapedirs": rng.normal(size=(VERTICES, 3, 10)),
        "J_regressor": regressor,
    }


def _joints(model: dict[str, np.ndarray], betas: np.ndarray) -> np.ndarray:
    """As SMPL defines them: the regressor on the shaped template."""
    joints = model["J_regressor"] @ (model["v_template"] + model["shapedirs"] @ betas)
    return joints[[*range(22), *HANDS[len(joints)]]]


@pytest.mark.parametrize("joints", [24, 52, 55])
def test_npz_gives_the_regressed_joints(joints: int, tmp_path: Path) -> None:
    fields, betas = _model(joints), np.linspace(-2, 2, 10)
    np.savez(tmp_path / "m.npz", **fields)
    model = load_smpl_model(tmp_path / "m.npz")
    expected = _joints(fields, betas)
    np.testing.assert_allclose(model.rest_joints(betas), expected, atol=1e-12)
    offsets = model.offsets(betas)
    np.testing.assert_allclose(offsets[1:], expected[1:] - expected[list(PARENTS[1:])], atol=1e-12)
    assert not offsets[0].any()


def test_betas_beyond_the_models_and_none_are_taken() -> None:
    """SMPL-X clips carry 16 betas, a file may know 10."""
    fields, betas = _model(), np.linspace(-1, 1, 16)
    mean = _joints(fields, np.zeros(10))
    model = SmplModel(mean, np.einsum("jv,vab->jab", fields["J_regressor"], fields["shapedirs"]))
    np.testing.assert_allclose(model.rest_joints(betas), _joints(fields, betas[:10]))
    np.testing.assert_array_equal(model.rest_joints(None), mean)


class _Stored:
    """An object whose pickle names a class of chumpy, made as chumpy's are: the fields and nothing else."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


@pytest.fixture
def chumpy(monkeypatch: pytest.MonkeyPatch) -> dict[str, type]:
    """Modules by chumpy's names for the time of writing; reading happens without them."""
    made_classes = {}
    monkeypatch.setitem(sys.modules, "chumpy", types.ModuleType("chumpy"))
    for module, name in (("chumpy.ch", "Ch"), ("chumpy.reordering", "Select")):
        kind = type(name, (_Stored,), {"__module__": module, "__qualname__": name})
        holder = types.ModuleType(module)
        setattr(holder, name, kind)
        monkeypatch.setitem(sys.modules, module, holder)
        made_classes[name] = kind
    return made_classes


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("sparse", [scipy.sparse.csc_matrix, scipy.sparse.csr_matrix])
def test_pickle_with_chumpy_and_sparse_matrices_is_read_without_them(
    protocol: int, sparse: Any, chumpy: dict[str, type], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fields, betas = _model(), np.linspace(-2, 2, 10)
    wide = np.concatenate([fields["shapedirs"], np.zeros((VERTICES, 3, 5))], axis=2)
    first = np.arange(wide.size).reshape(wide.shape)[:, :, :10].reshape(-1)
    select = chumpy["Select"](a=chumpy["Ch"](x=wide), idxs=first, preferred_shape=(VERTICES, 3, 10))
    stored = {
        "v_template": chumpy["Ch"](x=fields["v_template"]),
        "shapedirs": select,
        "J_regressor": sparse(fields["J_regressor"]),
        "bs_type": "lrotmin",
    }
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(stored, protocol=protocol))
    for module in ("chumpy", "chumpy.ch", "chumpy.reordering"):
        monkeypatch.delitem(sys.modules, module)
    np.testing.assert_allclose(load_smpl_model(tmp_path / "m.pkl").rest_joints(betas), _joints(fields, betas))
    assert not any(name.startswith("chumpy") for name in sys.modules)


def test_pickle_of_python_2_is_read(tmp_path: Path) -> None:
    """Protocol 2 as Python 2 wrote it: arrays' bytes are texts, numpy's module has its old name."""
    fields = _model()
    data = pickle.dumps(fields, protocol=2)
    (tmp_path / "m.pkl").write_bytes(data.replace(b"numpy._core.multiarray", b"numpy.core.multiarray"))
    np.testing.assert_allclose(load_smpl_model(tmp_path / "m.pkl").mean, _joints(fields, np.zeros(10)))


def test_other_layouts_are_refused(tmp_path: Path) -> None:
    fields = _model()
    for name, change, words in (
        ("a", {"J_regressor": fields["J_regressor"][:20]}, "J_regressor: found shape \\(20, 60\\)"),
        ("b", {"shapedirs": fields["shapedirs"][:, :2]}, "shapedirs: found shape \\(60, 2, 10\\)"),
        ("c", {"v_template": fields["v_template"] * np.nan}, "v_template: found"),
    ):
        np.savez(tmp_path / f"{name}.npz", **(fields | change))
        with pytest.raises(InputFileError, match=rf"{name}\.npz: {words}"):
            load_smpl_model(tmp_path / f"{name}.npz")


def test_folder_is_searched_by_model_and_gender(tmp_path: Path) -> None:
    made.write_amass_smplh(tmp_path / "clip.npz", made.sample())
    (clip,) = read_any(tmp_path / "clip.npz")
    assert isinstance(clip, HumanClip)
    assert body_for(clip, None) is None
    assert body_for(clip, tmp_path) is None
    (tmp_path / "smplh").mkdir()
    fields = _model(52)
    np.savez(tmp_path / "smplh/SMPLH_FEMALE.npz", **fields)
    body = body_for(clip, tmp_path)
    assert body is not None
    np.testing.assert_allclose(body.rest_joints(clip.betas), _joints(fields, np.asarray(clip.betas)[:10]))
    with pytest.raises(InputFileError, match=r"motions\.body_models: missing"):
        body_for(clip, tmp_path / "gone")


def test_motion_takes_the_shaped_bones_and_the_pelvis_from_the_models_origin(tmp_path: Path) -> None:
    sample, fields = made.sample(), _model()
    betas = np.linspace(-1, 1, 10)
    made.write_asap_smpl(tmp_path / "clip.npz", sample, betas=betas)
    np.savez(tmp_path / "SMPL_NEUTRAL.npz", **fields)
    (clip,) = read_any(tmp_path / "clip.npz")
    assert isinstance(clip, HumanClip)
    motion = to_human_motion(clip, up_axis="z", body=body_for(clip, tmp_path))
    joints = _joints(fields, betas)
    np.testing.assert_allclose(motion.skeleton[1:], joints[1:] - joints[list(PARENTS[1:])], atol=1e-12)
    np.testing.assert_allclose(motion.root_translation, sample.root_translation + joints[0], atol=1e-6)


def test_amass_clips_can_be_read_with_the_licensed_bones(tmp_path: Path) -> None:
    fields, betas = _model(), np.linspace(-1, 1, 10)
    made.write_asap_smpl(tmp_path / "clip.npz", made.sample(), betas=betas)
    np.savez(tmp_path / "SMPL_NEUTRAL.npz", **fields)
    plain, shaped = read_amass(tmp_path / "clip.npz"), read_amass(tmp_path / "clip.npz", body_models=tmp_path)
    joints = _joints(fields, betas)
    np.testing.assert_allclose(shaped.root_translation - plain.root_translation, np.tile(joints[0], (60, 1)), atol=1e-9)
    np.testing.assert_allclose(shaped.skeleton[1:], joints[1:] - joints[list(PARENTS[1:])], atol=1e-12)
