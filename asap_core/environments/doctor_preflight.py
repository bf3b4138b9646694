"""The doctor's question to the tracking environment: would an episode of this motion end before it has begun?"""

from __future__ import annotations

from dataclasses import replace

from asap_core.environments.preflight import preflight
from asap_core.environments.reference import ReferenceMotion
from asap_core.environments.terminations import TerminationSettings
from asap_core.motions.doctor.examine import FileReport
from asap_core.motions.doctor.problems import Problem, Severity
from asap_core.motions.doctor.robot import RobotDiagnosis
from asap_core.motions.robot import RobotMotion
from asap_core.robots import get_profile

_CONTROL_DT = 0.02


def with_preflight(report: FileReport, settings: TerminationSettings) -> FileReport:
    """The report with a finding for each robot clip on which the environment's terminations act.

    A violation in the first frame is a warning, a later one a note: a clip may well lie down on purpose.
    """
    clips = []
    for found in report.clips:
        problem = None
        if isinstance(found, RobotDiagnosis) and found.motion is not None:
            problem = _problem(found.motion, settings)
        clips.append(found if problem is None else replace(found, problems=(*found.problems, problem)))
    return replace(report, clips=tuple(clips))


def _problem(motion: RobotMotion, settings: TerminationSettings) -> Problem | None:
    profile = get_profile(motion.robot)
    if motion.joint_names != profile.joint_names:
        return None
    found = preflight(ReferenceMotion.from_motion(motion, profile, _CONTROL_DT), profile, settings)
    if found.accepted:
        return None
    severity: Severity = "warning" if found.ends[0] else "note"
    return Problem(severity, "terminates", found.text(), "", "cut the frames out, or loosen tracking.termination")
