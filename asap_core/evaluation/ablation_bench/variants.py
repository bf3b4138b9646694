"""The variants of each ablation of the delta's fit, and what the paper found for the same quantity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from asap_core.alignment.corrected import Rival
from asap_core.alignment.delta_rival import DeltaRival
from asap_core.alignment.settings import AlignSettings
from asap_core.evaluation.ablation_bench.altered_data import AlteredDataRival, with_noise, with_samples
from asap_core.robots.profile import RobotProfile
from asap_core.simulators.settings import SimulationSettings

_SAMPLES = (50, 200, 400, 1000, 2000, 4000)
_HORIZONS_S = (0.1, 0.25, 0.5, 1.0, 1.5)
_PRIORS = (0.001, 0.01, 0.1, 1.0, 10.0)
_NOISES = (0.0, 0.001, 0.003, 0.01)
_NOISE_SEED = 20


@dataclass(frozen=True)
class Variant:
    """One value of the quantity, and the rival fitted with it."""

    value: float
    rival: Rival


Make = Callable[[RobotProfile, SimulationSettings, AlignSettings], list[Variant]]


def _data(profile: RobotProfile, simulation: SimulationSettings, align: AlignSettings) -> list[Variant]:
    delta = DeltaRival(profile, simulation, align)
    return [
        Variant(n, AlteredDataRival(delta, f"delta_{n}_samples", n, partial(with_samples, samples=n))) for n in _SAMPLES
    ]


def _horizon(profile: RobotProfile, simulation: SimulationSettings, align: AlignSettings) -> list[Variant]:
    return [
        Variant(end, _with(profile, simulation, align, f"delta_{end:g}s", {"horizons_s": _up_to(end)}))
        for end in _HORIZONS_S
    ]


def _up_to(end: float) -> tuple[float, ...]:
    return tuple(h for h in _HORIZONS_S if h <= end)


def _norm(profile: RobotProfile, simulation: SimulationSettings, align: AlignSettings) -> list[Variant]:
    return [
        Variant(prior, _with(profile, simulation, align, f"delta_prior_{prior:g}", {"prior": prior}))
        for prior in _PRIORS
    ]


def _noise(profile: RobotProfile, simulation: SimulationSettings, align: AlignSettings) -> list[Variant]:
    delta = DeltaRival(profile, simulation, align)
    variants = []
    for std in _NOISES:
        alter = [partial(with_noise, std=std, seed=_NOISE_SEED + k) for k in range(2)]
        variants.append(Variant(std, AlteredDataRival(delta, f"delta_noise_{std:g}", std, *alter)))
    return variants


def _with(
    profile: RobotProfile, simulation: SimulationSettings, align: AlignSettings, name: str, refine: dict[str, object]
) -> DeltaRival:
    """The delta with other settings of `align.refine`, validated."""
    changed = AlignSettings.model_validate(align.model_dump() | {"refine": align.refine.model_dump() | refine})
    return DeltaRival(profile, simulation, changed, name)


@dataclass(frozen=True)
class Ablation:
    """A quantity that is varied."""

    quantity: str
    """With its unit, for axis and column."""
    make: Make
    paper: str
    """What the paper found."""


ABLATIONS: Mapping[str, Ablation] = {
    "data": Ablation(
        "transitions fitted on",
        _data,
        "Fig. 9, out of distribution: 49.4, 41.3, 39.4, 28.1 mm MPJPE with 43, 430, 4300, 43000 samples (read off)",
    ),
    "horizon": Ablation(
        "longest horizon of the fit, s", _horizon, "Fig. 10: open loop best at 1.5 s, closed loop at 1.0 s"
    ),
    "norm": Ablation(
        "align.refine.prior, in place of the action-norm weight",
        _norm,
        "Fig. 10: best 0.1 of its reward's weight; larger hurts open loop",
    ),
    "noise": Ablation(
        "noise of the records, rad and m", _noise, "none; its Fig. 11 is `asap bench ablation-action-noise`"
    ),
}
"""Name → ablation, those whose answer is the open loop on motions held out."""
