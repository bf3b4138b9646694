"""Reader of URDF (http://wiki.ros.org/urdf/XML): metres, radians, Euler angles roll-pitch-yaw about fixed axes."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from asap_core.errors import InputFileError
from asap_core.robots.importing.tree import Geometry, ModelTree, TreeBody, TreeJoint
from asap_core.rotations import Array

_FIXED, _HINGES = "fixed", ("revolute", "continuous")
_ROOT_JOINT = "floating"
_GEOMETRIES = ("mesh", "box", "sphere", "cylinder", "capsule")


def read_urdf(path: Path) -> ModelTree:
    """Read the bodies and joints of a URDF.

    Raises:
        InputFileError: not XML, not one tree, a joint of another type than fixed or a hinge, a missing field.
    """
    try:
        root = ET.parse(path).getroot()
    except (ET.ParseError, OSError, ValueError, LookupError) as error:  # the last two of encodings
        raise InputFileError(path, f"not a readable XML file: {error}") from None
    if root.tag != "robot":
        raise InputFileError(path, f"root element: found <{root.tag}>, expected <robot> of a URDF")
    links = {_name(path, link): link for link in root.findall("link")}
    joints = {_child(path, joint): joint for joint in root.findall("joint")}
    _check_once(path, "link", [_name(path, link) for link in root.findall("link")])
    _check_once(path, "joint", [_name(path, joint) for joint in root.findall("joint")])
    _check_once(path, "joint above link", [_child(path, joint) for joint in root.findall("joint")])
    changes = tuple(
        f"joint {joint.get('name')} mimics {mimic.get('joint')}: the coupling is dropped, it moves on its own"
        for joint in joints.values()
        if (mimic := joint.find("mimic")) is not None
    )
    order = _in_tree_order(path, links, joints)
    bodies = tuple(_body(path, name, links[name], None if i == 0 else joints[name]) for i, name in enumerate(order))
    return ModelTree(path, bodies, changes)


def _in_tree_order(path: Path, links: dict[str, ET.Element], joints: dict[str, ET.Element]) -> list[str]:
    """Links depth first, the root first; an empty `world` above a floating joint is left out."""
    parents = {child: _link_of(path, joint, "parent") for child, joint in joints.items()}
    for child, parent in parents.items():
        if child not in links or parent not in links:
            missing = child if child not in links else parent
            raise InputFileError(path, f"joint {joints[child].get('name')}: no link {missing!r}")
    roots = [name for name in links if name not in parents]
    roots += [child for child, joint in joints.items() if joint.get("type") == _ROOT_JOINT]
    roots = [name for name in roots if not _only_floats(name, parents, joints)]
    if len(roots) != 1:
        raise InputFileError(path, f"links without a parent: found {', '.join(roots) or 'none'}, expected one root")
    order: list[str] = []
    stack = [roots[0]]
    while stack:
        order.append(stack.pop())
        stack += reversed([child for child, parent in parents.items() if parent == order[-1]])
    lost = [name for name, parent in parents.items() if name not in order and parent in parents]
    if lost:
        raise InputFileError(path, f"links {', '.join(lost)}: hang on one another in a circle, expected one tree")
    return order


def _check_once(path: Path, kind: str, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputFileError(path, f"{kind} {', '.join(twice)}: found more than once")


def _only_floats(name: str, parents: dict[str, str], joints: dict[str, ET.Element]) -> bool:
    children = [child for child, parent in parents.items() if parent == name]
    return bool(children) and all(joints[child].get("type") == _ROOT_JOINT for child in children)


def _body(path: Path, name: str, link: ET.Element, joint: ET.Element | None) -> TreeBody:
    pos, quat = _origin(path, joint)
    mass, com, inertia = _inertial(path, name, link)
    return TreeBody(
        name=name,
        parent=None if joint is None else _link_of(path, joint, "parent"),
        pos=pos,
        quat=quat,
        joint=None if joint is None else _hinge(path, joint),
        mass=mass,
        com=com,
        inertia=inertia,
        geometries=tuple(_geometries(path, link)),
    )


def _hinge(path: Path, joint: ET.Element) -> TreeJoint | None:
    kind, name = joint.get("type"), joint.get("name")
    if kind == _FIXED:
        return None
    if kind not in _HINGES or not name:
        valid = ", ".join((_FIXED, *_HINGES))
        raise InputFileError(path, f"joint {name}: found type {kind}, expected one of {valid}")
    axis_element = joint.find("axis")
    axis = _vector(path, f"joint {name}: axis", "1 0 0" if axis_element is None else axis_element.get("xyz", "1 0 0"))
    length = float(np.linalg.norm(axis))
    if length < 1e-6:
        raise InputFileError(path, f"joint {name}: axis: found zero length, expected a direction")
    limit = joint.find("limit")
    bounds: dict[str, Any] = {} if limit is None else dict(limit.attrib)
    ranged = kind == "revolute"
    lower, upper = (_number(path, f"joint {name}: {end}", bounds.get(end, "0")) for end in ("lower", "upper"))
    if ranged and lower >= upper:
        raise InputFileError(path, f"joint {name}: limit: found {lower:g} to {upper:g} rad, expected a range")
    return TreeJoint(
        name=name,
        axis=axis / length,
        lower=lower if ranged else None,
        upper=upper if ranged else None,
        torque=_positive(path, f"joint {name}: effort", bounds.get("effort")),
        speed=_positive(path, f"joint {name}: velocity", bounds.get("velocity")),
    )


def _inertial(path: Path, name: str, link: ET.Element) -> tuple[float, Array, Array]:
    inertial = link.find("inertial")
    if inertial is None:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    com, quat = _origin(path, inertial)
    mass, tensor = inertial.find("mass"), inertial.find("inertia")
    if mass is None or tensor is None:
        raise InputFileError(path, f"link {name}: inertial: expected mass and inertia")
    value = {key: _number(path, f"link {name}: {key}", tensor.get(key, "0")) for key in tensor.keys()}  # noqa: SIM118
    xx, yy, zz, xy, xz, yz = (value.get(key, 0.0) for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    turn = Rotation.from_quat(quat, scalar_first=True).as_matrix()
    matrix = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
    return _number(path, f"link {name}: mass", mass.get("value", "")), com, matrix


def _geometries(path: Path, link: ET.Element) -> list[Geometry]:
    found = []
    for role in ("visual", "collision"):
        for element in link.findall(role):
            pos, quat = _origin(path, element)
            shape = next(iter(element.find("geometry") or ()), None)
            if shape is None or shape.tag not in _GEOMETRIES:
                continue
            size, file = _size(path, shape)
            found.append(Geometry(shape.tag, pos, quat, size, role == "collision", file))  # type: ignore[arg-type]
    return found


def _size(path: Path, shape: ET.Element) -> tuple[Array, Path | None]:
    where = f"<{shape.tag}>"
    if shape.tag == "mesh":
        scale = _vector(path, f"{where} scale", shape.get("scale", "1 1 1"))
        return scale, resolve_mesh(path, shape.get("filename", ""))
    if shape.tag == "box":
        return _vector(path, f"{where} size", shape.get("size", "")) / 2, None
    radius = _number(path, f"{where} radius", shape.get("radius", ""))
    if shape.tag == "sphere":
        return np.array([radius]), None
    return np.array([radius, _number(path, f"{where} length", shape.get("length", "")) / 2]), None


def resolve_mesh(model: Path, name: str) -> Path:
    """Where a mesh lies: `package://` and `file://` are stripped and looked for beside the model and above it."""
    plain = name.removeprefix("file://").removeprefix("package://")
    parts = Path(plain).parts
    tails = [Path(*parts[skip:]) for skip in range(len(parts))] if parts else []
    for folder in (model.parent, *model.resolve().parents[1:4]):
        for tail in tails:
            if (folder / tail).is_file():
                return folder / tail
    return model.parent / plain


def _origin(path: Path, element: ET.Element | None) -> tuple[Array, Array]:
    origin = None if element is None else element.find("origin")
    if origin is None:
        return np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
    pos = _vector(path, "origin xyz", origin.get("xyz", "0 0 0"))
    angles = _vector(path, "origin rpy", origin.get("rpy", "0 0 0"))
    return pos, Rotation.from_euler("xyz", angles).as_quat(scalar_first=True)


def _name(path: Path, element: ET.Element) -> str:
    name = element.get("name")
    if not name:
        raise InputFileError(path, f"<{element.tag}> without a name")
    return name


def _child(path: Path, joint: ET.Element) -> str:
    return _link_of(path, joint, "child")


def _link_of(path: Path, joint: ET.Element, end: str) -> str:
    element = joint.find(end)
    name = None if element is None else element.get("link")
    if not name:
        raise InputFileError(path, f"joint {joint.get('name')}: {end}: missing")
    return name


def _number(path: Path, field: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputFileError(path, f"{field}: found {text!r}, expected a number") from None
    if not np.isfinite(value):
        raise InputFileError(path, f"{field}: found {text!r}, expected a finite number")
    return value


def _positive(path: Path, field: str, text: str | None) -> float | None:
    """None where the file is silent or says zero, as exporters do for 'not known'."""
    value = None if text is None else _number(path, field, text)
    return value if value is None or value > 0 else None


def _vector(path: Path, field: str, text: str) -> Array:
    values = np.array([_number(path, field, part) for part in text.split()])
    if values.shape != (3,):
        raise InputFileError(path, f"{field}: found {text!r}, expected three numbers")
    return values
