"""What is believed of camera and person before the video is seen, and where each value of the result comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from asap_core.reconstruction.body import BASE_HEIGHT, SHAPE_GROUPS
from asap_core.reconstruction.camera import CAMERA_VARIABLES, Camera, Known
from asap_core.reconstruction.residuals import Prior, Scene

Origin = Literal["given", "metadata", "estimated", "assumed"]

_FOCAL = (1.05, 0.2)
"""Of the larger side of the image, and the spread of its logarithm: phones and webcams."""
_PITCH, _ROLL = (0.1, 0.15), (0.0, 0.06)
"""Mean and spread, rad."""
_CAMERA_HEIGHT = (1.3, 0.3)
"""m, and the spread of its logarithm: hand, tripod or shelf."""
_STATURE = (1.70, 0.06)
"""m, and the spread of its logarithm: adults."""
_PROPORTION = 0.04
"""Spread of the logarithm of a group of bones."""
_KNOWN = 1e-4


@dataclass(frozen=True)
class Estimate:
    """A quantity of the scene and where it comes from."""

    value: float
    unit: str
    origin: Origin


def scene_prior(width: int, height: int, focal: float | None, known: Known) -> Prior:
    """Means and spreads of the shared variables; `focal` is what the file's metadata say, px.

    Without the camera's height nothing tells the size of person and room, so that the person's is not free then.
    """
    wide, spread = _FOCAL
    given = known.focal or focal
    sizable = known.person_height is None and known.camera_height is not None
    camera = [
        (np.log(given or wide * max(width, height)), _KNOWN if given else spread),
        _PITCH if known.pitch is None else (known.pitch, _KNOWN),
        _ROLL if known.roll is None else (known.roll, _KNOWN),
        (
            np.log(known.camera_height or _CAMERA_HEIGHT[0]),
            _CAMERA_HEIGHT[1] if known.camera_height is None else _KNOWN,
        ),
    ]
    stature = known.person_height or _STATURE[0]
    body = (np.log(stature / BASE_HEIGHT), _STATURE[1] if sizable else _KNOWN)
    values = np.array([*camera, body, *[(0.0, _PROPORTION)] * (len(SHAPE_GROUPS) - 1)])
    return Prior(values[:, 0], values[:, 1])


def free_variables(prior: Prior) -> NDArray[np.bool_]:
    """(13,) whether a shared variable is to be estimated."""
    return np.asarray(prior.spread > _KNOWN)


def first_scene(prior: Prior, width: int, height: int) -> Scene:
    """The scene at the prior's means."""
    focal, pitch, roll, above = prior.values[: len(CAMERA_VARIABLES)]
    centre = (width / 2, height / 2)
    camera = Camera(float(np.exp(focal)), float(pitch), float(roll), float(np.exp(above)), centre)
    return Scene(camera, prior.values[len(CAMERA_VARIABLES) :])


def estimates(scene: Scene, focal: float | None, known: Known) -> dict[str, Estimate]:
    """What the scene was taken to be."""
    camera = scene.camera

    def origin(value: float | None, otherwise: Origin = "estimated") -> Origin:
        return otherwise if value is None else "given"

    unsized: Origin = "assumed" if known.camera_height is None else "estimated"
    found: Origin = "metadata" if focal is not None else "estimated"
    return {
        "focal": Estimate(camera.focal, "px", origin(known.focal, found)),
        "pitch": Estimate(camera.pitch, "rad", origin(known.pitch)),
        "roll": Estimate(camera.roll, "rad", origin(known.roll)),
        "camera_height": Estimate(camera.height, "m", origin(known.camera_height)),
        "person_height": body_estimate(scene, known, unsized),
    }


def body_estimate(scene: Scene, known: Known, otherwise: Origin) -> Estimate:
    """The person's height; `otherwise` says where it comes from if it was not given."""
    height = BASE_HEIGHT * float(np.exp(scene.shape[0]))
    return Estimate(height, "m", otherwise if known.person_height is None else "given")
