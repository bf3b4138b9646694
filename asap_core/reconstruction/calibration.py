"""Calibrated cameras, and the files that describe them: Pose2Sim's TOML and OpenCV's YAML.

OpenCV's YAML has no one layout. Read are: one file with a mapping for each camera, a folder with a file for each camera
(named as the file is), and EasyMocap's pair `intri.yml` and `extri.yml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from asap_core.errors import InputFileError
from asap_core.rotations import Array, quat_to_matrix, rotvec_to_quat

_UNDISTORT_STEPS = 12
_NO_CAMERA = {"metadata", "capture_volume", "charuco", "checkerboard"}
"""Tables of a TOML file beside its cameras."""
_FIELDS: dict[str, tuple[str, ...]] = {
    "matrix": ("matrix", "camera_matrix", "cameraMatrix", "K", "intrinsic_matrix"),
    "distortion": ("distortions", "distortion_coefficients", "dist_coeffs", "distCoeffs", "distortion", "dist", "D"),
    "rotation": ("rotation", "rvec", "R", "rotation_matrix", "Rot"),
    "translation": ("translation", "tvec", "T", "t", "translation_vector"),
    "size": ("size", "image_size", "imageSize"),
}
"""Names of each field, in any layout."""


@dataclass(frozen=True)
class CalibratedCamera:
    """A camera of known place in a world in metres."""

    name: str
    size: tuple[int, int] | None
    """Width and height, px, where the file has them."""
    matrix: Array
    """(3, 3) intrinsic."""
    distortion: Array
    """(8,) OpenCV's k1, k2, p1, p2, k3, k4, k5, k6; of a fisheye lens k1 to k4 and zeros."""
    rotation: Array
    """(3, 3) world to camera (x right, y down, z away)."""
    translation: Array
    """(3,) of the world's origin in the camera's frame, m."""
    fisheye: bool = False

    def seen(self, places: Array) -> Array:
        """World points (..., 3) in the camera's frame, m."""
        return places @ self.rotation.T + self.translation

    def project(self, places: Array) -> Array:
        """Pixels (..., 2) of world points (..., 3) in front of the camera."""
        seen = self.seen(places)
        bent = self._distorted(seen[..., :2] / seen[..., 2:])
        return np.asarray(bent @ self.matrix[:2, :2].T + self.matrix[:2, 2])

    def rays(self, pixels: Array) -> Array:
        """Undistorted image points (..., 2) at distance 1 of pixels (..., 2), by fixed-point iteration."""
        bent = (pixels - self.matrix[:2, 2]) @ np.linalg.inv(self.matrix[:2, :2]).T
        straight = bent.copy()
        for _ in range(_UNDISTORT_STEPS):
            straight = straight + bent - self._distorted(straight)
        return np.asarray(straight)

    def centre(self) -> Array:
        """(3,) of the camera in the world, m."""
        return np.asarray(-self.rotation.T @ self.translation)

    def _distorted(self, straight: Array) -> Array:
        """OpenCV's rational model, or its fisheye model."""
        k1, k2, p1, p2, k3, k4, k5, k6 = self.distortion
        x, y = straight[..., 0], straight[..., 1]
        square = x * x + y * y
        if self.fisheye:
            radius = np.sqrt(square)
            angle = np.arctan(radius)
            a2 = angle * angle
            stretched = angle * (1 + a2 * (k1 + a2 * (k2 + a2 * (p1 + a2 * p2))))
            return straight * np.where(radius > 1e-9, stretched / np.maximum(radius, 1e-9), 1.0)[..., None]
        radial = 1 + square * (k1 + square * (k2 + square * k3))
        radial = radial / (1 + square * (k4 + square * (k5 + square * k6)))
        return np.stack(
            [
                x * radial + 2 * p1 * x * y + p2 * (square + 2 * x * x),
                y * radial + p1 * (square + 2 * y * y) + 2 * p2 * x * y,
            ],
            axis=-1,
        )


def read_calibration(path: Path | str) -> tuple[CalibratedCamera, ...]:
    """The cameras of a calibration, in the file's order (a folder's: by name); lengths in metres.

    Raises:
        InputFileError: missing, of another layout, fewer than two cameras, or a field that no camera has.
    """
    path = Path(path)
    if path.is_dir():
        cameras = _read_folder(path)
    elif path.suffix.lower() == ".toml":
        cameras = _read_toml(path)
    else:
        cameras = _cameras_of(path, _read_yaml(path))
    if len(cameras) < 2:
        raise InputFileError(path, f"cameras: found {len(cameras)}, expected at least 2")
    return tuple(cameras)


def _read_toml(path: Path) -> list[CalibratedCamera]:
    try:
        tables = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise InputFileError(path, "missing") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputFileError(path, f"not a TOML file: {error}") from None
    named = {k: v for k, v in tables.items() if isinstance(v, dict) and k not in _NO_CAMERA}
    return [_camera(path, str(fields.get("name", key)), fields) for key, fields in named.items()]


def _read_folder(path: Path) -> list[CalibratedCamera]:
    pair = [path / "intri.yml", path / "extri.yml"]
    if all(file.is_file() for file in pair):
        return _cameras_of(path, _read_yaml(pair[0]) | _read_yaml(pair[1]))
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in (".yml", ".yaml"))
    if not files:
        raise InputFileError(path, "no calibration in it: expected a .yml or .yaml file for each camera")
    return [_camera(file, file.stem, _read_yaml(file)) for file in files]


def _cameras_of(path: Path, fields: Mapping[str, Any]) -> list[CalibratedCamera]:
    """A mapping for each camera, or fields with the camera's name behind an underscore."""
    named = {key: value for key, value in fields.items() if isinstance(value, dict)}
    if named:
        return [_camera(path, str(value.get("name", key)), value) for key, value in named.items()]
    listed = fields.get("names", [])
    if not isinstance(listed, list):
        raise InputFileError(path, f"names: found {listed!r}, expected a list of the cameras")
    names = [str(name) for name in listed]
    if not names:
        names = [key[2:] for key in fields if key.startswith("K_")]
    if not names:
        raise InputFileError(path, f"no cameras: found {', '.join(fields)}; expected a mapping for each, or K_NAME")
    return [_camera(path, name, _own_fields(fields, name)) for name in names]


def _own_fields(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    own = {key.removesuffix(f"_{name}"): value for key, value in fields.items() if key.endswith(f"_{name}")}
    return {**own, **({"size": [own["W"], own["H"]]} if {"W", "H"} <= own.keys() else {})}


class _OpenCvLoader(yaml.SafeLoader):
    """Knows OpenCV's matrices, and nothing else beyond plain YAML."""


def _opencv_matrix(loader: yaml.SafeLoader, node: yaml.Node) -> list[list[float]]:
    fields = loader.construct_mapping(node, deep=True)
    return np.reshape(fields["data"], (int(fields["rows"]), int(fields["cols"]))).tolist()


_OpenCvLoader.add_constructor("tag:yaml.org,2002:opencv-matrix", _opencv_matrix)


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        text = re.sub(r"\A%YAML[: ].*\n", "", path.read_text())
        fields = yaml.load(text, _OpenCvLoader)
    except FileNotFoundError:
        raise InputFileError(path, "missing") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputFileError(path, f"not OpenCV's YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise InputFileError(path, "not OpenCV's YAML: nested too deeply") from None
    if not isinstance(fields, dict):
        raise InputFileError(path, f"found {type(fields).__name__}, expected a mapping")
    return {str(key): value for key, value in fields.items()}


def _camera(path: Path, name: str, fields: Mapping[str, Any]) -> CalibratedCamera:
    matrix = _numbers(path, name, fields, "matrix", (9,)).reshape(3, 3)
    if not (matrix[0, 0] > 0 and matrix[1, 1] > 0 and np.allclose(matrix[2], [0, 0, 1])):
        raise InputFileError(
            path, f"{name}.matrix: found {matrix.tolist()}, expected [[fx, s, cx], [0, fy, cy], [0, 0, 1]]"
        )
    fisheye = bool(fields.get("fisheye", False))
    distortion = np.zeros(8)
    found = _numbers(path, name, fields, "distortion", (4,) if fisheye else (0, 4, 5, 8, 12, 14))
    if (found[8:] != 0).any():
        raise InputFileError(path, f"{name}.distortion: thin-prism and tilt terms are not read; found {found.tolist()}")
    distortion[: min(len(found), 8)] = found[:8]
    rotation = _numbers(path, name, fields, "rotation", (3, 9))
    turn = quat_to_matrix(rotvec_to_quat(rotation)) if rotation.size == 3 else rotation.reshape(3, 3)
    if not np.allclose(turn @ turn.T, np.eye(3), atol=1e-3) or np.linalg.det(turn) < 0:
        raise InputFileError(path, f"{name}.rotation: found {rotation.tolist()}, which is no rotation")
    translation = _numbers(path, name, fields, "translation", (3,))
    if np.abs(translation).max() > 200:
        found_text = f"found {translation.tolist()}"
        raise InputFileError(path, f"{name}.translation: {found_text}, expected metres (at most 200); mm?")
    return CalibratedCamera(name, _size(path, name, fields), matrix, distortion, turn, translation, fisheye)


def _size(path: Path, name: str, fields: Mapping[str, Any]) -> tuple[int, int] | None:
    if {"image_width", "image_height"} <= fields.keys():
        fields = {"size": [fields["image_width"], fields["image_height"]]}
    if not any(key in fields for key in _FIELDS["size"]):
        return None
    width, height = _numbers(path, name, fields, "size", (2,))
    return int(width), int(height)


def _numbers(path: Path, name: str, fields: Mapping[str, Any], field: str, sizes: tuple[int, ...]) -> Array:
    """A field's numbers in a row."""
    key = next((key for key in _FIELDS[field] if key in fields), None)
    if key is None:
        raise InputFileError(path, f"{name}.{field}: missing; expected one of {', '.join(_FIELDS[field])}")
    try:
        values = np.asarray(fields[key], dtype=float).ravel()
    except (TypeError, ValueError):
        raise InputFileError(path, f"{name}.{key}: found {fields[key]!r}, expected numbers") from None
    if values.size not in sizes or not np.isfinite(values).all():
        expected = " or ".join(map(str, sizes))
        raise InputFileError(path, f"{name}.{key}: found {values.tolist()}, expected {expected} finite numbers")
    return values
