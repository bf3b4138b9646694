"""One policy file on one motion file, in the nominal simulator."""

from __future__ import annotations

from pathlib import Path

from asap_core.config import Params
from asap_core.environments.reference import ReferenceMotion
from asap_core.errors import ConfigError, InputFileError, unknown_name
from asap_core.evaluation.one_policy import track_once
from asap_core.motions.convert import Target, convert
from asap_core.motions.doctor.examine import examine
from asap_core.motions.doctor.options import Options
from asap_core.motions.robot import RobotMotion
from asap_core.robots import get_profile
from asap_core.simulators.factory import make_simulator
from asap_core.training.policy import OnnxPolicy
from asap_core.training.published import CONTRACTS
from tasks.stages import Figures

_DRIVES = ("implicit", "explicit")


def evaluate_policy(params: Params, policy: Path, motion: Path, contract: str | None, drive: str | None) -> Figures:
    """Errors of one run of `policy` from the exact first frame of `motion`.

    Args:
        contract: name of the contract of a policy that carries none; None reads it from the file.
        drive: `implicit` or `explicit` PD; None takes `simulation.physics.drive`.

    Raises:
        UnknownNameError: no such contract.
        ConfigError: no such drive.
        InputFileError: a file is missing, damaged, or its motion has open questions or other joints.
        ContractError: the policy was made for another robot, motion or rate.
    """
    if contract is not None and contract not in CONTRACTS:
        raise unknown_name("contract", contract, CONTRACTS)
    if drive is not None and drive not in _DRIVES:
        raise ConfigError(f"--pd: found {drive!r}, expected one of {', '.join(_DRIVES)}")
    profile, physics = get_profile(params.robot), params.simulation.physics
    if drive is not None:
        physics = physics.model_copy(update={"drive": drive})
    velocity = "difference" if contract else params.tracking.reference_joint_vel
    reference = ReferenceMotion.from_motion(robot_motion(motion, params.robot), profile, physics.control_dt, velocity)
    acting = OnnxPolicy(policy, CONTRACTS[contract](profile, reference) if contract else None)
    errors = track_once(acting, reference, profile, make_simulator(profile, params.simulation, 1, physics))
    return {**errors.as_dict(), "drive": physics.drive, "motion": reference.name}


def robot_motion(path: Path, robot: str) -> RobotMotion:
    """The one clip of a motion file of any format, for `robot`.

    Raises:
        InputFileError: missing, damaged, several clips, open questions, other joints, or a person's motion.
    """
    report = examine(path, Options(robot=robot))
    if len(report.clips) != 1:
        raise InputFileError(path, f"holds {len(report.clips)} clips, expected one; `asap convert` splits them")
    motion, _ = convert(report.clips[0], Target(robot=robot))
    if not isinstance(motion, RobotMotion):
        raise InputFileError(path, "holds a person's motion; `asap run retarget` brings it to the robot")
    return motion
