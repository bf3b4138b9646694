"""The pose networks' weights: where they come from, their digests, fetching and loading.

`python -m asap_core.reconstruction.weights FOLDER [--heavy]` fetches them; `make video` calls it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from asap_core.errors import InputFileError, StageError
from asap_core.files import atomic_file, sha256_file
from asap_core.progress import console

FOLDER = Path(".asap/weights")
"""Where the weights lie in a project."""
WHEEL = "mediapipe==0.10.21"
"""The last wheel that holds them (Apache-2.0). Its platform does not matter: two data files are taken out of it."""
NPM_PACKAGE = "@mediapipe/pose@0.5.1675469404"
"""Apache-2.0."""
_WHEEL_OF = ("--platform", "manylinux_2_28_x86_64", "--implementation", "cp", "--python-version", "3.11")


@dataclass(frozen=True)
class Weights:
    """One network's file."""

    file: str
    sha256: str
    member: str
    """Its name inside the package."""
    target: str
    """What fetches it."""


WEIGHTS = {
    "detector": Weights(
        "pose_detection.tflite",
        "9ba9dd3d42efaaba86b4ff0122b06f29c4122e756b329d89dca1e297fd8f866c",
        "mediapipe/modules/pose_detection/pose_detection.tflite",
        "make video",
    ),
    "full": Weights(
        "pose_landmark_full.tflite",
        "e9a5c5cb17f736fafd4c2ec1da3b3d331d6edbe8a0d32395855aeb2cdfd64b9f",
        "mediapipe/modules/pose_landmark/pose_landmark_full.tflite",
        "make video",
    ),
    "heavy": Weights(
        "pose_landmark_heavy.tflite",
        "59e42d71bcd44cbdbabc419f0ff76686595fd265419566bd4009ef703ea8e1fe",
        "package/pose_landmark_heavy.tflite",
        "make video-heavy",
    ),
}


def read_weights(name: str, folder: Path) -> bytes:
    """The bytes of a network of `WEIGHTS`, which are those that its digest promises.

    Raises:
        InputFileError: the file is missing or another one; the message names the make target that fetches it.
    """
    weights = WEIGHTS[name]
    path = folder / weights.file
    if not path.is_file():
        raise InputFileError(path, f"missing: the weights of the {name} network; `{weights.target}` fetches them")
    _check(path, weights)
    return path.read_bytes()


def fetch(folder: Path, heavy: bool) -> None:
    """Bring the weights that `folder` lacks: detector and full model from PyPI, or the heavy model from npm.

    Raises:
        InputFileError: what came has another digest.
        StageError: pip or npm is missing or failed.
    """
    names = ["heavy"] if heavy else ["detector", "full"]
    missing = [name for name in names if not _is_right(folder / WEIGHTS[name].file, WEIGHTS[name])]
    if not missing:
        return
    source = NPM_PACKAGE if heavy else WHEEL
    console.print(f"fetching the weights of {', '.join(missing)} from {source}", highlight=False)
    with tempfile.TemporaryDirectory() as scratch:
        package = _npm_pack(Path(scratch)) if heavy else _pip_download(Path(scratch))
        for name in missing:
            _extract(package, WEIGHTS[name], folder)


def _pip_download(scratch: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    _run([*command, "--only-binary=:all:", *_WHEEL_OF, "--dest", str(scratch), WHEEL], scratch)
    return next(scratch.glob("*.whl"))


def _npm_pack(scratch: Path) -> Path:
    if shutil.which("npm") is None:
        raise StageError(
            f"npm: not found; it brings {NPM_PACKAGE}, which holds the heavy model. The full model needs none"
        )
    _run(["npm", "pack", "--silent", NPM_PACKAGE], scratch)
    return next(scratch.glob("*.tgz"))


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StageError(f"`{' '.join(command)}` failed: {done.stderr.strip()[-2000:]}")


def _extract(package: Path, weights: Weights, folder: Path) -> None:
    with atomic_file(folder / weights.file) as partial:
        try:
            partial.write_bytes(_member(package, weights.member))
        except KeyError:
            raise InputFileError(package, f"holds no {weights.member}") from None
        _check(partial, weights)


def _member(package: Path, name: str) -> bytes:
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as wheel:
            return wheel.read(name)
    with tarfile.open(package) as archive:
        stream = archive.extractfile(name)
        if stream is None:
            raise KeyError(name)
        return stream.read()


def _is_right(path: Path, weights: Weights) -> bool:
    return path.is_file() and sha256_file(path) == weights.sha256


def _check(path: Path, weights: Weights) -> None:
    found = sha256_file(path)
    if found != weights.sha256:
        raise InputFileError(
            path, f"sha256 {found}, expected {weights.sha256}; remove the file and fetch it again: `{weights.target}`"
        )


if __name__ == "__main__":
    fetch(Path(sys.argv[1]), heavy="--heavy" in sys.argv[2:])
