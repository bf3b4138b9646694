"""All of `PhysicsSettings` that may differ from robot to robot, written to Isaac Lab's articulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from asap_core.robots.compound import compound_inertials
from asap_core.robots.mjcf import per_joint, scaled_gains
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.isaaclab.scene_robot import SceneRobot
from asap_core.simulators.protocol import Array


def write_parameters(robot: SceneRobot, manager: Any, profile: RobotProfile, each: Sequence[PhysicsSettings]) -> None:
    """Write gains, torque limits, armature, joint and contact friction, masses and their places of N robots.

    Args:
        manager: Isaac Lab's `PhysicsManager` of the engine.
    """
    _write_drives(robot, profile, each)
    _write_inertials(robot, profile, each)
    _write_friction(robot.articulation, manager, np.array([p.friction for p in each]))


def _write_drives(robot: SceneRobot, profile: RobotProfile, each: Sequence[PhysicsSettings]) -> None:
    def of_joint(name: str) -> Any:
        rows = [per_joint(profile, f"{name}_of", getattr(p, name), getattr(p, f"{name}_of")) for p in each]
        return robot.of_joints(np.stack(rows))

    kp, kd, limit = (robot.of_joints(np.stack([scaled_gains(profile, p)[i] for p in each])) for i in range(3))
    implicit, joints = float(each[0].drive == "implicit"), robot.articulation
    joints.write_joint_stiffness_to_sim_index(stiffness=implicit * kp)
    joints.write_joint_damping_to_sim_index(damping=implicit * kd)
    joints.write_joint_effort_limit_to_sim_index(limits=limit)
    joints.write_joint_armature_to_sim_index(armature=of_joint("armature"))
    dry = of_joint("frictionloss")
    joints.write_joint_friction_coefficient_to_sim_index(
        joint_friction_coeff=dry,
        joint_dynamic_friction_coeff=None if joints.__backend_name__ == "newton" else dry,
        joint_viscous_friction_coeff=of_joint("damping"),
    )


def _write_inertials(robot: SceneRobot, profile: RobotProfile, each: Sequence[PhysicsSettings]) -> None:
    tables = {id(p): compound_inertials(profile, p) for p in each}
    table = [[tables[id(p)][link.name] for link in profile.links] for p in each]
    com = np.zeros((len(each), len(profile.links), 7))
    com[..., :3] = [[i.com for i in row] for row in table]
    com[..., 6] = 1.0
    inertia = np.array([[i.inertia.reshape(9) for i in row] for row in table])
    robot.articulation.set_masses_index(masses=robot.of_links(np.array([[i.mass for i in row] for row in table])))
    robot.articulation.set_coms_index(coms=robot.of_links(com))
    robot.articulation.set_inertias_index(inertias=robot.of_links(inertia))
    robot.masses_changed()


def _write_friction(articulation: Any, manager: Any, friction: Array) -> None:
    """Sliding friction (N,) of all shapes. Isaac Lab has a randomisation event for it, but no setter."""
    import torch
    import warp

    view = articulation.root_view
    rows = torch.as_tensor(friction, dtype=torch.float32)[:, None]
    if articulation.__backend_name__ == "newton":
        from newton import ModelFlags

        values = warp.to_torch(view.get_attribute("shape_material_mu", manager.get_model())[:, 0])
        values[:] = rows.to(values.device)
        manager.add_model_change(ModelFlags.SHAPE_PROPERTIES)
    elif articulation.__backend_name__ == "ovphysx":
        name = "articulation_shape_friction_and_restitution"
        surface = warp.to_torch(view.get_attribute(name))
        surface[..., :2] = rows[..., None].to(surface.device)
        view.set_attribute(name, warp.from_torch(surface.contiguous()))
    else:
        surface = warp.to_torch(view.get_material_properties())
        surface[..., :2] = rows[..., None].to(surface.device)
        everyone = torch.arange(len(friction), dtype=torch.int32)
        view.set_material_properties(warp.from_torch(surface), warp.from_torch(everyone))
