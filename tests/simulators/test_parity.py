"""Engines against each other: what both must do alike, for every pair that is installed.

Three facts bound what can be asked. Engines integrate differently: they differ by an amount that is first order in the
physics step, which tests take smaller, or vary. All but MuJoCo compute in single precision, of 6e-8 of a value.
And MuJoCo's contacts, joint stops and dry friction give way like stiff springs, with a time constant of 20 ms, where
those of PhysX are hard: there engines differ at any step, and the tests say by how much.
"""

from __future__ import annotations

from importlib.util import find_spec
from itertools import combinations

import mujoco
import numpy as np
import pytest

from asap_core.errors import StageError
from asap_core.robots import get_profile
from asap_core.robots.mjcf import build_model
from asap_core.robots.physics import PhysicsSettings
from asap_core.rotations import rotate_inverse
from asap_core.simulators.factory import LIBRARIES, make_simulator
from asap_core.simulators.protocol import RobotState, Simulator
from asap_core.simulators.settings import Backend, SimulationSettings
from tests.robot_motions import STANDING_HEIGHT

PROFILE = get_profile("g1_23dof")
MASS = sum(link.mass for link in (*PROFILE.links, *PROFILE.fixed_links))
GRAVITY = 9.81
BACKENDS: tuple[Backend, ...] = ("mujoco", "physx", "genesis", "isaaclab", "isaaclab_newton")
ROUNDING = 1e-5
"""rad, what single precision makes of 0.2 s of motion."""
STEADY = {"kp_factor": {"ankle": 40.0}, "kd_factor": {"ankle": 30.0}}
"""Ankles stiff enough to stand on without a policy; the nominal ones let the robot fall in every engine."""


def need(*backends: Backend) -> None:
    for backend in backends:
        if find_spec(LIBRARIES[backend]) is None:
            extra = backend.removesuffix("_newton")
            pytest.skip(f"{LIBRARIES[backend]} is not installed (extra {extra})")


def _marked(*backends: Backend) -> list:
    """Newton takes minutes on a CPU."""
    return [pytest.mark.slow] if "isaaclab_newton" in backends else []


@pytest.fixture(params=[pytest.param(backend, marks=_marked(backend)) for backend in BACKENDS])
def backend(request: pytest.FixtureRequest) -> Backend:
    need(request.param)
    return request.param


PAIRS = [pair for pair in combinations(BACKENDS, 2) if pair[0] == "mujoco" or not pair[1].startswith("isaaclab")]
"""Isaac Lab's engines are held against MuJoCo alone: it has no other to share an environment with but its own PhysX."""


@pytest.fixture(params=[pytest.param(pair, marks=_marked(*pair), id="-".join(pair)) for pair in PAIRS])
def pair(request: pytest.FixtureRequest) -> tuple[Backend, Backend]:
    need(*request.param)
    return request.param


def simulator(backend: Backend, num_envs: int = 1, **physics: object) -> Simulator:
    settings = SimulationSettings(backend=backend, threads=1, physics=PhysicsSettings.model_validate(physics))
    return make_simulator(PROFILE, settings, num_envs)


def at(height: float, n: int = 1) -> RobotState:
    """At rest in the default pose, root at `height` m."""
    zeros = np.zeros((n, 3))
    return RobotState(
        root_pos=zeros + np.array([0.0, 0.0, height]),
        root_quat=np.tile([1.0, 0, 0, 0], (n, 1)),
        root_lin_vel=zeros.copy(),
        root_ang_vel=zeros.copy(),
        joint_pos=np.tile(PROFILE.default_joint_pos, (n, 1)),
        joint_vel=np.zeros((n, PROFILE.num_joints)),
    )


def tumbling(n: int, height: float = 5.0) -> RobotState:
    """Turned anyhow, with every velocity other than zero, above the ground and off the joints' stops."""
    rng = np.random.default_rng(5)
    quat = rng.normal(size=(n, 4))
    joint_pos = PROFILE.default_joint_pos + rng.normal(0, 0.1, (n, PROFILE.num_joints))
    return RobotState(
        root_pos=rng.normal(size=(n, 3)) + np.array([0, 0, height]),
        root_quat=quat / np.linalg.norm(quat, axis=1, keepdims=True),
        root_lin_vel=rng.normal(size=(n, 3)),
        root_ang_vel=rng.normal(size=(n, 3)),
        joint_pos=np.clip(joint_pos, PROFILE.joint_lower + 0.2, PROFILE.joint_upper - 0.2),
        joint_vel=rng.normal(0, 0.5, (n, PROFILE.num_joints)),
    )


def put(sim: Simulator, state: RobotState) -> Simulator:
    sim.set_state(np.arange(sim.num_envs), state)
    return sim


def run(sim: Simulator, target: np.ndarray, steps: int) -> RobotState:
    for _ in range(steps):
        sim.step(target)
    return sim.state


def standing(backend: Backend, seconds: float, **physics: object) -> Simulator:
    sim = put(simulator(backend, **STEADY, **physics), at(STANDING_HEIGHT))
    run(sim, sim.state.joint_pos, round(seconds / sim.control_dt))
    return sim


def centre_of_mass(sim: Simulator, robot: int) -> np.ndarray:
    """(3,) m."""
    return _mujoco_data(sim, robot).subtree_com[1].copy()


def _mujoco_data(sim: Simulator, robot: int) -> mujoco.MjData:
    """MuJoCo's view of the state of one robot, whatever engine it is in."""
    s = sim.state.take(np.array([robot]))
    model = build_model(PROFILE, PhysicsSettings.model_validate(STEADY))
    data = mujoco.MjData(model)
    data.qpos[:] = np.concatenate([s.root_pos[0], s.root_quat[0], s.joint_pos[0]])
    ang = rotate_inverse(s.root_quat, s.root_ang_vel)[0]
    data.qvel[:] = np.concatenate([s.root_lin_vel[0], ang, s.joint_vel[0]])
    data.ctrl[:] = PROFILE.default_joint_pos
    mujoco.mj_forward(model, data)
    return data


def foot_force(backend: Backend, sim: Simulator) -> float:
    """N, upward, on both feet of the first robot as the engine's own contact solver has it."""
    if backend in {"physx", "isaaclab", "isaaclab_newton"}:
        return float(sim.world.foot_forces()[0, :, 2].sum())
    if backend == "genesis":
        return float(sim.world.link_forces(PROFILE.foot_links)[0, :, 2].sum())
    data, total, force = _mujoco_data(sim, 0), 0.0, np.zeros(6)
    for index in range(data.ncon):
        mujoco.mj_contactForce(data.model, data, index, force)
        total += force[0]
    return total


def test_state_written_is_state_read(backend):
    """Single precision: 6e-8 of the largest value, which is 8 m (the height, and the place among its like)."""
    wanted = tumbling(4)
    found = put(simulator(backend, 4), wanted).state
    for name, value in wanted.__dict__.items():
        np.testing.assert_allclose(getattr(found, name), value, atol=5e-7, err_msg=name)


def test_state_of_some_robots_leaves_the_others_alone(backend):
    sim = put(simulator(backend, 3), tumbling(3))
    before = sim.state
    sim.set_state(np.array([2, 0]), at(3.0, 2))
    after = sim.state
    for name in before.__dict__:
        np.testing.assert_array_equal(getattr(after, name)[1], getattr(before, name)[1], err_msg=name)
    np.testing.assert_allclose(after.root_pos[[0, 2]], [[0, 0, 3.0]] * 2, atol=5e-7)


def test_root_velocity_alone_is_changed(backend):
    """Tolerance: single precision, of angular velocity times the arm from origin to centre of mass."""
    sim = put(simulator(backend, 2), tumbling(2))
    before, wanted = sim.state, np.array([[1.0, -2.0, 0.5]])
    sim.set_root_velocity(np.array([1]), wanted)
    after = sim.state
    np.testing.assert_allclose(after.root_lin_vel[1:], wanted, atol=5e-7)
    for name in set(before.__dict__) - {"root_lin_vel"}:
        np.testing.assert_allclose(getattr(after, name), getattr(before, name), atol=5e-7, err_msg=name)
    np.testing.assert_array_equal(after.root_lin_vel[0], before.root_lin_vel[0])


def test_velocity_is_that_of_the_root_link_at_its_origin(backend):
    """The path of the origin over two physics steps of 0.1 ms; its acceleration, below 200 m/s², adds 0.02 m/s."""
    sim = put(simulator(backend, 4, physics_dt=1e-4, control_dt=2e-4), tumbling(4))
    start = sim.state
    end = run(sim, start.joint_pos, 1)
    np.testing.assert_allclose((end.root_pos - start.root_pos) / 2e-4, start.root_lin_vel, atol=0.03)


def test_free_fall(backend):
    """The joints hold still, so that the root falls with the rest: 9.81 m/s², within 2e-3 for the swing of the PD."""
    sim = put(simulator(backend, 2), at(4.0, 2))
    end = run(sim, sim.state.joint_pos, 10)
    np.testing.assert_allclose(end.root_lin_vel, [[0, 0, -GRAVITY * 0.2]] * 2, atol=2e-3 * GRAVITY)


@pytest.mark.parametrize("drive", ["implicit", "explicit"])
def test_joint_order_and_step_response_of_every_joint(pair, drive):
    """One robot in the air for every joint, whose target alone leaps by 0.1 rad: after 0.1 s it has moved alike.

    Within 2 % of the leap at a physics step of 1 ms (found: 0.9 %), the difference of two first-order integrators; a
    joint out of order, or a gain off by a tenth, differs by far more.
    """
    n = PROFILE.num_joints
    moved = []
    for backend in pair:
        sim = put(simulator(backend, n, drive=drive, physics_dt=0.001), at(5.0, n))
        start = sim.state.joint_pos
        moved.append(run(sim, start + 0.1 * np.eye(n), 5).joint_pos - start)
    assert (np.abs(moved[0]).argmax(axis=1) == np.arange(n)).all()
    np.testing.assert_allclose(moved[1], moved[0], atol=0.002)


CASES = {
    "nominal": {},
    "armature": {"armature": 0.03, "armature_of": {"knee": 0.1}},
    "damping": {"damping": 1.0},
    "strength": {"strength": {"knee": 0.5, "shoulder": 0.3}, "kd_factor": {"hip": 2.0}},
    "mass": {"added_mass": {"torso_link": 3.0, "left_elbow_link": 1.0}, "com_offset": {"pelvis": (0.02, 0.01, 0.03)}},
    "gear": {"no_load_speed": {"knee": 10.0}, "backlash": {"hip": 0.05}},
    "delay": {"action_delay_s": 0.013},
}


@pytest.mark.parametrize("drive", ["implicit", "explicit"])
@pytest.mark.parametrize("case", CASES)
def test_tumbling_robots_move_alike_under_altered_physics(pair, case, drive):
    """0.2 s in the air from random states: every inertia, gain, gyroscopic and velocity term at once.

    Half the step leaves half the difference (found 0.48 to 0.51; 0.55 leaves room for the second order), so that both
    go to one limit; Newton in Isaac Lab takes MuJoCo's own steps, of which only rounding is left (found 1e-7). At 1 ms
    no joint differs by more than 3 mrad (found 0.2 to 1.8).
    """
    difference = []
    for dt in (0.001, 0.0005):
        ends = []
        for backend in pair:
            sim = put(simulator(backend, 4, drive=drive, physics_dt=dt, **CASES[case]), tumbling(4))
            ends.append(run(sim, sim.state.joint_pos + 0.05, 10).joint_pos)
        difference.append(np.abs(ends[1] - ends[0]).max())
        if difference[0] < ROUNDING:
            return
    assert difference[0] < 0.003
    assert difference[1] < 0.55 * difference[0]


def test_altered_physics_is_not_the_nominal(backend):
    """Each case moves some joint by three times the tolerance of the test above at least; else that proves nothing."""
    ends = {}
    for case, physics in CASES.items():
        sim = put(simulator(backend, 4, physics_dt=0.001, **physics), tumbling(4))
        ends[case] = run(sim, sim.state.joint_pos + 0.05, 10).joint_pos
    for case in set(CASES) - {"nominal"}:
        assert np.abs(ends[case] - ends["nominal"]).max() > 0.009, case


def test_robots_of_one_simulator_may_differ(pair):
    """The tolerance of `test_tumbling_…` at 1 ms."""
    each = [PhysicsSettings.model_validate({"physics_dt": 0.001} | case) for case in CASES.values()]
    start = tumbling(1).take(np.zeros(len(each), np.intp))
    ends = []
    for backend in pair:
        sim = put(make_simulator(PROFILE, SimulationSettings(backend=backend, threads=1), len(each), each), start)
        ends.append(run(sim, sim.state.joint_pos + 0.05, 10).joint_pos)
    np.testing.assert_allclose(ends[1], ends[0], atol=0.003)


def test_dry_friction_brakes_a_joint(pair):
    """An elbow without a drive, turned at 4 rad/s against 1 N m: both lose 2.4 rad/s in 0.1 s, within 0.01.

    Sliding friction is the same in both models; what is left is the integrators' difference (found 0.002).
    """
    elbow = PROFILE.joint_index("left_elbow_joint")
    free = {"kp_factor": {"left_elbow": 1e-6}, "kd_factor": {"left_elbow": 1e-6}, "physics_dt": 0.001}
    speed = {}
    for friction in (0.0, 1.0):
        start = at(5.0)
        start.joint_vel[0, elbow] = 4.0
        for backend in pair:
            sim = put(simulator(backend, frictionloss_of={"left_elbow": friction}, **free), start)
            speed[backend, friction] = run(sim, start.joint_pos, 5).joint_vel[0, elbow]
    for friction in (0.0, 1.0):
        assert speed[pair[1], friction] == pytest.approx(speed[pair[0], friction], abs=0.01)
    assert speed[pair[0], 0.0] - speed[pair[0], 1.0] > 2.0


def test_dry_friction_holds_a_joint(backend):
    """A target 20 mrad away asks the elbow for 1.2 N m: against 4 N m of friction it stays, without it follows.

    A fifth of the way is allowed in 0.1 s: MuJoCo's friction creeps there by 36 mrad/s; PhysX's does not move.
    """
    elbow = PROFILE.joint_index("left_elbow_joint")
    moved = []
    for friction in (0.0, 4.0):
        sim = put(simulator(backend, frictionloss_of={"left_elbow": friction}, physics_dt=0.001), at(5.0))
        target = sim.state.joint_pos
        target[0, elbow] += 0.02
        moved.append(run(sim, target, 5).joint_pos[0, elbow] - PROFILE.default_joint_pos[elbow])
    assert moved[0] == pytest.approx(0.02, abs=0.005)
    assert abs(moved[1]) < 0.2 * moved[0]


def test_stops_hold_joints(backend):
    """A knee driven 0.5 rad past its stop with up to 100 N m. MuJoCo's stop gives by 50 mrad then; PhysX's by none."""
    knee = PROFILE.joint_index("left_knee_joint")
    sim = put(simulator(backend), at(5.0))
    target = sim.state.joint_pos
    target[0, knee] = PROFILE.joint_lower[knee] - 0.5
    over = PROFILE.joint_lower[knee] - run(sim, target, 25).joint_pos[0, knee]
    assert -0.01 < over < 0.05


def test_stands_for_five_seconds_and_bears_its_weight(backend):
    """The mean force over the fifth second is the weight; within 1 %, for the slow sway that is left."""
    sim = standing(backend, 4.0)
    forces = []
    for _ in range(50):
        run(sim, np.tile(PROFILE.default_joint_pos, (1, 1)), 1)
        forces.append(foot_force(backend, sim))
    assert abs(sim.state.root_pos[0, 2] - STANDING_HEIGHT) < 0.01
    assert sim.foot_contact().all()
    assert np.mean(forces) == pytest.approx(MASS * GRAVITY, rel=0.01)


def test_stances_agree(pair):
    """Height within 2 mm: MuJoCo's contacts give by 0.3 mm, and the pitch of the sway differs by up to 20 mrad."""
    height, pitch = [], []
    for backend in pair:
        state = standing(backend, 5.0).state
        height.append(state.root_pos[0, 2])
        pitch.append(2 * state.root_quat[0, 2])
    assert height[1] == pytest.approx(height[0], abs=0.002)
    assert pitch[1] == pytest.approx(pitch[0], abs=0.02)


@pytest.mark.parametrize("backend", ["physx", "genesis", "isaaclab"])
def test_self_collision_is_one_for_all_robots_of_a_scene(backend):
    need(backend)
    each = [PhysicsSettings(), PhysicsSettings(self_collision=True)]
    with pytest.raises(ValueError, match="share self_collision"):
        make_simulator(PROFILE, SimulationSettings(backend=backend), 2, each)


@pytest.mark.parametrize(("backend", "package"), [("physx", "ovphysx"), ("genesis", "genesis-world")])
def test_missing_engine_is_named_with_the_way_to_it(backend, package):
    if find_spec(LIBRARIES[backend]) is not None:
        pytest.skip(f"{package} is installed")
    with pytest.raises(StageError, match=rf"{package} is not installed; `make install EXTRAS=dev,robot,{backend}`"):
        simulator(backend)


def test_feet_touch_when_standing_and_not_in_the_air(backend):
    states = at(STANDING_HEIGHT, 2)
    states.root_pos[1, 2] += 0.05
    sim = put(simulator(backend, 2), states)
    assert sim.foot_contact().tolist() == [[True, True], [False, False]]


def test_a_foot_that_leaves_the_ground_is_not_felt_any_more(backend):
    """Thrown up at 3 m/s, within a control step."""
    sim = standing(backend, 0.2)
    assert sim.foot_contact().all()
    sim.set_root_velocity(np.arange(1), np.array([[0.0, 0.0, 3.0]]))
    run(sim, np.tile(PROFILE.default_joint_pos, (1, 1)), 1)
    assert not sim.foot_contact().any()
    assert foot_force(backend, sim) == pytest.approx(0.0, abs=1e-3)


def test_a_push_is_braked_by_each_robots_friction(backend):
    """Stiff robots pushed sideways at 0.4 m/s: after t = 0.22 s their centres of mass lag by μ g t² / 2.

    Within 10 %: what is stiff is not rigid, and rocks (found 1 to 7 %).
    """
    stiff = {"strength": {"joint": 10.0}, "kp_factor": {"ankle": 10.0}, "kd_factor": {"ankle": 10.0}}
    friction = (0.02, 0.05)
    each = [PhysicsSettings.model_validate(stiff | {"friction": value}) for value in friction]
    sim = put(make_simulator(PROFILE, SimulationSettings(backend=backend, threads=1), 2, each), at(STANDING_HEIGHT, 2))
    target = sim.state.joint_pos
    run(sim, target, 25)
    start = [centre_of_mass(sim, robot) for robot in range(2)]
    sim.set_root_velocity(np.arange(2), np.array([[0.0, 0.4, 0.0]] * 2))
    run(sim, target, 11)
    for robot, value in enumerate(friction):
        lag = 0.4 * 0.22 - (centre_of_mass(sim, robot) - start[robot])[1]
        assert lag == pytest.approx(value * GRAVITY * 0.22**2 / 2, rel=0.1), value


@pytest.mark.parametrize("self_collision", [False, True])
def test_self_collision_is_a_switch(backend, self_collision):
    """Forearms that fold across the chest come within 0.14 rad of their targets, or stay 0.64 rad away."""
    sim = put(simulator(backend, self_collision=self_collision), at(3.0))
    target = sim.state.joint_pos
    for side, sign in (("left", 1), ("right", -1)):
        for joint, value in (("shoulder_yaw", -1.4 * sign), ("elbow", 0.0), ("shoulder_roll", 0.0)):
            target[0, PROFILE.joint_index(f"{side}_{joint}_joint")] = value
    end = run(sim, target, 25).joint_pos
    reached = np.abs(end - target).max()
    assert (reached < 0.3) == (not self_collision)


def test_robots_that_meet_do_not_touch(backend):
    """Two robots put into one place, 3 m from where the second belongs, fall as each would alone."""
    states = at(4.0, 2)
    states.root_pos[1, 0] = -3.0
    sim = put(simulator(backend, 2), states)
    end = run(sim, states.joint_pos, 20)
    np.testing.assert_allclose(end.root_pos[1] - [-3.0, 0, 0], end.root_pos[0], atol=5e-5)


@pytest.mark.parametrize("drive", ["implicit", "explicit"])
def test_equal_calls_give_equal_bits(backend, drive):
    """In a new simulator, and again from `set_state` on in a used one, feet on the ground."""
    target = np.tile(PROFILE.default_joint_pos, (3, 1)) + np.linspace(-0.05, 0.05, PROFILE.num_joints)
    sims = [simulator(backend, 3, drive=drive) for _ in range(2)]
    ends = [run(put(sim, at(STANDING_HEIGHT, 3)), target, 30) for sim in (sims[0], sims[1], sims[1])]
    for name, first in ends[0].__dict__.items():
        for end in ends[1:]:
            np.testing.assert_array_equal(getattr(end, name), first, err_msg=name)


def test_simulators_take_turns(backend):
    """Two of a kind, stepped alternately in flight, each as alone. PhysX holds one scene: the other's state is kept.

    Single precision, through which the state is written and read with each turn (found 6e-8).
    """
    target = tumbling(2).joint_pos + 0.1
    alone = run(put(simulator(backend, 2, action_delay=2), tumbling(2)), target, 6)
    one, other = simulator(backend, 2, action_delay=2), simulator(backend, 2)
    put(one, tumbling(2)), put(other, at(6.0, 2))
    for _ in range(6):
        one.step(target)
        other.step(-target)
    np.testing.assert_allclose(one.state.joint_pos, alone.joint_pos, atol=1e-6)


def test_a_foot_in_the_ground_is_pushed_out_gently(backend):
    """2 cm deep: no joint is driven faster than its limit, and the state stays finite."""
    sim = put(simulator(backend, **STEADY), at(STANDING_HEIGHT - 0.02))
    fastest = 0.0
    for _ in range(25):
        sim.step(np.tile(PROFILE.default_joint_pos, (1, 1)))
        fastest = max(fastest, float((np.abs(sim.state.joint_vel) / PROFILE.joint_velocity_limit).max()))
    assert fastest < 1.0
    assert sim.state.root_pos[0, 2] == pytest.approx(STANDING_HEIGHT, abs=0.02)


@pytest.mark.parametrize("backend", ["mujoco", "genesis"])
@pytest.mark.parametrize("drive", ["implicit", "explicit"])
def test_a_robot_that_explodes_is_no_number_and_spares_the_others(backend, drive):
    """Until it is set anew. Genesis itself stops at the first such robot, ten physics steps later."""
    need(backend)
    start = tumbling(2)
    target = start.joint_pos + 0.05
    alone = run(put(simulator(backend, 2, drive=drive), start), target, 10)
    broken = tumbling(2)
    broken.joint_vel[1] = 1e30
    sim = put(simulator(backend, 2, drive=drive), broken)
    end = run(sim, target, 10)
    assert not np.isfinite(end.joint_vel[1]).all()
    for name, value in end.__dict__.items():
        np.testing.assert_array_equal(value[0], getattr(alone, name)[0], err_msg=name)
    sim.set_state(np.array([1]), start.take(np.array([1])))
    np.testing.assert_array_equal(run(sim, target, 10).joint_pos[1], alone.joint_pos[1])
