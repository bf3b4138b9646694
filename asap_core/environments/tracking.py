"""The batched motion tracking environment: one for every simulator, for training, collection and evaluation.

Order within a step (paper's code, without its stale first observation): act → delay → simulate → push → compare with
the reference → terminate → curricula → reset → observe.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.environments.anchor import anchored, targets_at
from asap_core.environments.correction import ActionCorrection
from asap_core.environments.curricula import KernelWidths, Ramp
from asap_core.environments.disturbances import ActionDelay, Pushes
from asap_core.environments.future import Ahead
from asap_core.environments.guard import StateGuard
from asap_core.environments.look import Eyes, Look, single, single_links
from asap_core.environments.motion_set import Reference
from asap_core.environments.observations import CLIP, ObservationBuilder, ObservationContext, ObservationLayout
from asap_core.environments.rewards import PENALTIES, TERMS, RewardContext
from asap_core.environments.settings import TrackingSettings
from asap_core.environments.starts import StartSampler, disturbed
from asap_core.environments.terminations import TerminationCurriculum, failed
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.protocol import Ids, RobotState, Simulator

Array = NDArray[np.floating]


@dataclass(frozen=True)
class StepResult:
    """What one environment step gives; N rows. Observations are those after the resets."""

    reward: NDArray[np.float32]
    failed: NDArray[np.bool_]
    timed_out: NDArray[np.bool_]
    """The clip's end was reached."""
    share: Array
    """Of the way from the episode's start to the clip's end, the share covered so far."""

    @property
    def done(self) -> NDArray[np.bool_]:
        """Failed or timed out."""
        return self.failed | self.timed_out


def action_scale(settings: TrackingSettings, profile: RobotProfile) -> Array:
    """(J,) rad per unit action."""
    if settings.action_scale == "torque":
        return profile.action_scale_from_torque()
    return np.full(len(profile.joint_names), float(settings.action_scale))


class TrackingEnv:
    """N robots that track a reference motion, or each one of several.

    Args:
        simulator: where the robots live; its N is the environment's.
        profile: the robot.
        reference: the motion or motions, at the simulator's control rate.
        settings: terms, weights, limits.
        seed: of start frames, start noise and observation noise.
        correction: a frozen delta action model inside the simulator, or none.
    """

    def __init__(
        self,
        simulator: Simulator,
        profile: RobotProfile,
        reference: Reference,
        settings: TrackingSettings,
        seed: int,
        correction: ActionCorrection | None = None,
    ) -> None:
        self.simulator = simulator
        self.profile = profile
        self.reference = reference
        self.settings = settings
        self.num_envs = simulator.num_envs
        self.num_actions = len(profile.joint_names)
        self.curriculum = TerminationCurriculum(settings.termination)
        self.penalty_scale = Ramp(settings.penalty_scale)
        limits = settings.soft_limits
        self.soft_limits = {
            "dof_pos": Ramp(limits.dof_pos),
            "dof_vel": Ramp(limits.dof_vel),
            "torque": Ramp(limits.torque),
        }
        self.widths = KernelWidths(settings.adaptive_sigma)
        self.guard = StateGuard(profile.joint_names, simulator.control_dt)
        self.actor = ObservationBuilder(ObservationLayout(settings.actor, profile), self.num_envs)
        self.critic = ObservationBuilder(ObservationLayout(settings.critic, profile), self.num_envs)
        self._correction = correction
        self._scale = action_scale(settings, profile)
        self._phases = reference.phases(settings.phase)
        self._eyes = Eyes(profile)
        self._shown_state, self._shown_links = single(reference.state), single_links(reference.links)
        self._look: Look | None = None
        """At the present state; None where that is not known yet."""
        self._rng = np.random.default_rng(seed)
        self._starts = StartSampler(settings.initialisation, reference, simulator.control_dt)
        self._delay = ActionDelay(settings.disturbances.delay_steps, self.num_envs, self.num_actions)
        self._pushes = Pushes(settings.disturbances.push, self.num_envs, simulator.control_dt, self._rng)
        self._frame = np.zeros(self.num_envs, np.intp)
        self._start = np.zeros(self.num_envs, np.intp)
        self._last_action = np.zeros((self.num_envs, self.num_actions), np.float32)
        self._action: Array = np.zeros_like(self._last_action)
        self._target: Array = np.zeros((self.num_envs, self.num_actions))
        self.reset(np.arange(self.num_envs))

    def reset(self, ids: Ids) -> None:
        """Reference state initialisation of robots `ids`."""
        if len(ids) == 0:
            return
        frames = self._starts.draw(self._rng, len(ids))
        self._place(ids, frames, disturbed(self.reference.state.take(frames), self.settings.initialisation, self._rng))
        self._delay.reset(ids, self._rng)

    def _place(self, ids: Ids, frames: Ids, state: RobotState) -> None:
        self.simulator.set_state(ids, state)
        if self._look is not None:
            self._look.renew(ids, self._eyes.look(state))
        if self._correction is not None:
            self._correction.reset(ids)
        self.actor.reset(ids)
        self.critic.reset(ids)
        self._frame[ids] = frames
        self._start[ids] = frames
        self._last_action[ids] = 0.0

    def look_anew(self) -> None:
        """Somebody else has moved the robots: what is known of their state holds no more."""
        self._look = None

    def joint_target(self, action: Array) -> Array:
        """Nominal joint target (N, J) rad of raw actions (N, J), before any correction."""
        base: Array = self.profile.default_joint_pos
        if self.settings.action_base == "reference":
            base = self.reference.state.joint_pos[self._next_frame()]
        return base + self._scale * action

    def _next_frame(self) -> Ids:
        return np.minimum(self._frame + 1, self.reference.last_frame[self._frame])

    def step(self, action: Array) -> StepResult:
        """Apply raw actions (N, J) for one control step; robots whose episodes end are reset."""
        self.simulate(self.begin(action))
        return self.conclude()

    def begin(self, action: Array) -> Array:
        """The nominal joint target (N, J) rad for a control step under raw actions (N, J), which `finish` concludes."""
        self._action = np.clip(action, -CLIP, CLIP)
        self._target = self.joint_target(self._delay(self._action))
        return self._target

    def simulate(self, target: Array) -> None:
        """Let the simulator take the control step that `begin` began. Nothing else is touched."""
        self.simulator.step(target, self._correction)

    def conclude(self) -> StepResult:
        """`finish`, and a new start for robots whose episodes ended."""
        result = self.finish()
        self.reset(np.nonzero(result.done)[0])
        return result

    def finish(self) -> StepResult:
        """What the control step that is over was worth, and where the episode ended with it. Resets nothing."""
        action = self._action
        self._frame = self._next_frame()
        self._pushes(self.simulator, self._rng)
        state = self.simulator.state
        self._look = self._eyes.look(state)
        context = self._reward_context(self._look, action)
        distance = np.sqrt(context.square_distance)
        fail = failed(self._look.state, distance, self.curriculum.distance, self.settings.termination.tilt)
        fail |= self.guard.watch(state, action, self._target, self._frame.copy())
        reward = self._reward(context) + fail * self.settings.termination_penalty
        self.widths.update(context, ~fail)
        self._last_action[:] = action
        last = self.reference.last_frame[self._frame]
        timed_out = ~fail & (self._frame >= last)
        way = np.maximum(last - self._start, 1)
        result = StepResult(
            reward=np.nan_to_num(reward).astype(np.float32),
            failed=fail,
            timed_out=timed_out,
            share=(self._frame - self._start) / way,
        )
        self._advance_curricula(result)
        return result

    def _advance_curricula(self, result: StepResult) -> None:
        level = self.curriculum.update(result.share[result.done])
        for ramp in (self.penalty_scale, *self.soft_limits.values()):
            ramp.update(level)
        self._starts.count_failures(self._frame[result.failed])

    def _reward_context(self, look: Look, action: Array) -> RewardContext:
        ref = self._shown_state
        frame = np.minimum(self._frame + self.settings.reference_lead, self.reference.last_frame[self._frame])
        target = targets_at(self._shown_links, frame)
        if self.settings.compare == "anchor":
            target = anchored(target, look.links, self.profile)
        return RewardContext(
            profile=self.profile,
            state=look.state,
            links=look.links,
            torque=self.simulator.joint_torque(),
            foot_contact=self.simulator.foot_contact(look.links),
            action=action,
            last_action=self._last_action,
            ref_joint_pos=ref.joint_pos[frame],
            ref_joint_vel=ref.joint_vel[frame],
            ref_link_pos=target.pos,
            ref_link_quat=target.quat,
            ref_link_lin_vel=target.lin_vel,
            ref_link_ang_vel=target.ang_vel,
            sigma=self.widths.sigma,
            soft_limit={name: ramp.value for name, ramp in self.soft_limits.items()},
        )

    def _reward(self, context: RewardContext) -> Array:
        total = np.zeros(self.num_envs)
        for name, weight in self.settings.rewards.items():
            scale = self.penalty_scale.value if name in PENALTIES else 1.0
            total += scale * weight * self.simulator.control_dt * TERMS[name](context)
        return total

    def observe(self) -> dict[str, NDArray[np.float32]]:
        """Observations of the present state, `actor` and `critic`; call once per step, it advances the histories."""
        ahead = self._next_frame()
        if self._look is None:
            self._look = self._eyes.look(self.simulator.state)
        context = ObservationContext(
            profile=self.profile,
            state=self._look.state,
            links=self._look.links,
            last_action=self._last_action,
            phase=self._phases[ahead],
            ref_joint_pos=self._shown_joint_pos(ahead),
            ref_link_pos=self._shown_links.pos[ahead],
            ahead=Ahead(self.reference, ahead),
        )
        return {"actor": self.actor(context, self._rng), "critic": self.critic(context, self._rng)}

    def _shown_joint_pos(self, ahead: Ids) -> Array:
        """(N, J) rad of the coming step, for observations."""
        return self._shown_state.joint_pos[ahead]

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on, but for the correction's memory, which one step refills."""
        return {
            "robots": dict(self.simulator.state.__dict__),
            "frame": self._frame.copy(),
            "start": self._start.copy(),
            "last_action": self._last_action.copy(),
            "actor": self.actor.state_dict(),
            "critic": self.critic.state_dict(),
            **self.curricula(),
            "failures": self._starts.failures.copy(),
            "delay": self._delay.state_dict(),
            "push_due_s": self._pushes.due_s.copy(),
            "rng": json.dumps(self._rng.bit_generator.state),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        ids = np.arange(self.num_envs)
        self._place(ids, state["start"], RobotState(**state["robots"]))
        self._frame[:] = state["frame"]
        self._last_action[:] = state["last_action"]
        self.actor.load_state_dict(state["actor"])
        self.critic.load_state_dict(state["critic"])
        self.load_curricula(state)
        self._starts.failures[:] = state["failures"]
        self._delay.load_state_dict(state["delay"])
        self._pushes.due_s[:] = state["push_due_s"]
        self._rng.bit_generator.state = json.loads(state["rng"])

    def curricula(self) -> dict[str, Any]:
        """How far the curricula are: a part of `state_dict`."""
        return {
            "curriculum": [self.curriculum.distance, self.curriculum.mean_share],
            "penalty_scale": self.penalty_scale.value,
            "soft_limits": {name: ramp.value for name, ramp in self.soft_limits.items()},
            "widths": self.widths.state_dict(),
        }

    def load_curricula(self, state: dict[str, Any]) -> None:
        """Take over the curricula of another's `state_dict` or `curricula`; where episodes fail is found out anew."""
        self.curriculum.distance, self.curriculum.mean_share = state["curriculum"]
        self.penalty_scale.value = state["penalty_scale"]
        for name, value in state["soft_limits"].items():
            self.soft_limits[name].value = value
        self.widths.load_state_dict(state["widths"])
