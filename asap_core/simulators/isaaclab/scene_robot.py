"""The border to Isaac Lab: a robot of its scene, read and written in the robot profile's order and frames.

Outside: double precision; joints, links and feet in profile order; wxyz; each robot's own world. Inside: single
precision on the device; the engine's order; xyzw; one scene in which robots stand apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from asap_core.robots.profile import RobotProfile
from asap_core.robots.usd import joint_prims, link_prims
from asap_core.rotations import cross, rotate
from asap_core.simulators.protocol import Array, Ids, RobotState

_XYZW = [1, 2, 3, 0]
"""wxyz → xyzw."""
_WXYZ = [3, 0, 1, 2]
"""xyzw → wxyz."""


class SceneRobot:
    """The robots of a scene.

    Args:
        scene: Isaac Lab's `InteractiveScene` with `robot` and its contact sensor `feet`, as of `scene_cfg`; after the
            simulation's reset.
        profile: the robot.
    """

    def __init__(self, scene: Any, profile: RobotProfile) -> None:
        self._scene = scene
        self.articulation = scene["robot"]
        """Isaac Lab's `Articulation`."""
        self._feet = scene["feet"]
        self.origins = scene.env_origins.cpu().numpy().astype(float)
        """(N, 3) m, where each robot's own world lies in the scene."""
        joints, links, feet = joint_prims(profile), link_prims(profile), self._feet.body_names
        self._to_engine = np.array([joints.index(name) for name in self.articulation.joint_names])
        self._to_profile = np.argsort(self._to_engine)
        self._links_to_engine = np.array([links.index(name) for name in self.articulation.body_names])
        self._root = self.articulation.body_names.index(links[0])
        self.masses_changed()
        self._to_feet = np.array([feet.index(links[i]) for i in profile.foot_index])

    def masses_changed(self) -> None:
        """To be told when a centre of mass was moved."""
        self._root_com = _array(self.articulation.data.body_com_pos_b)[:, self._root]

    def state(self) -> RobotState:
        """A copy of the present state."""
        pose, velocity = self._root_motion()
        root_quat = pose[:, 3:][:, _WXYZ]
        joint_pos, joint_vel = self.joints()
        return RobotState(
            root_pos=pose[:, :3] - self.origins,
            root_quat=root_quat,
            root_lin_vel=velocity[:, :3] - self._com_lead(root_quat, velocity[:, 3:], slice(None)),
            root_ang_vel=velocity[:, 3:],
            joint_pos=joint_pos,
            joint_vel=joint_vel,
        )

    def joints(self) -> tuple[Array, Array]:
        """Positions rad and velocities rad/s, (N, J) each."""
        data = self.articulation.data
        return _array(data.joint_pos)[:, self._to_profile], _array(data.joint_vel)[:, self._to_profile]

    def foot_forces(self) -> Array:
        """(N, F, 3) N, world frame, normal contact forces on the feet in the last physics step."""
        return _array(self._feet.data.net_normal_forces_w)[:, self._to_feet]

    def write_state(self, ids: Ids, state: RobotState) -> None:
        """Put robots `ids` (M,) into `state` (M rows)."""
        robot, rows = self.articulation, self._ids(ids)
        pose = np.concatenate([state.root_pos + self.origins[ids], state.root_quat[:, _XYZW]], axis=1)
        com_vel = state.root_lin_vel + self._com_lead(state.root_quat, state.root_ang_vel, ids)
        velocity = np.concatenate([com_vel, state.root_ang_vel], axis=1)
        robot.write_root_link_pose_to_sim_index(root_pose=self._tensor(pose), env_ids=rows)
        robot.write_joint_position_to_sim_index(position=self.of_joints(state.joint_pos), env_ids=rows)
        robot.write_joint_velocity_to_sim_index(velocity=self.of_joints(state.joint_vel), env_ids=rows)
        robot.write_root_com_velocity_to_sim_index(root_velocity=self._tensor(velocity), env_ids=rows)

    def write_root_velocity(self, ids: Ids, lin_vel: Array) -> None:
        """Give the roots of robots `ids` (M,) the velocity (M, 3) m/s of their origins; nothing else changes."""
        pose, velocity = self._root_motion()
        quat, velocity = pose[ids, 3:][:, _WXYZ], velocity[ids]
        velocity[:, :3] = lin_vel + self._com_lead(quat, velocity[:, 3:], ids)
        self.articulation.write_root_com_velocity_to_sim_index(
            root_velocity=self._tensor(velocity), env_ids=self._ids(ids)
        )

    def command_target(self, target: Array) -> None:
        """Joint targets (N, J) rad for the engine's own drives, from the scene's next `write_data_to_sim` on."""
        self.articulation.actuators.target_command.position.torch.copy_(self.of_joints(target))

    def command_torque(self, torque: Array) -> None:
        """Joint torques (N, J) N m, from the scene's next `write_data_to_sim` on."""
        self.articulation.actuators.target_command.effort.torch.copy_(self.of_joints(torque))

    def submit(self) -> None:
        """Hand the last command to the engine."""
        self._scene.write_data_to_sim()

    def of_joints(self, values: Array) -> Any:
        """(M, J) in profile order as Isaac Lab takes it."""
        return self._tensor(values[:, self._to_engine])

    def of_links(self, values: Array) -> Any:
        """(N, L, ...) in profile order as Isaac Lab takes it."""
        return self._tensor(values[:, self._links_to_engine])

    def _root_motion(self) -> tuple[Array, Array]:
        """Of all roots, new arrays: pose (N, 7), xyzw; velocity (N, 6) of the centre of mass."""
        data = self.articulation.data
        return _array(data.root_link_pose_w), _array(data.root_com_vel_w)

    def _com_lead(self, root_quat: Array, root_ang_vel: Array, ids: Ids | slice) -> Array:
        """(M, 3) m/s by which the root's centre of mass moves against its origin.

        Isaac Lab 3.0 offers the velocity of the origin too, but on ovphysx gives that of the centre of mass for it.
        """
        return cross(root_ang_vel, rotate(root_quat, self._root_com[ids]))

    def _tensor(self, values: Array) -> Any:
        import torch

        return torch.as_tensor(np.ascontiguousarray(values, np.float32), device=self.articulation.device)

    def _ids(self, ids: Ids) -> Any:
        import torch

        return torch.as_tensor(np.ascontiguousarray(ids, np.int32), device=self.articulation.device)


def _array(values: Any) -> Array:
    """Isaac Lab's proxy arrays on the host, copied."""
    return np.array(values.torch.cpu().numpy(), float)
