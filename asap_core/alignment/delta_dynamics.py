"""The rival DeltaDynamics: a network that moves the nominal simulator's next state, trained autoregressively.

Source: the paper's baseline of that name. The simulator has no gradient, so the loss
‖s_rec(t+1) − f(ŝ_t, a_t) − δ(ŝ_t, a_t)‖² is taken along replays under the present network, whose states ŝ_t it treats
as given; horizons grow from round to round. Differences live in the heading frame of the root, so that a motion learnt
in one direction holds in all.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from asap_core.alignment.choice import choose
from asap_core.alignment.corrected import Corrected
from asap_core.alignment.labels import read_array, write_array
from asap_core.alignment.replay import horizon_steps
from asap_core.progress import track
from asap_core.robots.profile import RobotProfile
from asap_core.rollouts.record import Rollout
from asap_core.rotations import quat_conj, quat_mul, quat_to_rotvec, rotate, rotate_inverse, rotvec_to_quat, yaw_quat
from asap_core.settings import Settings
from asap_core.simulators.factory import make_simulator
from asap_core.simulators.protocol import RobotState
from asap_core.simulators.settings import SimulationSettings

Array = NDArray[np.floating]
_BATCH = 256


class DeltaDynamicsSettings(Settings):
    """How the network is trained."""

    horizons_s: tuple[float, ...] = Field(default=(0.02, 0.1, 0.25), min_length=1)
    """Of the replays of each round; all rounds' data are trained on."""
    hidden: int = Field(default=64, ge=8)
    epochs: int = Field(default=20, ge=1)
    """Of each round."""
    input_noise: float = Field(default=0.3, ge=0)
    """Standard deviation added to normalised inputs in training."""
    shares: tuple[float, ...] = Field(default=(0.25, 0.5, 1.0), min_length=1)
    """Parts of the network's output that are tried."""
    envs: int = Field(default=256, ge=1)


def state_difference(reached: RobotState, recorded: RobotState) -> Array:
    """`recorded − reached`, (N, 12 + 2J): root position and turn, joints, then their velocities; heading frame."""
    heading = yaw_quat(reached.root_quat)
    turn = quat_to_rotvec(quat_mul(recorded.root_quat, quat_conj(reached.root_quat)))
    vectors = [
        recorded.root_pos - reached.root_pos,
        turn,
        recorded.root_lin_vel - reached.root_lin_vel,
        recorded.root_ang_vel - reached.root_ang_vel,
    ]
    pos, turned, lin, ang = (rotate_inverse(heading, v) for v in vectors)
    joints = recorded.joint_pos - reached.joint_pos, recorded.joint_vel - reached.joint_vel
    return np.hstack([pos, turned, joints[0], lin, ang, joints[1]])


def moved_state(reached: RobotState, difference: Array) -> RobotState:
    """`reached` plus a `state_difference` (N, 12 + 2J)."""
    heading = yaw_quat(reached.root_quat)
    joints = reached.joint_pos.shape[1]
    pos, turn, joint_pos, lin, ang, joint_vel = np.split(difference, np.cumsum([3, 3, joints, 3, 3]), axis=1)
    return RobotState(
        root_pos=reached.root_pos + rotate(heading, pos),
        root_quat=quat_mul(rotvec_to_quat(rotate(heading, turn)), reached.root_quat),
        root_lin_vel=reached.root_lin_vel + rotate(heading, lin),
        root_ang_vel=reached.root_ang_vel + rotate(heading, ang),
        joint_pos=reached.joint_pos + joint_pos,
        joint_vel=reached.joint_vel + joint_vel,
    )


def dynamics_inputs(state: RobotState, joint_target: Array) -> Array:
    """(N, 10 + 3J): height, gravity, velocities in the root's frame, joints, and the PD error."""
    down = np.broadcast_to([0.0, 0.0, -1.0], state.root_pos.shape)
    vectors = [rotate_inverse(state.root_quat, v) for v in (down, state.root_lin_vel, state.root_ang_vel)]
    joints = [state.joint_pos, state.joint_vel, joint_target - state.joint_pos]
    return np.hstack([state.root_pos[:, 2:], *vectors, *joints])


class DeltaDynamicsNet(torch.nn.Module):
    """Inputs (N, I) → state difference (N, O); zero at the start, bounded by five times the largest usual one."""

    mean: torch.Tensor
    scale: torch.Tensor
    size: torch.Tensor

    def __init__(self, inputs: Array, outputs: Array, hidden: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.as_tensor(inputs.mean(axis=0)))
        self.register_buffer("scale", torch.as_tensor(inputs.std(axis=0) + 1e-3))
        self.register_buffer("size", torch.as_tensor(outputs.std(axis=0) + 1e-6))
        last = torch.nn.Linear(hidden, outputs.shape[1])
        torch.nn.init.zeros_(last.weight)
        torch.nn.init.zeros_(last.bias)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(inputs.shape[1], hidden),
            torch.nn.ELU(),
            torch.nn.Linear(hidden, hidden),
            torch.nn.ELU(),
            last,
        ).double()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """In units of `size`."""
        x = torch.clamp((inputs - self.mean) / self.scale, -5.0, 5.0)
        out: torch.Tensor = 5.0 * torch.tanh(self.net(x) / 5.0)
        return out


class DeltaDynamics:
    """A `StateResidual`: a share of what the network gives, as it is now."""

    def __init__(self, net: DeltaDynamicsNet, share: float = 1.0) -> None:
        self._net = copy.deepcopy(net).eval()
        self._share = share

    def __call__(self, state: RobotState, joint_target: Array, reached: RobotState) -> RobotState:
        """See `StateResidual`."""
        with torch.no_grad():
            out = self._net(torch.as_tensor(dynamics_inputs(state, joint_target))) * self._net.size
        return moved_state(reached, self._share * out.numpy())


@dataclass(frozen=True)
class DeltaDynamicsRival:
    """Delta dynamics as one way of alignment."""

    profile: RobotProfile
    simulation: SimulationSettings
    settings: DeltaDynamicsSettings
    name: str = "delta_dynamics"

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `Rival`."""
        return {"rival": self.name, "settings": self.settings.model_dump(mode="json")}

    def fit(self, fit: Rollout, validation: Rollout, seed: int, cache: Path) -> Corrected:
        """See `Rival`. The network of every round is a candidate."""
        torch.manual_seed(seed)
        physics, settings = self.simulation.physics, self.settings
        candidates, inputs, outputs = [Corrected("zero", physics)], [], []
        net: DeltaDynamicsNet | None = None
        with track("delta dynamics", len(settings.horizons_s)) as tracker:
            for stage, horizon in enumerate(settings.horizons_s):
                pairs = self._kept(fit, horizon_steps(horizon, physics.control_dt), net, cache / f"visited_{stage}.npy")
                inputs.append(pairs[0])
                outputs.append(pairs[1])
                net = trained(net, np.concatenate(inputs), np.concatenate(outputs), settings)
                for share in settings.shares:
                    name = f"{self.name}_{horizon:g}s_{share:g}"
                    candidates.append(Corrected(name, physics, residual=DeltaDynamics(net, share)))
                tracker.advance(note=f"{sum(map(len, inputs))} states")
        return choose(candidates, validation, self.profile, self.simulation)

    def _kept(self, rollout: Rollout, steps: int, net: DeltaDynamicsNet | None, path: Path) -> tuple[Array, Array]:
        """`visited`, or what an earlier run kept of it."""
        if not path.exists():
            write_array(path, np.hstack(self.visited(rollout, steps, net)))
        together = read_array(path)
        width = together.shape[1] - (12 + 2 * self.profile.num_joints)
        return together[:, :width], together[:, width:]

    def visited(self, rollout: Rollout, steps: int, net: DeltaDynamicsNet | None) -> tuple[Array, Array]:
        """Inputs (n, I) and wanted differences (n, O) along replays of `steps` under `net`."""
        simulator = make_simulator(self.profile, self.simulation, self.settings.envs)
        starts = rollout.segment_starts(steps)
        everyone = np.arange(simulator.num_envs)
        inputs, wanted = [], []
        residual = None if net is None else DeltaDynamics(net)
        for begin in range(0, len(starts), simulator.num_envs):
            real = starts[begin : begin + simulator.num_envs]
            at = np.resize(real, simulator.num_envs)
            state = rollout.state.take(at)
            for step in range(steps):
                simulator.set_state(everyone, state)
                target = rollout.joint_target[at + step]
                simulator.step(target)
                reached = simulator.state
                recorded = rollout.state.take(at + step + 1)
                inputs.append(dynamics_inputs(state, target)[: len(real)])
                wanted.append(state_difference(reached, recorded)[: len(real)])
                state = reached if residual is None else residual(state, target, reached)
        return np.concatenate(inputs), np.concatenate(wanted)


def trained(
    net: DeltaDynamicsNet | None, inputs: Array, outputs: Array, settings: DeltaDynamicsSettings
) -> DeltaDynamicsNet:
    """`net`, or a new one, trained on all pairs; outliers, where a replay has left the record, count linearly."""
    net = net or DeltaDynamicsNet(inputs, outputs, settings.hidden)
    x, y = torch.as_tensor(inputs), torch.as_tensor(outputs) / net.size
    optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, settings.epochs)
    for _ in range(settings.epochs):
        for index in torch.split(torch.randperm(len(x)), _BATCH):
            noisy = x[index] + settings.input_noise * net.scale * torch.randn_like(x[index])
            loss = torch.nn.functional.smooth_l1_loss(net(noisy), y[index])
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
        schedule.step()
    return net
