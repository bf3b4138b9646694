"""Small measurements on this machine, by name."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from asap_core.errors import ConfigError, StageError, unknown_name
from tasks.bench_places import shared_folder
from tasks.stages import Figures, read_params

_NUM_ENVS = 64
_STEPS = 50
_REPEATS = 3


def run_bench(name: str, root: Path, **options: Any) -> Figures:
    """Run the measurement `name`.

    Args:
        options: of the measurement's own function; see `_OPTIONS`.

    Raises:
        UnknownNameError: there is none of that name.
        ConfigError: options that the measurement does not have.
        StageError: what it measures failed.
    """
    if name not in _BENCHES:
        raise unknown_name("bench", name, _BENCHES)
    known = _OPTIONS.get(name, ())
    stray = [option for option in options if option not in known]
    if stray:
        has = f"it has --{', --'.join(known)}" if known else "it has none"
        raise ConfigError(f"bench {name}: found --{', --'.join(stray)}; {has}")
    return _BENCHES[name](root, **options)


def _startup(root: Path) -> Figures:
    """Seconds that `asap --help` takes, the best of three."""
    return {"help_s": _best([sys.executable, "-m", "flows.cli", "--help"], root)}


def _repro(root: Path) -> Figures:
    """Seconds of a `dvc repro` that has nothing to do, the best of three."""
    command = [sys.executable, "-m", "dvc", "repro"]
    first = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if first.returncode != 0:
        raise StageError(f"dvc repro failed: {first.stderr.strip()}")
    return {"no_op_repro_s": _best(command, root)}


def _policy(root: Path) -> Figures:
    """Milliseconds of one step of the pretrained policy for one robot."""
    import onnxruntime as ort

    path = root / "models" / "pretrained" / "policy.onnx"
    if not path.exists():
        raise StageError(f"{path}: missing; `dvc repro pretrain` writes it")
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feed = {i.name: np.zeros((1, *i.shape[1:]), np.float32) for i in session.get_inputs()}
    session.run(None, feed)
    start = time.perf_counter()
    for _ in range(_STEPS):
        session.run(None, feed)
    return {"policy_step_ms": (time.perf_counter() - start) / _STEPS * 1e3}


def _simulator(root: Path) -> Figures:
    """Control steps per second of the nominal simulator, standing robots."""
    from asap_core.robots import get_profile
    from asap_core.robots.physics import PhysicsSettings
    from asap_core.simulators.mujoco import MujocoSimulator

    profile = get_profile(read_params(root).robot)
    simulator = MujocoSimulator(profile, PhysicsSettings(), _NUM_ENVS, threads=2)
    target = np.tile(profile.default_joint_pos, (_NUM_ENVS, 1))
    simulator.step(target)
    start = time.perf_counter()
    for _ in range(_STEPS):
        simulator.step(target)
    return {"control_steps_per_s": _NUM_ENVS * _STEPS / (time.perf_counter() - start), "num_envs": _NUM_ENVS}


def _retarget(root: Path) -> Figures:
    """Figures of our retargets of the shared clips, with the published ones scored beside them."""
    from asap_core.retargeting.bench import bench

    shared = shared_folder(root)
    return dict(bench(shared, read_params(root).retarget))


def _policies(root: Path) -> Figures:
    """Errors of the ten policies that ASAP published, in our environment, beside those measured elsewhere."""
    from asap_core.evaluation.published import bench

    shared = shared_folder(root)
    return {**bench(shared, read_params(root).simulation)}


def _isaaclab(root: Path) -> Figures:
    """Speed of the environment over Isaac Lab beside that of PhysX alone, and seconds of starts; takes minutes."""
    from asap_core.evaluation.isaaclab_bench import bench

    return {**bench(read_params(root).tracking)}


def _exchange(root: Path) -> Figures:
    """Errors of a policy that goes from MuJoCo to Isaac Lab and back, in both; takes minutes."""
    from tasks.exchange_bench import bench_exchange

    return bench_exchange(root)


def _doctor(root: Path) -> Figures:
    """How fast and how right `asap doctor` is, on made clips and, where present, the published ones."""
    from asap_core.motions.doctor.bench import bench

    return dict(bench(shared_folder(root)))


def _ingest(root: Path) -> Figures:
    """Speed and memory of reading logs, errors of clock and base velocity, faults named; takes minutes."""
    from asap_core.rollouts.ingest.bench import bench

    return dict(bench())


def _ingest_truth(root: Path) -> Figures:
    """Alignment on ingested logs of a twin of known physics, beside that on the twin's own states; takes minutes."""
    from asap_core.evaluation.ingest_truth import bench

    return dict(bench())


def _screen(root: Path) -> Figures:
    """The screen and the imitator on the shared clips that no threshold was set on, clean and spoilt; takes minutes."""
    from asap_core.robots import get_profile
    from asap_core.screening.bench import bench

    params = read_params(root)
    shared = shared_folder(root)
    profile, physics = get_profile(params.robot), params.simulation.physics
    return dict(bench(shared, profile, params.screen, params.retarget, physics))


def _video(root: Path) -> Figures:
    """Errors of reconstruction from rendered videos of known persons, beside the yardsticks; takes minutes."""
    from asap_core.evaluation.video_bench.bench import bench
    from asap_core.reconstruction.reconstruct import Choice
    from asap_core.reconstruction.weights import FOLDER
    from asap_core.robots import get_profile

    params = read_params(root)
    shared = shared_folder(root)
    choice = Choice(weights=root / FOLDER)
    rows = bench(shared, choice, get_profile(params.robot), params.retarget)
    return {f"{name}/{figure}": value for name, row in rows.items() for figure, value in row.items()}


def _video_pose2sim(root: Path) -> Figures:
    """One camera against the triangulation of four on Pose2Sim's demo, by camera; fetches 50 MB the first time."""
    from asap_core.evaluation.video_bench.pose2sim import bench
    from asap_core.reconstruction.reconstruct import Choice
    from asap_core.reconstruction.weights import FOLDER

    rows = bench(root / ".asap" / "pose2sim", Choice(weights=root / FOLDER))
    return {f"{name}/{figure}": value for name, row in rows.items() for figure, value in row.items()}


def _alignment(root: Path, **options: Any) -> Figures:
    """Share of the open-loop error that ways of alignment close on twins, motions held out (Table III); resumes."""
    from tasks.alignment_bench import bench_alignment

    return bench_alignment(root, **options)


def _closed_loop(root: Path, **options: Any) -> Figures:
    """Published policies fine-tuned in aligned simulators and run on twins (Table IV); takes hours, resumes."""
    from tasks.closed_loop_bench import bench_closed_loop

    return bench_closed_loop(root, **options)


def _ablation(name: str) -> Callable[..., Figures]:
    """What the delta's fit depends on, by the open loop on motions held out; one target and fold, resumes."""

    def run(root: Path, **options: Any) -> Figures:
        from tasks.ablation_bench import bench_ablation

        return bench_ablation(name, root, **options)

    return run


def _action_noise(root: Path, **options: Any) -> Figures:
    """Fine-tuning with random action noise beside ASAP, closed loop (Fig. 11); takes hours, resumes."""
    from tasks.ablation_bench import bench_action_noise

    return bench_action_noise(root, **options)


def _tracking(root: Path, **options: Any) -> Figures:
    """Speed of environment and learner beside raw physics, and learning curves; an hour for each of two clips."""
    from tasks.tracking_bench import bench_tracking

    return bench_tracking(root, **options)


def _best(command: list[str], root: Path) -> float:
    times = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        subprocess.run(command, cwd=root, capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return min(times)


_ABLATIONS = ("data", "horizon", "norm", "noise")
_BENCHES: dict[str, Callable[..., Figures]] = {
    **{f"ablation-{name}": _ablation(name) for name in _ABLATIONS},
    "ablation-action-noise": _action_noise,
    "alignment": _alignment,
    "closed-loop": _closed_loop,
    "doctor": _doctor,
    "exchange": _exchange,
    "ingest": _ingest,
    "ingest-truth": _ingest_truth,
    "isaaclab": _isaaclab,
    "policies": _policies,
    "policy": _policy,
    "repro": _repro,
    "retarget": _retarget,
    "screen": _screen,
    "simulator": _simulator,
    "startup": _startup,
    "tracking": _tracking,
    "video": _video,
    "video-pose2sim": _video_pose2sim,
}
_OPTIONS = {
    **{f"ablation-{name}": ("targets", "folds") for name in _ABLATIONS},
    "ablation-action-noise": ("targets", "motions", "seeds", "iterations"),
    "alignment": ("targets", "rivals", "folds", "kept"),
    "closed-loop": ("targets", "motions", "arms", "seeds", "iterations"),
    "tracking": ("only", "seeds", "minutes", "threads"),
}
"""Of the benches that have any."""
