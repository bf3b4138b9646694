"""One physics for every robot of a simulator."""

from __future__ import annotations

from collections.abc import Sequence

from asap_core.robots.physics import PhysicsSettings


def each_physics(
    physics: PhysicsSettings | Sequence[PhysicsSettings], num_envs: int, alike: tuple[str, ...]
) -> list[PhysicsSettings]:
    """The physics of each of `num_envs` robots, from one for all or one for each.

    Raises:
        ValueError: there are more or fewer, or they differ in a field of `alike`.
    """
    each = [physics] * num_envs if isinstance(physics, PhysicsSettings) else list(physics)
    if len(each) != num_envs:
        raise ValueError(f"{len(each)} physics for {num_envs} robots")
    for name in alike:
        found = {getattr(p, name) for p in each}
        if len(found) > 1:
            raise ValueError(f"robots of one simulator must share {name}; found {sorted(found)}")
    return each
