"""Speed of environment and training loop beside raw physics, all in turn in one run.

A machine that does other work too slows them alike, so the figures are ratios, medians over rounds.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable

import numpy as np
import torch

from asap_core.environments.reference import ReferenceMotion
from asap_core.environments.settings import TrackingSettings
from asap_core.environments.side_by_side import SideBySide
from asap_core.environments.tracking import TrackingEnv
from asap_core.evaluation.tracking_bench.peer import PlainEnv, plain_runner
from asap_core.progress import track
from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import rotate_inverse
from asap_core.simulators.mujoco import MujocoSimulator, best_stepper
from asap_core.training.ppo import PpoTrainer, use_threads
from asap_core.training.settings import PpoSettings

ROUNDS = 9
_STEPS = 24
"""Control steps of a round of raw physics and of the environment."""
_ITERATIONS = 2
"""Of the training loops, in a round."""
Figures = dict[str, float]
Array = np.ndarray


class RawPhysics:
    """`mj_step` through MuJoCo's own threads, on the states and targets that the environment met.

    The states are written before each control step, so that the physics are those of the environment: a robot that
    nobody resets lies on the ground, which costs more.
    """

    def __init__(self, profile: RobotProfile, physics: PhysicsSettings, num_envs: int, threads: int) -> None:
        self._stepper = best_stepper([build_model(profile, physics)] * num_envs, threads)
        self._substeps = physics.substeps
        self.qpos = self._stepper.qpos
        """(N, nq) after the last step."""
        self.met: list[tuple[Array, Array, Array]] = []
        """qpos, qvel and joint targets of control steps."""

    def meet(self, env: TrackingEnv, actions: list[Array]) -> None:
        """Let the environment act and keep what its simulator is given."""
        self.met.clear()
        for action in actions:
            s = env.simulator.state
            spin = rotate_inverse(s.root_quat, s.root_ang_vel)
            qpos, qvel = (s.root_pos, s.root_quat, s.joint_pos), (s.root_lin_vel, spin, s.joint_vel)
            self.met.append((np.hstack(qpos), np.hstack(qvel), env.joint_target(action)))
            env.step(action)
            env.observe()

    def __call__(self) -> None:
        """Step all that was met."""
        stepper = self._stepper
        for qpos, qvel, target in self.met:
            stepper.qpos[:], stepper.qvel[:], stepper.ctrl[:] = qpos, qvel, target
            stepper.step(self._substeps)


def speed(
    profile: RobotProfile,
    reference: ReferenceMotion,
    physics: PhysicsSettings,
    tracking: TrackingSettings,
    ppo: PpoSettings,
    threads: int,
    rounds: int = ROUNDS,
) -> Figures:
    """Control steps per second, and each as a share of raw physics: environment, both learners' loops, the peer's.

    `environment` and `loop_lean` are of robots side by side, in a group for each thread; `environment_whole` and
    `loop_rsl_rl` are of one group.

    Args:
        physics: of every robot, MuJoCo.
        ppo: networks, batch and epochs; its learner is left open.
    """
    use_threads(threads)

    def make_env(num_envs: int, threads: int, seed: int = 0) -> TrackingEnv:
        return TrackingEnv(MujocoSimulator(profile, physics, num_envs, threads), profile, reference, tracking, seed)

    def make_groups() -> SideBySide:
        return SideBySide([make_env(n // threads, 1, seed) for seed in range(threads)])

    n, rng = ppo.num_envs, np.random.default_rng(0)
    env, groups, raw = make_env(n, threads), make_groups(), RawPhysics(profile, physics, n, threads)
    actions = list(rng.normal(0.0, ppo.init_std, (_STEPS, n, profile.num_joints)).astype(np.float32))
    lean = PpoTrainer(make_groups(), ppo.model_copy(update={"learner": "lean"}), 0)
    plain = PpoTrainer(make_env(n, threads), ppo.model_copy(update={"learner": "rsl_rl"}), 0)
    peer = plain_runner(PlainEnv(profile, reference, physics, n, threads), ppo)
    per_iteration = n * ppo.steps_per_env

    seen = groups.observe()

    def act() -> None:
        for action in actions:
            env.step(action)
            env.observe()

    def act_side_by_side() -> None:
        rows = groups.rows
        groups.roll(_STEPS, seen, lambda step, group, _: actions[step][rows[group]], lambda *_: None)

    def learn_lean() -> None:
        torch.set_num_threads(1)
        for _ in range(_ITERATIONS):
            lean.iterate()
        torch.set_num_threads(threads)

    def learn_peer() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            peer.learn(_ITERATIONS)

    runs: dict[str, tuple[Callable[[], object], int]] = {
        "raw_physics": (raw, n * _STEPS),
        "environment": (act_side_by_side, n * _STEPS),
        "environment_whole": (act, n * _STEPS),
        "loop_lean": (learn_lean, per_iteration * _ITERATIONS),
        "loop_rsl_rl": (lambda: [plain.iterate() for _ in range(_ITERATIONS)], per_iteration * _ITERATIONS),
        "loop_peer": (learn_peer, per_iteration * _ITERATIONS),
    }
    return in_turn(runs, rounds, lambda: raw.meet(env, actions))


def in_turn(runs: dict[str, tuple[Callable[[], object], int]], rounds: int, before: Callable[[], None]) -> Figures:
    """Medians over rounds, after one that is not counted: steps per second, the ratio to the first run, and processor
    time of all threads per step, which other work on the machine changes least."""
    rates: dict[str, list[float]] = {name: [] for name in runs}
    costs: dict[str, list[float]] = {name: [] for name in runs}
    with track("speed", rounds + 1) as bar:
        for _ in range(rounds + 1):
            before()
            for name, (run, steps) in runs.items():
                begin, worked = time.perf_counter(), time.process_time()
                run()
                costs[name].append(1e6 * (time.process_time() - worked) / steps)
                rates[name].append(steps / (time.perf_counter() - begin))
            bar.advance(1)
    counted = {name: np.array(values[1:]) for name, values in rates.items()}
    first = counted[next(iter(runs))]
    figures: Figures = {}
    for name, values in counted.items():
        figures[f"{name}/steps_per_s"] = float(np.median(values))
        figures[f"{name}/of_raw_physics"] = float(np.median(values / first))
        figures[f"{name}/cpu_us_per_step"] = float(np.median(costs[name][1:]))
    return figures
