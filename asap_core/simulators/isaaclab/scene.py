"""Isaac Lab's configuration of a robot on flat ground, from the robot's profile."""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.robots.kinematics import Kinematics
from asap_core.robots.mjcf import scaled_gains
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.robots.usd import ground_usda, joint_prims, link_prims, robot_usda
from asap_core.simulators.isaaclab.runtime import cache_folder, writing_cache

SPACING = 3.0
"""m between robots, which never collide with each other."""


def articulation_cfg(profile: RobotProfile, physics: PhysicsSettings) -> Any:
    """Isaac Lab's `ArticulationCfg` of the robot, at rest in its default pose, under the drives of `physics`.

    Explicit drives are left without gains: whoever steps the robot gives it torques.
    """
    from isaaclab.actuators import ImplicitActuatorCfg
    from isaaclab.assets import ArticulationCfg
    from isaaclab.sim import UsdFileCfg

    joints, implicit = joint_prims(profile), float(physics.drive == "implicit")
    kp, kd, torque_limit = scaled_gains(profile, physics)

    def of_joint(values: Any) -> dict[str, float]:
        return {joint: float(value) for joint, value in zip(joints, values, strict=True)}

    drives = ImplicitActuatorCfg(
        joint_names_expr=[".*"],
        stiffness=of_joint(implicit * kp),
        damping=of_joint(implicit * kd),
        joint_effort_limit=of_joint(torque_limit),
        armature=physics.armature,
    )
    return ArticulationCfg(
        prim_path="{ENV_REGEX_NS}/robot",
        spawn=UsdFileCfg(usd_path=str(_file("robot", robot_usda(profile, physics)))),
        init_state=ArticulationCfg.InitialStateCfg(
            pos=(0.0, 0.0, standing_height(profile)), joint_pos=of_joint(profile.default_joint_pos)
        ),
        actuators={"joints": drives},
        soft_joint_pos_limit_factor=1.0,
    )


def ground_cfg() -> Any:
    """Isaac Lab's `AssetBaseCfg` of flat ground on which the robot's friction counts."""
    from isaaclab.assets import AssetBaseCfg
    from isaaclab.sim import UsdFileCfg

    return AssetBaseCfg(prim_path="/World/ground", spawn=UsdFileCfg(usd_path=str(_file("ground", ground_usda()))))


def foot_sensor_cfg(profile: RobotProfile) -> Any:
    """Isaac Lab's `ContactSensorCfg` of all feet."""
    from isaaclab.sensors import ContactSensorCfg

    feet = "|".join(re.escape(link_prims(profile)[i]) for i in profile.foot_index)
    # With a history the engine is asked once a step; without, once more when the forces are read.
    return ContactSensorCfg(prim_path=f"{{ENV_REGEX_NS}}/robot/({feet})", history_length=1)


def scene_cfg(profile: RobotProfile, physics: PhysicsSettings, num_envs: int) -> Any:
    """Isaac Lab's `InteractiveSceneCfg` with `ground`, `robot` and `feet`."""
    from isaaclab.scene import InteractiveSceneCfg

    cfg = InteractiveSceneCfg(num_envs=num_envs, env_spacing=SPACING)
    cfg.ground = ground_cfg()
    cfg.robot = articulation_cfg(profile, physics)
    cfg.feet = foot_sensor_cfg(profile)
    return cfg


def standing_height(profile: RobotProfile) -> float:
    """m, of the root over the lowest sole point in the default pose."""
    kinematics = Kinematics(profile)
    links = kinematics.forward(np.zeros((1, 3)), np.array([[1.0, 0, 0, 0]]), profile.default_joint_pos[None])
    return -float(np.min(kinematics.sole_points(links)[..., 2]))


def _file(name: str, text: str) -> Path:
    """Isaac Lab reads robots from files: one for each content, which stays, as processes may end before they clean up.

    One that does not hold what its name says, cut off by a full disk or changed by hand, is written anew.

    Raises:
        StageError: the cache cannot be written.
    """
    content = text.encode()
    path = cache_folder() / f"asap-{name}-{hashlib.sha256(content).hexdigest()[:16]}.usda"
    # Not `atomic_file`, which takes another process's unfinished file of the same name for one left behind.
    partial = path.with_name(f".{path.name}-{uuid.uuid4().hex}")
    with writing_cache(path):
        if path.exists() and path.read_bytes() == content:
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            partial.write_bytes(content)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
    return path
