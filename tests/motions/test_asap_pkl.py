from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from asap_core.errors import InputFileError
from asap_core.motions.formats.asap_pkl import read_asap_pkl
from asap_core.robots import get_profile
from asap_core.rotations import rotvec_to_quat

joblib = pytest.importorskip("joblib")
JOINTS = ("a", "b", "c")


def _clip(**change: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    quat = rotvec_to_quat(rng.normal(size=(6, 3)))
    clip = {
        "root_trans_offset": rng.normal(size=(6, 3)).astype(np.float32),
        "pose_aa": np.zeros((6, 5, 3)),
        "dof": rng.normal(size=(6, 3)).astype(np.float32),
        "root_rot": quat[:, [1, 2, 3, 0]],
        "fps": 30,
    }
    return clip | change


@pytest.mark.parametrize("compress", [0, 3])
def test_joblib_file_is_read_and_its_quaternions_turned(tmp_path: Path, compress: int) -> None:
    clip = _clip()
    joblib.dump({"folder/clip_1": clip}, tmp_path / "a.pkl", compress=compress)
    motion = read_asap_pkl(tmp_path / "a.pkl", "r", JOINTS)
    np.testing.assert_array_equal(motion.root_pos, clip["root_trans_offset"])
    np.testing.assert_array_equal(motion.joint_pos, clip["dof"])
    np.testing.assert_array_equal(motion.root_quat[:, 0], clip["root_rot"][:, 3])
    np.testing.assert_array_equal(motion.root_quat[:, 1:], clip["root_rot"][:, :3])
    assert (motion.name, motion.fps) == ("clip_1", 30.0)


class _Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return (Path.touch, (self.path,))


def test_code_in_a_pickle_is_refused_and_not_run(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"k": _clip(dof=_Bomb(sprung))}))
    with pytest.raises(InputFileError, match="is refused; only numpy arrays and plain containers"):
        read_asap_pkl(tmp_path / "a.pkl", "r", JOINTS)
    joblib.dump({"k": _clip(dof=np.array([_Bomb(sprung)], dtype=object))}, tmp_path / "b.pkl")
    with pytest.raises(InputFileError, match="not a readable pickle"):
        read_asap_pkl(tmp_path / "b.pkl", "r", JOINTS)
    assert not sprung.exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([1, 2], r"found another layout \(list\)"),
        ({"k": _clip(), "l": _clip()}, "found 2 clips, expected one"),
        ({"k": {"dof": np.zeros((6, 3))}}, "k: missing root_trans_offset, root_rot, fps; found dof"),
        ({"k": _clip(dof=np.zeros((6, 4)))}, r"dof: found shape \(6, 4\), expected \(T, 3\)"),
        ({"k": _clip(root_rot=np.zeros((5, 4)))}, r"k: root_rot: found shape \(5, 4\), expected \(6, 4\)"),
        ({"k": _clip(dof=np.full((6, 3), np.nan))}, "k: dof: found 18 NaN"),
        ({"k": _clip(fps="quick")}, "k: fps: found str"),
    ],
)
def test_other_layouts_are_named(tmp_path: Path, content: Any, words: str) -> None:
    joblib.dump(content, tmp_path / "a.pkl")
    with pytest.raises(InputFileError, match=f"a.pkl: {words}"):
        read_asap_pkl(tmp_path / "a.pkl", "r", JOINTS)


def test_truncated_file_is_refused(tmp_path: Path) -> None:
    joblib.dump({"k": _clip()}, tmp_path / "a.pkl")
    content = (tmp_path / "a.pkl").read_bytes()
    for part in (0, 50, len(content) - 40):
        (tmp_path / "a.pkl").write_bytes(content[:part])
        with pytest.raises(InputFileError, match="not a readable pickle"):
            read_asap_pkl(tmp_path / "a.pkl", "r", JOINTS)


def test_published_motions_keep_the_robot_upright_and_within_its_limits(shared_dir: Path) -> None:
    profile = get_profile("g1_23dof")
    paths = sorted((shared_dir / "data/asap/g1").glob("*squat*.pkl"))
    assert paths
    for path in paths:
        motion = read_asap_pkl(path, profile.name, profile.joint_names)
        assert motion.root_quat[0, 0] ** 2 + motion.root_quat[0, 3] ** 2 > 0.95
        assert (motion.joint_pos >= profile.joint_lower - 1e-3).all()
        assert (motion.joint_pos <= profile.joint_upper + 1e-3).all()
