"""The robot as USD text, alone or in a scene for PhysX, so that no USD library is needed.

Links are siblings under one prim, each with its world pose at zero joint angles; the tree is that of the joints.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from asap_core.robots.compound import Carrier, Inertial, carriers, compound_inertials
from asap_core.robots.kinematics import Kinematics
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import Link, RobotProfile, Shape
from asap_core.rotations import Array, quat_mul, rotate

ENVS = "/World/envs"
"""Parent of the copies `env0`, `env1`, …"""
ROBOT = f"{ENVS}/env0"
"""The robot; links and joints are prims under it."""
_POSITION_ITERATIONS = 8
_VELOCITY_ITERATIONS = 1
_CONTACT_OFFSET = 0.01
"""m from which PhysX looks ahead for contacts."""
_DEPENETRATION_SPEED = 1.0
"""m/s. What starts inside the ground is pushed out no faster; unlimited, the solver explodes."""
_NO_LIMIT = 1e6
_STOPS = "[0.02, 1]"
"""How joint stops give way in MuJoCo, for Newton, whose own are softer; PhysX's do not give way."""
_GROUND_FRICTION = 1e-4
"""Below any robot's; engines warn of zero."""


def scene_usda(profile: RobotProfile, physics: PhysicsSettings) -> str:
    """A scene with flat ground and one robot with drives, as USD text.

    Gains, and what else differs between robots of one simulator, are written by the simulator. A joint needs a drive
    in the scene nonetheless, or PhysX ignores its gains in silence.
    """
    lines = [_SCENE.format(head=_head("World"), rate=round(1 / physics.physics_dt)), _ground("/World")]
    lines += ['    def Xform "envs"', "    {", _robot(profile, physics, ROBOT), "    }"]
    return "\n".join([*lines, _groups(physics), "}", ""])


def robot_usda(profile: RobotProfile, physics: PhysicsSettings) -> str:
    """The robot alone under `physics`, to be referenced by scenes of other makers. Its drives have gains of 1."""
    return f"{_head('robot')}{_robot(profile, physics, '/robot')}\n"


def ground_usda() -> str:
    """Flat ground alone, for scenes of other makers."""
    return f'{_head("ground_root")}def Xform "ground_root"\n{{\n{_ground("/ground_root")}\n}}\n'


def link_prims(profile: RobotProfile) -> tuple[str, ...]:
    """Prim names of `profile.links`. USD allows fewer characters than robots' files do, and one use of a name."""
    return tuple(f"link{i}_{_identifier(link.name)}" for i, link in enumerate(profile.links))


def joint_prims(profile: RobotProfile) -> tuple[str, ...]:
    """Prim names of `profile.joint_names`."""
    return tuple(f"joint{i}_{_identifier(name)}" for i, name in enumerate(profile.joint_names))


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name, flags=re.ASCII)


# External forces in every iteration: without, velocities of driven joints at rest read as other than zero.
_SCENE = """{head}def Xform "World"
{{
    def PhysicsScene "scene" (prepend apiSchemas = ["PhysxSceneAPI"])
    {{
        vector3f physics:gravityDirection = (0, 0, -1)
        float physics:gravityMagnitude = 9.81
        bool physxScene:enableGPUDynamics = 0
        uniform token physxScene:broadphaseType = "MBP"
        uniform token physxScene:solverType = "TGS"
        bool physxScene:enableStabilization = 0
        bool physxScene:enableEnhancedDeterminism = 1
        bool physxScene:enableExternalForcesEveryIteration = 1
        uint physxScene:timeStepsPerSecond = {rate}
    }}"""


def _head(default_prim: str) -> str:
    return f"""#usda 1.0
(
    defaultPrim = "{default_prim}"
    kilogramsPerUnit = 1
    metersPerUnit = 1
    upAxis = "Z"
)
"""


def _ground(parent: str) -> str:
    """A plane, in the prim `parent`. Contacts take the greater friction of two surfaces: here the robot's counts."""
    return f"""    def Plane "ground" (prepend apiSchemas = ["PhysicsCollisionAPI", "MaterialBindingAPI"])
    {{
        uniform token axis = "Z"
        rel material:binding:physics = <{parent}/ground_material>
    }}
{_material("ground_material", _GROUND_FRICTION)}"""


def _material(name: str, friction: float) -> str:
    return f"""    def Material "{name}" (prepend apiSchemas = ["PhysicsMaterialAPI", "PhysxMaterialAPI"])
    {{
        float physics:staticFriction = {_text(friction)}
        float physics:dynamicFriction = {_text(friction)}
        float physics:restitution = 0
        uniform token physxMaterial:frictionCombineMode = "max"
    }}"""


def _robot(profile: RobotProfile, physics: PhysicsSettings, path: str) -> str:
    """The prim at `path`."""
    zero = np.zeros((1, profile.num_joints))
    poses = Kinematics(profile).forward(np.zeros((1, 3)), np.array([[1.0, 0, 0, 0]]), zero)
    borne, inertials = carriers(profile), compound_inertials(profile, physics)
    lines = [f'    def Xform "{path.split("/")[-1]}"', "    {", _material("material", physics.friction)]
    for index, link in enumerate(profile.links):
        shapes = [shape for shape in profile.shapes if borne[shape.link].link == link.name]
        lines += _link(profile, physics, link, path)
        lines += [*_pose(poses.pos[0, index], poses.quat[0, index]), *_inertial(inertials[link.name])]
        for number, shape in enumerate(shapes):
            lines += _collider(shape, borne[shape.link], path, number)
        lines.append("    }")
    for link in profile.links:
        if link.joint is not None:
            lines += _joint(profile, link, path)
    return "\n".join([*lines, "    }"])


def _link(profile: RobotProfile, physics: PhysicsSettings, link: Link, robot: str) -> list[str]:
    """What a link is besides its pose, mass and shapes, without the brace that closes it."""
    prims = dict(zip((link.name for link in profile.links), link_prims(profile), strict=True))
    schemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI", "PhysxRigidBodyAPI", "PhysicsFilteredPairsAPI"]
    if link.parent is None:
        schemas += ["PhysicsArticulationRootAPI", "PhysxArticulationAPI"]
    if link.name in profile.foot_links:
        schemas.append("PhysxContactReportAPI")
    borne = carriers(profile)
    excludes = [(borne[a].link, borne[b].link) for a, b in profile.collision_excludes]
    apart = [b if a == link.name else a for a, b in excludes if link.name in (a, b)]
    lines = [
        f'    def Xform "{prims[link.name]}" (prepend apiSchemas = [{_quoted(schemas)}])',
        "    {",
        "    float physxRigidBody:linearDamping = 0",
        "    float physxRigidBody:angularDamping = 0",
        f"    float physxRigidBody:maxAngularVelocity = {_NO_LIMIT}",
        f"    float physxRigidBody:maxDepenetrationVelocity = {_DEPENETRATION_SPEED}",
        "    float physxRigidBody:sleepThreshold = 0",
        f"    rel physics:filteredPairs = [{', '.join(f'<{robot}/{prims[name]}>' for name in apart)}]",
    ]
    if link.parent is None:
        lines += [
            f"    bool physxArticulation:enabledSelfCollisions = {int(physics.self_collision)}",
            f"    int physxArticulation:solverPositionIterationCount = {_POSITION_ITERATIONS}",
            f"    int physxArticulation:solverVelocityIterationCount = {_VELOCITY_ITERATIONS}",
            "    float physxArticulation:sleepThreshold = 0",
            "    float physxArticulation:stabilizationThreshold = 0",
        ]
    if link.name in profile.foot_links:
        lines.append("    float physxContactReport:threshold = 0")
    return lines


def _inertial(inertial: Inertial) -> list[str]:
    moments, axes = np.linalg.eigh(inertial.inertia)
    axes[:, 2] *= np.linalg.det(axes)
    return [
        f"    float physics:mass = {_text(inertial.mass)}",
        f"    point3f physics:centerOfMass = {_tuple(inertial.com)}",
        f"    quatf physics:principalAxes = {_tuple(Rotation.from_matrix(axes).as_quat(scalar_first=True))}",
        f"    float3 physics:diagonalInertia = {_tuple(moments)}",
    ]


def _collider(shape: Shape, at: Carrier, robot: str, number: int) -> list[str]:
    """A primitive; a capsule lies along its own z."""
    pos, turn = np.array(shape.pos, float), np.array([1.0, 0, 0, 0])
    scale: tuple[float, ...] = (1.0, 1.0, 1.0)
    if shape.kind == "sphere":
        kind, size = "Sphere", f"double radius = {_text(shape.size[0])}"
    elif shape.kind == "box":
        kind, size, scale = "Cube", "double size = 2", shape.size
    else:
        end = np.array(shape.end, float)
        length = float(np.linalg.norm(end - pos))
        kind = "Capsule"
        size = (
            f'uniform token axis = "Z"\n    double radius = {_text(shape.size[0])}\n    double height = {_text(length)}'
        )
        pos, turn = (pos + end) / 2, _turn_to(np.array([0, 0, 1.0]), (end - pos) / length)
    return [
        f'    def {kind} "shape{number}" (prepend apiSchemas = ['
        '"PhysicsCollisionAPI", "PhysxCollisionAPI", "MaterialBindingAPI"])',
        "    {",
        f"    {size}",
        *_pose(at.pos + rotate(at.quat, pos), quat_mul(at.quat, turn), scale),
        f"    float physxCollision:contactOffset = {_CONTACT_OFFSET}",
        "    float physxCollision:restOffset = 0",
        f"    rel material:binding:physics = <{robot}/material>",
        "    }",
    ]


def _joint(profile: RobotProfile, link: Link, robot: str) -> list[str]:
    """A hinge about x of a frame that turns x into the link's axis. USD counts in degrees."""
    prims = dict(zip((link.name for link in profile.links), link_prims(profile), strict=True))
    index = profile.joint_index(link.joint or "")
    align = _turn_to(np.array([1.0, 0, 0]), np.array(link.axis, float))
    return [
        f'    def PhysicsRevoluteJoint "{joint_prims(profile)[index]}" (prepend apiSchemas = ['
        '"PhysicsDriveAPI:angular", "PhysxJointAxisAPI:angular"])',
        "    {",
        f"    rel physics:body0 = <{robot}/{prims[link.parent or '']}>",
        f"    rel physics:body1 = <{robot}/{prims[link.name]}>",
        '    uniform token physics:axis = "X"',
        f"    point3f physics:localPos0 = {_tuple(link.pos)}",
        f"    quatf physics:localRot0 = {_tuple(quat_mul(np.array(link.quat, float), align))}",
        "    point3f physics:localPos1 = (0, 0, 0)",
        f"    quatf physics:localRot1 = {_tuple(align)}",
        f"    float physics:lowerLimit = {_text(math.degrees(profile.joint_lower[index]))}",
        f"    float physics:upperLimit = {_text(math.degrees(profile.joint_upper[index]))}",
        '    uniform token drive:angular:physics:type = "force"',
        "    float drive:angular:physics:stiffness = 1",
        "    float drive:angular:physics:damping = 1",
        f"    float drive:angular:physics:maxForce = {_NO_LIMIT}",
        f"    float physxJointAxis:angular:maxJointVelocity = {_NO_LIMIT}",
        f"    uniform double[] mjc:solreflimit = {_STOPS}",
        "    }",
    ]


def _groups(physics: PhysicsSettings) -> str:
    """Without self collision: one group of all robots that does not collide with itself, so that copies may meet."""
    if physics.self_collision:
        return ""
    return f"""    def PhysicsCollisionGroup "robots" (prepend apiSchemas = ["CollectionAPI:colliders"])
    {{
        uniform token collection:colliders:expansionRule = "expandPrims"
        rel collection:colliders:includes = [<{ENVS}>]
        rel physics:filteredGroups = [</World/robots>]
    }}"""


def _pose(pos: Array, quat: Array, scale: Sequence[float] = (1.0, 1.0, 1.0)) -> list[str]:
    return [
        f"    double3 xformOp:translate = {_tuple(pos)}",
        f"    quatd xformOp:orient = {_tuple(quat)}",
        f"    float3 xformOp:scale = {_tuple(scale)}",
        '    uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient", "xformOp:scale"]',
    ]


def _turn_to(start: Array, end: Array) -> Array:
    """The shortest turn (4,), wxyz, of unit vector `start` into unit vector `end`."""
    cosine = float(start @ end)
    if cosine < -1 + 1e-12:
        across = np.cross(start, [0.0, 1.0, 0.0] if abs(start[1]) < 0.5 else [0.0, 0.0, 1.0])
        return np.concatenate([[0.0], across / np.linalg.norm(across)])
    quat = np.concatenate([[1 + cosine], np.cross(start, end)])
    return quat / np.linalg.norm(quat)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _tuple(values: Sequence[float] | Array) -> str:
    return f"({', '.join(_text(value) for value in values)})"


def _text(value: float) -> str:
    return repr(float(value))
