"""The rows of the closed-loop table: where a policy is fine-tuned, or how a delta is used without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from asap_core.alignment.inverse import Solve, fixed_point, gradient_search


@dataclass(frozen=True)
class Arm:
    """One way from a published policy to a policy for the target."""

    trained_in: Literal["nominal", "target"] | None = "nominal"
    """None: not fine-tuned."""
    alignment: str | None = None
    """The rival of the alignment bench whose fit corrects the nominal simulator, or is used when acting."""
    randomised: bool = False
    """The paper's domain randomisation (Table VI)."""
    noise_rad: float = 0.0
    """Bound β of the uniform noise on joint targets while training."""
    solve: Solve | None = None
    """How commands are found in the target from the delta, without training."""
    paper: str | None = None
    """The paper's name of the same row."""

    @property
    def has_seeds(self) -> bool:
        """Whether its result depends on a training seed."""
        return self.trained_in is not None


_ARMS: Mapping[str, Arm] = {
    "oracle": Arm(trained_in="target", paper="Oracle"),
    "vanilla": Arm(trained_in=None, paper="Vanilla"),
    "finetune_only": Arm(),
    "domain_randomisation": Arm(randomised=True),
    "action_noise": Arm(noise_rad=0.1),
    "sysid": Arm(alignment="sysid", paper="SysID"),
    "delta_dynamics": Arm(alignment="delta_dynamics", paper="DeltaDynamics"),
    "asap": Arm(alignment="delta", paper="ASAP"),
    "two_stage": Arm(alignment="two_stage"),
    "fixed_point": Arm(trained_in=None, alignment="delta", solve=fixed_point),
    "gradient_search": Arm(trained_in=None, alignment="delta", solve=gradient_search),
}
NOISE_LEVELS: Mapping[str, Arm] = {
    f"action_noise_{beta:g}": Arm(noise_rad=beta) for beta in (0.025, 0.05, 0.1, 0.2, 0.4)
}
"""The paper's sweep (Fig. 11); it found 0.025 to 0.2 useful."""
DEFAULT_ARMS = tuple(_ARMS)
ARMS: Mapping[str, Arm] = {**_ARMS, **NOISE_LEVELS}
"""Name → arm, in the order of the table. `finetune_only` is the same budget in the nominal simulator."""
