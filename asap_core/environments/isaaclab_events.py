"""`RandomisationSettings` and `DisturbanceSettings` as event terms of Isaac Lab's own event manager."""

from __future__ import annotations

from typing import Any

import numpy as np

from asap_core.environments.settings import TrackingSettings
from asap_core.errors import unknown_name
from asap_core.robots.profile import RobotProfile
from asap_core.robots.usd import link_prims

_SURFACES = 64
_SCALE = {"operation": "scale"}


def event_terms(settings: TrackingSettings, profile: RobotProfile) -> dict[str, Any]:
    """Name → Isaac Lab's `EventTermCfg`: once for each robot at the start, at resets, and at intervals.

    Friction, gains, armature, masses and the torso's centre of mass are drawn at the start; a reset starts an episode
    and draws its action delay; pushes come at intervals. Isaac Lab draws friction for each shape of a robot, and adds a
    push to the velocity that is there.

    Raises:
        UnknownNameError: `mass_links` match no link.
    """
    from isaaclab.managers import EventTermCfg

    terms = {"episode": EventTermCfg(func=start_episode, mode="reset")}
    return terms | _at_start(settings, profile) | _at_intervals(settings)


def start_episode(env: Any, env_ids: Any) -> None:
    """Reference state initialisation of some robots, and the delays of their actions."""
    env.tracking.reset(np.asarray(env_ids.cpu().numpy(), np.intp))


def _at_start(settings: TrackingSettings, profile: RobotProfile) -> dict[str, Any]:
    from isaaclab.envs import mdp

    drawn = settings.randomisation
    terms: dict[str, Any] = {}
    values: dict[str, Any]
    if drawn.friction is not None:
        values = {"static_friction_range": drawn.friction, "dynamic_friction_range": drawn.friction}
        fixed = {"restitution_range": (0.0, 0.0), "num_buckets": _SURFACES, "make_consistent": True}
        terms["friction"] = _startup(mdp.randomize_rigid_body_material, {"body_names": ".*"}, values | fixed)
    if drawn.kp is not None or drawn.kd is not None:
        values = {"stiffness_distribution_params": drawn.kp, "damping_distribution_params": drawn.kd}
        terms["gains"] = _startup(mdp.randomize_actuator_gains, {"joint_names": ".*"}, values | _SCALE)
    if drawn.armature is not None:
        values = {"armature_distribution_params": drawn.armature}
        terms["armature"] = _startup(mdp.randomize_joint_parameters, {"joint_names": ".*"}, values | _SCALE)
    if drawn.link_mass is not None:
        chosen = {"body_names": _prims(profile, drawn.mass_links)}
        values = {"mass_distribution_params": drawn.link_mass, "recompute_inertia": False}
        terms["mass"] = _startup(mdp.randomize_rigid_body_mass, chosen, values | _SCALE)
    if drawn.com_offset:
        within = (-drawn.com_offset, drawn.com_offset)
        torso = {"body_names": _prims(profile, (profile.torso_link,))}
        values = {"com_range": {"x": within, "y": within, "z": within}}
        terms["centre_of_mass"] = _startup(mdp.randomize_rigid_body_com, torso, values)
    return terms


def _startup(function: Any, where: dict[str, Any], values: dict[str, Any]) -> Any:
    from isaaclab.managers import EventTermCfg, SceneEntityCfg

    return EventTermCfg(func=function, mode="startup", params={"asset_cfg": SceneEntityCfg("robot", **where), **values})


def _prims(profile: RobotProfile, parts: tuple[str, ...]) -> list[str]:
    links = dict(zip((link.name for link in profile.links), link_prims(profile), strict=True))
    chosen = [prim for name, prim in links.items() if any(part in name for part in parts)]
    if not chosen:
        raise unknown_name("part of a link's name", ", ".join(parts), links)
    return chosen


def _at_intervals(settings: TrackingSettings) -> dict[str, Any]:
    from isaaclab.envs import mdp
    from isaaclab.managers import EventTermCfg

    push = settings.disturbances.push
    if not push.speed:
        return {}
    within = (-push.speed, push.speed)
    return {
        "push": EventTermCfg(
            func=mdp.push_by_setting_velocity,
            mode="interval",
            interval_range_s=push.interval_s,
            params={"velocity_range": {"x": within, "y": within}},
        )
    }
