"""The Isaac Lab backend itself: what the parity suite (tests/simulators) cannot ask of every engine."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from asap_core.errors import StageError
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.robots.usd import ground_usda, robot_usda
from asap_core.simulators.factory import make_simulator
from asap_core.simulators.isaaclab import runtime, scene, world
from asap_core.simulators.isaaclab.scene_robot import SceneRobot
from asap_core.simulators.isaaclab.simulator import IsaacLabSimulator
from asap_core.simulators.protocol import RobotState
from asap_core.simulators.settings import SimulationSettings

PROFILE = get_profile("g1_23dof")
PRESENT = find_spec("isaaclab") is not None
needs_isaaclab = pytest.mark.skipif(not PRESENT, reason="Isaac Lab absent")


def standing(n: int) -> RobotState:
    zeros = np.zeros((n, 3))
    return RobotState(
        root_pos=zeros + np.array([0.0, 0.0, 0.784]),
        root_quat=np.tile([1.0, 0, 0, 0], (n, 1)),
        root_lin_vel=zeros.copy(),
        root_ang_vel=zeros.copy(),
        joint_pos=np.tile(PROFILE.default_joint_pos, (n, 1)),
        joint_vel=np.zeros((n, PROFILE.num_joints)),
    )


@pytest.mark.skipif(PRESENT, reason="Isaac Lab is installed")
@pytest.mark.parametrize("backend", ["isaaclab", "isaaclab_newton"])
def test_missing_isaac_lab_is_named_with_the_way_to_it(backend):
    with pytest.raises(StageError, match=r"Isaac Lab is not installed; .*`make isaaclab`"):
        make_simulator(PROFILE, SimulationSettings(backend=backend), 1)


def test_files_for_isaac_lab_stand_alone():
    """Nothing in them points out of their default prim, and the robot weighs what the profile says."""
    text = robot_usda(PROFILE, PhysicsSettings())
    targets = [part.split(">")[0] for part in text.split("<")[1:]]
    assert targets
    assert all(target.startswith("/robot/") for target in targets)
    masses = [float(line.split("=")[1]) for line in text.splitlines() if "float physics:mass" in line]
    assert sum(masses) == pytest.approx(sum(link.mass for link in (*PROFILE.links, *PROFILE.fixed_links)))
    assert "</ground_root/ground_material>" in ground_usda()
    assert text.count("{") == text.count("}")


@needs_isaaclab
def test_another_version_is_refused(monkeypatch):
    monkeypatch.setattr(runtime, "version", lambda _: "2.3.0")
    with pytest.raises(StageError, match=r"Isaac Lab 2\.3\.0 is installed, expected 3\.0\.x"):
        runtime.require_isaaclab()


@needs_isaaclab
def test_the_first_start_says_that_kernels_are_compiled(monkeypatch, tmp_path):
    said: list[str] = []
    monkeypatch.setattr(runtime, "_mark", lambda engine: tmp_path / "cache" / engine)
    monkeypatch.setattr(runtime, "say", said.append)
    with pytest.raises(ValueError), runtime.starting("newton"):
        raise ValueError
    assert not (tmp_path / "cache").exists()
    with runtime.starting("newton"):
        assert "newton: compiling kernels" in said[-1]
    count = len(said)
    with runtime.starting("newton"):
        pass
    assert len(said) == count


_WITHOUT_NEWTON = """
import sys
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.simulators.isaaclab.simulator import IsaacLabSimulator
simulator = IsaacLabSimulator(get_profile("g1_23dof"), PhysicsSettings(), 1)
assert "newton" not in sys.modules
from isaaclab_ov.assets.articulation import actuator_control
view = actuator_control.LightArticulationView(1, 23, "cpu")
from isaaclab.actuators.newton.adapter import LightArticulationView
assert isinstance(view, LightArticulationView)
print("both as expected")
"""


@needs_isaaclab
def test_newton_is_imported_when_it_is_used_and_not_before():
    if not runtime.shares_physx("physx"):
        pytest.skip("Isaac Sim or a GPU present: nothing is left out")
    ran = subprocess.run([sys.executable, "-c", _WITHOUT_NEWTON], capture_output=True, text=True)
    assert "both as expected" in ran.stdout, ran.stderr[-2000:]


@needs_isaaclab
def test_robot_files_are_kept_one_for_each_content(monkeypatch, tmp_path):
    """So that processes which are killed leave nothing more behind."""
    monkeypatch.setattr(scene, "cache_folder", lambda: tmp_path / "cache")
    nominal, other = PhysicsSettings(), PhysicsSettings(friction=0.3)
    paths = [scene.articulation_cfg(PROFILE, p).spawn.usd_path for p in (nominal, other, nominal)]
    assert paths[0] == paths[2] != paths[1]
    assert sorted(map(str, (tmp_path / "cache").iterdir())) == sorted(set(paths))
    assert Path(paths[1]).read_text() == robot_usda(PROFILE, other)


@needs_isaaclab
@pytest.mark.parametrize(
    "damage", [lambda text: text[: len(text) // 2], lambda text: text.replace("mass = 1", "mass = 2")]
)
def test_a_robot_file_that_is_cut_off_or_altered_is_written_anew(monkeypatch, tmp_path, damage):
    monkeypatch.setattr(scene, "cache_folder", lambda: tmp_path)
    path = Path(scene.articulation_cfg(PROFILE, PhysicsSettings()).spawn.usd_path)
    text = path.read_text()
    assert damage(text) != text
    path.write_text(damage(text))
    assert scene.articulation_cfg(PROFILE, PhysicsSettings()).spawn.usd_path == str(path)
    assert path.read_text() == text == robot_usda(PROFILE, PhysicsSettings())
    assert list(tmp_path.iterdir()) == [path]


@needs_isaaclab
def test_a_cache_that_warp_cannot_make_is_named(tmp_path):
    (tmp_path / "file").touch()
    look = "from asap_core.simulators.isaaclab.runtime import cache_folder; cache_folder()"
    environment = {**os.environ, "WARP_CACHE_PATH": str(tmp_path / "file" / "cache")}
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, env=environment)
    last = ran.stderr.splitlines()[-1]
    assert "StageError" in last
    assert "file/cache" in last
    assert "cannot be written: Not a directory; WARP_CACHE_PATH names another" in last


@needs_isaaclab
def test_a_mark_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    (tmp_path / "cache").touch()
    monkeypatch.setattr(runtime, "_mark", lambda engine: tmp_path / "cache" / engine)
    with (
        pytest.raises(StageError, match=r"cache/newton: cannot be written.*WARP_CACHE_PATH"),
        runtime.starting("newton"),
    ):
        pass


@needs_isaaclab
def test_a_cache_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setattr(scene, "cache_folder", lambda: tmp_path / "cache")
    with pytest.raises(StageError, match=r"cache/asap-ground-.*cannot be written.*WARP_CACHE_PATH"):
        scene.ground_cfg()


@needs_isaaclab
def test_physx_alone_and_in_isaac_lab_is_one_engine():
    """The same scene, handed to and fro in one process: single precision apart after 0.2 s in the air."""
    states, target = standing(3), np.tile(PROFILE.default_joint_pos + 0.1, (3, 1))
    states.root_pos[:, 2] = 5.0
    ends = []
    for backend in ("physx", "isaaclab", "physx", "isaaclab"):
        simulator = make_simulator(PROFILE, SimulationSettings(backend=backend), 3)
        simulator.set_state(np.arange(3), states)
        for _ in range(10):
            simulator.step(target)
        ends.append(simulator.state.joint_pos)
    for end in ends[1:]:
        np.testing.assert_allclose(end, ends[0], atol=1e-5)


@needs_isaaclab
def test_a_simulation_of_somebody_else_is_not_taken_away():
    from isaaclab.sim import SimulationCfg, SimulationContext

    make_simulator(PROFILE, SimulationSettings(backend="isaaclab"), 1)
    mine = make_simulator(PROFILE, SimulationSettings(backend="physx"), 1)
    mine.set_state(np.arange(1), standing(1))
    other = SimulationContext(SimulationCfg(device="cpu", physics=runtime.physics_cfg("physx", True)))
    try:
        with pytest.raises(StageError, match="one simulation a process"):
            make_simulator(PROFILE, SimulationSettings(backend="isaaclab"), 1)
    finally:
        other.clear_instance()
    make_simulator(PROFILE, SimulationSettings(backend="isaaclab"), 1)


@needs_isaaclab
def test_a_correction_acts_at_each_physics_step():
    """A constant one is the same as a target that much farther; it is asked at 0, 5, 10 and 15 ms."""
    times: list[float] = []

    def farther(state: RobotState, joint_target: np.ndarray, time_s: float) -> np.ndarray:
        times.append(time_s)
        return np.full_like(joint_target, 0.05)

    simulator = make_simulator(PROFILE, SimulationSettings(backend="isaaclab"), 2)
    ends = []
    for target, correction in ((0.05, None), (0.0, farther)):
        simulator.set_state(np.arange(2), standing(2))
        simulator.step(np.tile(PROFILE.default_joint_pos + target, (2, 1)), correction)
        ends.append(simulator.state.joint_pos)
    assert times == pytest.approx([0.0, 0.005, 0.01, 0.015])
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-6)


@pytest.mark.skipif(not PRESENT or not runtime.uses_kit("physx"), reason="Isaac Sim or a GPU absent")
def test_isaac_sim_is_used_where_it_is():
    assert type(runtime.physics_cfg("physx", True)).__name__ == "PhysxCfg"
    simulator = make_simulator(PROFILE, SimulationSettings(backend="isaaclab"), 2)
    simulator.set_state(np.arange(2), standing(2))
    assert simulator.foot_contact().all()


@needs_isaaclab
def test_without_kit_physics_runs_on_ovphysx_or_newton():
    if runtime.uses_kit("physx"):
        pytest.skip("Isaac Sim present")
    assert type(runtime.physics_cfg("physx", True)).__name__ == "OvPhysxCfg"
    assert runtime.physics_cfg("newton", True).solver_cfg.integrator == "implicitfast"
    assert runtime.physics_cfg("newton", False).solver_cfg.integrator == "euler"


@needs_isaaclab
def test_forces_on_the_feet_are_those_of_isaac_labs_sensor_robot_by_robot_and_foot_by_foot():
    """Robots that lean to either side, and one in the air: no two forces are alike, so that their order shows."""
    if not runtime.shares_physx("physx"):
        pytest.skip("Isaac Sim or a GPU present: the sensor is read itself")
    states = standing(3)
    states.root_pos[2, 2] += 1.0
    simulator = make_simulator(PROFILE, SimulationSettings(backend="isaaclab"), 3)
    simulator.set_state(np.arange(3), states)
    target = states.joint_pos.copy()
    for robot, roll in enumerate((0.1, -0.2)):
        for side in ("left", "right"):
            target[robot, PROFILE.joint_index(f"{side}_hip_roll_joint")] += roll
    for _ in range(8):
        simulator.step(target)
    found = simulator.world.foot_forces()
    simulator.world._scene.update(0.02)
    np.testing.assert_array_equal(found, SceneRobot.foot_forces(simulator.world.robot))
    assert len(set(found[:2, :, 2].round(1).ravel())) == 4
    assert not found[2].any()


class _ByIsaacLab(SceneRobot):
    """Through Isaac Lab's own bookkeeping, as on the other engines."""


def _moved(drive: str) -> tuple[str, np.ndarray]:
    """How robots that differ move: kicked, delayed, corrected, reset some at a time; after each of 12 steps."""
    each = [
        PhysicsSettings(
            drive=drive, friction=0.5 + 0.3 * i, armature=0.01 + 0.01 * i, action_delay=i, frictionloss=0.1 * i
        )
        for i in range(3)
    ]
    simulator = IsaacLabSimulator(PROFILE, each, 3)
    kind = type(simulator.world.robot).__name__
    simulator.set_state(np.arange(3), standing(3))
    targets = PROFILE.default_joint_pos + np.random.default_rng(0).normal(0.0, 0.1, (12, 3, PROFILE.num_joints))

    def swing(state: RobotState, joint_target: np.ndarray, time_s: float) -> np.ndarray:
        return 0.05 * np.sin(state.joint_pos + 20 * time_s)

    rows = []
    for step, target in enumerate(targets):
        simulator.step(target, swing if step % 3 == 0 else None)
        now = simulator.state
        rows.append(np.concatenate([*now.__dict__.values(), simulator.world.foot_forces().reshape(3, -1)], axis=1))
        if step in (3, 7):
            simulator.set_state(np.array([0, 2]), standing(2))
        if step in (5, 7):
            simulator.set_root_velocity(np.array([2, 1]), np.array([[0.5, 0.0, 0.1], [0.0, -0.5, 0.0]]))
    return kind, np.array(rows)


@needs_isaaclab
@pytest.mark.parametrize("drive", ["implicit", "explicit"])
def test_straight_from_the_engine_or_by_isaac_lab_robots_move_the_same_to_the_bit(monkeypatch, drive):
    if not runtime.shares_physx("physx"):
        pytest.skip("Isaac Sim or a GPU present: there is one way")
    straight, found = _moved(drive)
    build = world.IsaacLabWorld._build

    def by_isaac_lab(self):
        with monkeypatch.context() as patch:
            patch.setattr(world, "OvphysxRobot", _ByIsaacLab)
            build(self)

    monkeypatch.setattr(world.IsaacLabWorld, "_build", by_isaac_lab)
    generic, expected = _moved(drive)
    assert (straight, generic) == ("OvphysxRobot", "_ByIsaacLab")
    assert np.abs(expected[..., -6:]).max() > 10.0
    np.testing.assert_array_equal(found, expected)
