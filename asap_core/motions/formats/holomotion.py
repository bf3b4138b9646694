"""What HoloMotion's npz and H5 share: `ref_*` arrays, root quaternions xyzw, JSON metadata with `motion_fps` (E13)."""

from __future__ import annotations

import json
from typing import Any

from asap_core.motions.formats.clip import Declared


def declared(joints: int) -> Declared:
    """What the format's definition says of a file with so many joints."""
    return Declared("xyzw", "unitree29" if joints == 29 else None, None, "z", "m", "rad", frame="world")


def metadata_of(text: str | None) -> dict[str, Any]:
    """The metadata's JSON object; empty if there is none."""
    try:
        content = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def rate_of(metadata: dict[str, Any]) -> float | None:
    """The metadata's frame rate, Hz; None if it holds none."""
    rate = metadata.get("motion_fps", metadata.get("fps"))
    return float(rate) if isinstance(rate, int | float) and not isinstance(rate, bool) else None


def name_of(metadata: dict[str, Any], default: str) -> str:
    """The clip's key in the metadata, or `default`."""
    key = metadata.get("motion_key")
    return key if isinstance(key, str) and key else default
