"""Calibration files give the cameras they describe, or an error that names the field; triangulation is exact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from asap_core.errors import InputFileError
from asap_core.reconstruction.calibration import CalibratedCamera, read_calibration
from asap_core.reconstruction.triangulation import triangulate

RNG = np.random.default_rng(0)
DISTORTION = np.array([-0.25, 0.08, 0.001, -0.002, -0.01, 0.0, 0.0, 0.0])


def ring(count: int = 4, fisheye: bool = False) -> tuple[CalibratedCamera, ...]:
    """Cameras around the origin, 1.5 m high, 4 m away, looking at (0, 0, 1)."""
    cameras = []
    for k in range(count):
        angle = 2 * np.pi * k / count + 0.3
        centre = np.array([4 * np.cos(angle), 4 * np.sin(angle), 1.5])
        forward = np.array([0.0, 0.0, 1.0]) - centre
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        rotation = np.stack([right, np.cross(forward, right), forward])
        matrix = np.array([[800.0 + k, 0.0, 320.0], [0.0, 805.0 + k, 245.0], [0.0, 0.0, 1.0]])
        bent = np.array([0.05, -0.01, 0.002, 0.0, 0, 0, 0, 0]) if fisheye else DISTORTION
        cameras.append(CalibratedCamera(f"cam{k}", (640, 480), matrix, bent, rotation, -rotation @ centre, fisheye))
    return tuple(cameras)


def toml_of(cameras: tuple[CalibratedCamera, ...]) -> str:
    text = ""
    for camera in cameras:
        text += f'[{camera.name}]\nname = "{camera.name}"\nsize = [640.0, 480.0]\n'
        text += f"matrix = {camera.matrix.tolist()}\ndistortions = {camera.distortion[:5].tolist()}\n"
        text += f"rotation = {Rotation.from_matrix(camera.rotation).as_rotvec().tolist()}\n"
        text += f"translation = {camera.translation.tolist()}\nfisheye = false\n\n"
    return text + "[metadata]\nadjusted = false\nerror = 0.0\n"


def opencv_matrix(name: str, values: np.ndarray, indent: str = "") -> str:
    values = np.atleast_2d(values)
    data = ", ".join(map(repr, values.ravel().tolist()))
    lines = [f"{name}: !!opencv-matrix", f"   rows: {values.shape[0]}", f"   cols: {values.shape[1]}", "   dt: d"]
    return "".join(f"{indent}{line}\n" for line in [*lines, f"   data: [ {data} ]"])


def opencv_fields(camera: CalibratedCamera, indent: str = "") -> str:
    text = f"{indent}image_width: 640\n{indent}image_height: 480\n"
    text += opencv_matrix("camera_matrix", camera.matrix, indent)
    text += opencv_matrix("distortion_coefficients", camera.distortion[:5], indent)
    text += opencv_matrix("R", camera.rotation, indent)
    return text + opencv_matrix("T", camera.translation[:, None], indent)


def assert_same(found: tuple[CalibratedCamera, ...], wanted: tuple[CalibratedCamera, ...]) -> None:
    places = RNG.uniform([-1, -1, 0], [1, 1, 2], (20, 3))
    assert [camera.name for camera in found] == [camera.name for camera in wanted]
    for camera, other in zip(found, wanted, strict=True):
        assert camera.size == other.size
        np.testing.assert_allclose(camera.project(places), other.project(places), atol=1e-6)


def test_pose2sim_toml(tmp_path: Path) -> None:
    (tmp_path / "Calib.toml").write_text(toml_of(ring()))
    assert_same(read_calibration(tmp_path / "Calib.toml"), ring())


def test_one_opencv_file_with_a_mapping_for_each_camera(tmp_path: Path) -> None:
    text = "%YAML:1.0\n---\n" + "".join(f"{c.name}:\n{opencv_fields(c, '   ')}" for c in ring())
    (tmp_path / "all.yml").write_text(text)
    assert_same(read_calibration(tmp_path / "all.yml"), ring())


def test_a_folder_with_an_opencv_file_for_each_camera(tmp_path: Path) -> None:
    for camera in ring():
        (tmp_path / f"{camera.name}.yaml").write_text("%YAML:1.0\n---\n" + opencv_fields(camera))
    assert_same(read_calibration(tmp_path), ring())


def test_easymocap_pair(tmp_path: Path) -> None:
    names = "names:\n" + "".join(f'  - "{c.name}"\n' for c in ring())
    inner, outer = "%YAML:1.0\n---\n" + names, "%YAML:1.0\n---\n" + names
    for c in ring():
        inner += opencv_matrix(f"K_{c.name}", c.matrix) + opencv_matrix(f"dist_{c.name}", c.distortion[:5])
        inner += f"W_{c.name}: 640\nH_{c.name}: 480\n"
        rotvec = Rotation.from_matrix(c.rotation).as_rotvec()
        outer += opencv_matrix(f"R_{c.name}", rotvec[:, None]) + opencv_matrix(f"T_{c.name}", c.translation[:, None])
    (tmp_path / "intri.yml").write_text(inner)
    (tmp_path / "extri.yml").write_text(outer)
    assert_same(read_calibration(tmp_path), ring())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("matrix = ", "matrixx = "), r"cam0\.matrix: missing; expected one of matrix, camera_matrix"),
        (("matrix = [[800.0", "matrix = [[-1.0"), r"cam0\.matrix: found .* expected \[\[fx, s, cx\]"),
        (("distortions = [", "distortions = [1.0, 2.0, "), r"cam0\.distortions: found .* expected 0 or 4 or 5 or 8"),
        (("rotation = [", 'rotation = ["a", '), r"cam0\.rotation: found .* expected numbers"),
        (("rotation = [", "rotation = [0.0, "), r"cam0\.rotation: found .* expected 3 or 9 finite numbers"),
        (("translation = [", "translation = [nan, "), r"cam0\.translation: found .* expected 3 finite numbers"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    (tmp_path / "c.toml").write_text(toml_of(ring()).replace(*change, 1))
    with pytest.raises(InputFileError, match=message):
        read_calibration(tmp_path / "c.toml")


def test_millimetres_are_suspected(tmp_path: Path) -> None:
    far = tuple(CalibratedCamera(**{**vars(c), "translation": 1000 * c.translation}) for c in ring())
    (tmp_path / "c.toml").write_text(toml_of(far))
    with pytest.raises(InputFileError, match=r"cam0\.translation: found .* expected metres \(at most 200\); mm\?"):
        read_calibration(tmp_path / "c.toml")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c.toml", "[a", "not a TOML file"),
        ("c.yml", "%YAML:1.0\n---\na: [1", "not OpenCV's YAML"),
        ("c.yml", "- 1\n", "found list, expected a mapping"),
        ("c.yml", "a: 1\n", "no cameras: found a"),
        ("c.toml", "[metadata]\nerror = 0.0\n", "cameras: found 0, expected at least 2"),
        ("c.yml", "names: 3\n", "names: found 3, expected a list of the cameras"),
        ("c.yml", "[" * 3000, "not OpenCV's YAML: nested too deeply"),
        ("c.yml", "K_a: !!opencv-matrix\n  rows: .inf\n  cols: 3\n  data: [1]\n", "not OpenCV's YAML: cannot convert"),
        ("c.yml", "a: !!python/object/apply:os.system [echo]\n", "not OpenCV's YAML"),
    ],
)
def test_what_is_no_calibration_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputFileError, match=message):
        read_calibration(tmp_path / name)


@pytest.mark.parametrize("width", ['"big"', ".inf"])
def test_a_width_that_is_no_number_of_pixels_is_named(tmp_path: Path, width: str) -> None:
    camera = "K: [9, 0, 1, 0, 9, 1, 0, 0, 1], D: [0, 0, 0, 0], R: [0, 0, 0], T: [0, 0, 0]"
    (tmp_path / "c.yml").write_text(f"a: {{{camera}, image_width: {width}, image_height: 9}}\n")
    with pytest.raises(InputFileError, match=r"a\.size: found .* expected "):
        read_calibration(tmp_path / "c.yml")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"absent\.toml: missing"):
        read_calibration(tmp_path / "absent.toml")


@pytest.mark.parametrize("fisheye", [False, True])
def test_rays_undo_the_distortion(fisheye: bool) -> None:
    camera = ring(fisheye=fisheye)[0]
    straight = RNG.uniform(-0.35, 0.35, (50, 2))
    places = (np.concatenate([straight, np.ones((50, 1))], axis=1) * 3 - camera.translation) @ camera.rotation
    np.testing.assert_allclose(camera.rays(camera.project(places)), straight, atol=1e-6)


def test_distortion_is_opencvs() -> None:
    cv2 = pytest.importorskip("cv2")
    camera = ring()[1]
    places = RNG.uniform([-1, -1, 0], [1, 1, 2], (20, 3))
    rotvec = Rotation.from_matrix(camera.rotation).as_rotvec()
    wanted, _ = cv2.projectPoints(places, rotvec, camera.translation, camera.matrix, camera.distortion[:5])
    np.testing.assert_allclose(camera.project(places), wanted[:, 0], atol=1e-6)


def test_triangulation_is_exact_through_distortion() -> None:
    cameras = ring()
    places = RNG.uniform([-1, -1, 0], [1, 1, 2], (30, 3))
    pixels = np.stack([camera.project(places) for camera in cameras])
    found = triangulate(cameras, pixels, np.full((4, 30), 0.9))
    np.testing.assert_allclose(found.places, places, atol=1e-5)
    assert found.error.max() < 0.01
    np.testing.assert_allclose(found.confidence, 0.9, atol=1e-3)


def test_a_camera_that_is_wrong_loses_its_say() -> None:
    cameras = ring()
    places = RNG.uniform([-1, -1, 0], [1, 1, 2], (30, 3))
    pixels = np.stack([camera.project(places) for camera in cameras])
    pixels[2] += 60.0
    found = triangulate(cameras, pixels, np.full((4, 30), 0.9))
    assert np.linalg.norm(found.places - places, axis=1).max() < 0.005


def test_a_point_that_one_camera_sees_is_not_guessed() -> None:
    cameras = ring()
    pixels = np.full((4, 2, 2), np.nan)
    pixels[:, 0] = [camera.project(np.array([0.1, 0.2, 1.0])) for camera in cameras]
    pixels[0, 1] = [300.0, 200.0]
    found = triangulate(cameras, pixels, np.full((4, 2), 0.9))
    assert np.isnan(found.places[1]).all()
    assert found.confidence[1] == 0.0
    assert found.confidence[0] > 0.8
