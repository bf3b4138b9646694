"""A small humanoid of our own as URDF with STL meshes, for the tests of the model import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

THIGH, SHANK, ANKLE_TO_SOLE = 0.30, 0.28, 0.05
HIP_DROP, HIP_SIDE = 0.06, 0.09
FOOT = (0.20, 0.08, 0.03)
"""Full edges of the foot's box, m; its centre is 0.03 m ahead of the ankle."""
ARM = 0.24


def write_humanoid(folder: Path, **replaced: str) -> Path:
    """Write `robot.urdf` and its meshes; `replaced` swaps pieces of the text: old=new by the names in `_PIECES`."""
    import trimesh

    meshes: dict[str, Any] = {
        "foot": trimesh.creation.box(FOOT, transform=_shift(0.03, 0, -ANKLE_TO_SOLE + FOOT[2] / 2)),
        "thigh": trimesh.creation.capsule(THIGH - 0.08, 0.05, transform=_shift(0, 0, -THIGH + 0.04)),
        "shank": trimesh.creation.cylinder(0.04, SHANK - 0.04, transform=_shift(0, 0, -SHANK / 2)),
        "chest": trimesh.creation.box((0.14, 0.22, 0.30), transform=_shift(0, 0, 0.20)),
        "base": trimesh.creation.box((0.12, 0.20, 0.12)),
        "arm": trimesh.creation.capsule(ARM - 0.08, 0.03, transform=_shift(0, 0, -ARM + 0.04)),
    }
    (folder / "meshes").mkdir(parents=True, exist_ok=True)
    for name, mesh in meshes.items():
        mesh.export(folder / "meshes" / f"{name}.stl")
    text = _urdf()
    for old, new in replaced.items():
        piece = _PIECES[old]
        assert piece in text, old
        text = text.replace(piece, new, 1)
    path = folder / "robot.urdf"
    path.write_text(text)
    return path


_PIECES = {
    "thigh_inertia": '<inertia ixx="0.02" iyy="0.02" izz="0.004"/>',
    "left_knee": 'name="l_shank"',
    "knee_type": '<joint name="l_knee" type="revolute">',
    "shank_mesh": "package://humanoid/meshes/shank.stl",
}


def _shift(x: float, y: float, z: float) -> Any:
    import trimesh

    return trimesh.transformations.translation_matrix((x, y, z))


def _link(name: str, mass: float, com: str, inertia: str, mesh: str | None) -> str:
    shown = f'<visual><geometry><mesh filename="package://humanoid/meshes/{mesh}.stl"/></geometry></visual>'
    return (
        f'<link name="{name}"><inertial><origin xyz="{com}"/><mass value="{mass}"/><inertia {inertia}/></inertial>'
        f"{shown if mesh else ''}</link>"
    )


def _joint(name: str, parent: str, child: str, xyz: str, axis: str, limit: str) -> str:
    return (
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/><origin xyz="{xyz}"/>'
        f'<axis xyz="{axis}"/><limit {limit}/></joint>'
    )


def _urdf() -> str:
    parts = [
        _link("base", 5.0, "0 0 0", 'ixx="0.03" iyy="0.02" izz="0.03"', "base"),
        _link("chest", 8.0, "0 0 0.2", 'ixx="0.09" iyy="0.08" izz="0.05"', "chest"),
        _joint("waist_yaw", "base", "chest", "0 0 0.08", "0 0 1", 'lower="-1" upper="1" effort="60" velocity="10"'),
        '<link name="imu"/><joint name="imu_fix" type="fixed"><parent link="chest"/><child link="imu"/></joint>',
    ]
    for side, sign in (("l", 1), ("r", -1)):
        parts += _leg(side, sign) + _arm(side, sign)
    return f'<robot name="humanoid">{"".join(parts)}</robot>'


def _leg(side: str, sign: int) -> list[str]:
    limit = 'effort="{}" velocity="15"'
    thigh = 'ixx="0.02" iyy="0.02" izz="0.004"'
    return [
        _link(f"{side}_hip", 0.8, "0 0 0", 'ixx="0.001" iyy="0.001" izz="0.001"', None),
        _joint(f"{side}_hip_roll", "base", f"{side}_hip", f"0 {sign * HIP_SIDE} {-HIP_DROP}", "1 0 0",
               'lower="-0.5" upper="0.5" ' + limit.format(80)),
        _link(f"{side}_thigh", 3.0, f"0 0 {-THIGH / 2}", thigh, "thigh"),
        _joint(f"{side}_hip_pitch", f"{side}_hip", f"{side}_thigh", "0 0 0", "0 1 0",
               'lower="-2" upper="1" ' + limit.format(80)),
        _link(f"{side}_shank", 2.0, f"0 0 {-SHANK / 2}", 'ixx="0.013" iyy="0.013" izz="0.002"', "shank"),
        _joint(f"{side}_knee", f"{side}_thigh", f"{side}_shank", f"0 0 {-THIGH}", "0 1 0",
               'lower="0" upper="2.2" ' + limit.format(100)),
        _link(f"{side}_foot", 0.8, "0.03 0 -0.03", 'ixx="0.0006" iyy="0.003" izz="0.003"', "foot"),
        _joint(f"{side}_ankle", f"{side}_shank", f"{side}_foot", f"0 0 {-SHANK}", "0 1 0",
               'lower="-0.9" upper="0.7" ' + limit.format(40)),
    ]  # fmt: skip


def _arm(side: str, sign: int) -> list[str]:
    limit = 'lower="-2.5" upper="2.5" effort="20" velocity="15"'
    return [
        _link(f"{side}_shoulder", 0.5, "0 0 0", 'ixx="0.0005" iyy="0.0005" izz="0.0005"', None),
        _joint(f"{side}_shoulder_pitch", "chest", f"{side}_shoulder", f"0 {sign * 0.15} 0.32", "0 1 0", limit),
        _link(f"{side}_upper_arm", 1.0, f"0 0 {-ARM / 2}", 'ixx="0.005" iyy="0.005" izz="0.0006"', "arm"),
        _joint(f"{side}_shoulder_roll", f"{side}_shoulder", f"{side}_upper_arm", "0 0 0", "1 0 0", limit),
        _link(f"{side}_forearm", 0.8, f"0 0 {-ARM / 2}", 'ixx="0.004" iyy="0.004" izz="0.0004"', "arm"),
        _joint(f"{side}_elbow", f"{side}_upper_arm", f"{side}_forearm", f"0 0 {-ARM}", "0 1 0",
               'lower="-2.2" upper="0" effort="20" velocity="15"'),
    ]  # fmt: skip
