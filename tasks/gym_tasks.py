"""`Asap-Tracking-G1-v0` and `Asap-DeltaAction-G1-v0` in gymnasium's registry, for Isaac Lab's own training scripts:

    isaaclab train --rl_library rsl_rl --task Asap-Tracking-G1-v0 --num_envs 4096

Isaac Lab finds this module by the entry point `isaaclab.tasks` of this package, and registers by importing it. What
such a training leaves is rsl-rl's checkpoint; those of our stages are exchanged between engines.
"""

from __future__ import annotations

import gymnasium

TRACKING, DELTA_ACTION = "Asap-Tracking-G1-v0", "Asap-DeltaAction-G1-v0"


def _register(task: str, kind: str) -> None:
    if task not in gymnasium.registry:
        gymnasium.register(
            id=task,
            entry_point=f"tasks.gym_envs:make_{kind}",
            disable_env_checker=True,
            kwargs={
                "env_cfg_entry_point": f"tasks.gym_envs:{kind}_cfg",
                "rsl_rl_cfg_entry_point": f"tasks.gym_envs:{kind}_agent_cfg",
                "default_agent": "rsl_rl",
            },
        )


_register(TRACKING, "tracking")
_register(DELTA_ACTION, "delta_action")
