"""Observation terms and their layout, as in the paper's release: alphabetical fields, history newest first.

Source: ASAP paper §III-A and the released configuration (380-wide actor, 557-wide critic).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from asap_core.environments.future import FUTURE_TERMS, Ahead
from asap_core.errors import unknown_name
from asap_core.robots.kinematics import LinkStates
from asap_core.robots.profile import RobotProfile
from asap_core.rotations import projected_gravity, rotate_inverse
from asap_core.settings import Settings
from asap_core.simulators.protocol import Ids, RobotState

Array = NDArray[np.floating]
CLIP = 100.0
"""Observations and actions are clipped to ± this value."""


@dataclass(frozen=True)
class ObservationContext:
    """What terms are computed from; leading axis N."""

    profile: RobotProfile
    state: RobotState
    links: LinkStates | None
    """Needed by critic terms only."""
    last_action: Array
    """(N, J) raw, clipped, unscaled; zero after a reset."""
    phase: Array
    """(N,) share of the clip that the coming step aims at, 0 … 1."""
    ref_joint_pos: Array
    """(N, J) rad, reference of the coming step."""
    ref_link_pos: Array | None
    """(N, L, 3) m, world, reference of the coming step; needed by critic terms only."""
    ahead: Ahead | None = None
    """Needed by terms of the future (`future.py`) only."""
    known: dict[str, Array] = field(default_factory=dict)
    """Terms that a group asked for already."""


def _local_vectors(ctx: ObservationContext, vectors: Array) -> Array:
    """Vectors (N, L, 3) in the heading frame of the root, in a row."""
    w, x, y, z = ctx.state.root_quat.T
    along, across = 1.0 - 2.0 * (y * y + z * z), 2.0 * (w * z + x * y)
    length = np.hypot(along, across)
    cosine, sine = (along / length)[:, None], (across / length)[:, None]
    out = np.empty_like(vectors)
    out[..., 0] = cosine * vectors[..., 0] + sine * vectors[..., 1]
    out[..., 1] = cosine * vectors[..., 1] - sine * vectors[..., 0]
    out[..., 2] = vectors[..., 2]
    return out.reshape(len(out), -1)


def _dif_local_rigid_body_pos(ctx: ObservationContext) -> Array:
    assert ctx.links is not None
    assert ctx.ref_link_pos is not None
    return _local_vectors(ctx, ctx.ref_link_pos - ctx.links.pos)


def _local_ref_rigid_body_pos(ctx: ObservationContext) -> Array:
    assert ctx.ref_link_pos is not None
    return _local_vectors(ctx, ctx.ref_link_pos - ctx.state.root_pos[:, None])


def _from_default(joint_pos: Array, profile: RobotProfile) -> Array:
    return joint_pos - profile.default_joint_pos.astype(joint_pos.dtype)


def _phase_harmonics(ctx: ObservationContext) -> Array:
    angle = 2 * np.pi * ctx.phase[:, None] * np.array([1.0, 2.0, 4.0])
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=1)


TERMS: dict[str, tuple[Callable[[ObservationContext], Array], Callable[[RobotProfile], int]]] = {
    "actions": (lambda c: c.last_action, lambda p: len(p.joint_names)),
    "base_ang_vel": (lambda c: rotate_inverse(c.state.root_quat, c.state.root_ang_vel), lambda p: 3),
    "base_lin_vel": (lambda c: rotate_inverse(c.state.root_quat, c.state.root_lin_vel), lambda p: 3),
    "dif_local_rigid_body_pos": (_dif_local_rigid_body_pos, lambda p: 3 * len(p.link_names)),
    "dof_pos": (lambda c: _from_default(c.state.joint_pos, c.profile), lambda p: len(p.joint_names)),
    "dof_vel": (lambda c: c.state.joint_vel, lambda p: len(p.joint_names)),
    "local_ref_rigid_body_pos": (_local_ref_rigid_body_pos, lambda p: 3 * len(p.link_names)),
    "phase_harmonics": (_phase_harmonics, lambda p: 6),
    "projected_gravity": (lambda c: projected_gravity(c.state.root_quat), lambda p: 3),
    "ref_dof_pos": (lambda c: _from_default(c.ref_joint_pos, c.profile), lambda p: len(p.joint_names)),
    "ref_motion_phase": (lambda c: c.phase[:, None], lambda p: 1),
}
"""Name → (raw quantity (N, dim) in SI units, its width)."""


PRIVILEGED = frozenset({"dif_local_rigid_body_pos", "local_ref_rigid_body_pos"})
"""Terms that need `links` or `ref_link_pos`."""


class ObservationSettings(Settings):
    """One group: which terms of the present frame, which of them with history, and how scaled and disturbed."""

    terms: tuple[str, ...] = Field(min_length=1)
    history_terms: tuple[str, ...]
    history_length: int = Field(default=4, ge=0)
    """Frames before the present one; with the present frame this is the paper's five-step history."""
    scales: dict[str, float] = Field(default_factory=dict)
    """Factor on the raw quantity; 1 where absent."""
    noise: dict[str, float] = Field(default_factory=dict)
    """Uniform ± in raw units; 0 where absent."""
    future_steps: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Control steps from the present one at which terms of the future see the reference; 1 is the coming step."""

    @model_validator(mode="after")
    def _names_exist(self) -> ObservationSettings:
        for name in self.terms:
            if name not in TERMS and name not in FUTURE_TERMS:
                raise ValueError(str(unknown_name("observation term", name, [*TERMS, *FUTURE_TERMS])))
        for name in self.history_terms:
            if name not in TERMS:
                raise ValueError(str(unknown_name("observation term with history", name, TERMS)))
        stray = sorted(({*self.scales} | {*self.noise}) - {*self.terms, *self.history_terms})
        if stray:
            raise ValueError(f"scales or noise of {', '.join(stray)}, which are not terms of this group")
        if self.sees_future and not self.future_steps:
            raise ValueError(f"future_steps is empty, expected control steps for {', '.join(sorted(self.sees_future))}")
        return self

    @property
    def sees_future(self) -> frozenset[str]:
        """The terms that say where the reference goes: with any of them a policy can follow motions it never saw."""
        return frozenset(self.terms) & FUTURE_TERMS.keys()


class ObservationLayout:
    """Where each field lies: fields in alphabetical order, the history block among them as `history`."""

    def __init__(self, settings: ObservationSettings, profile: RobotProfile) -> None:
        self.settings = settings
        self.widths = {
            n: FUTURE_TERMS[n][1](profile, settings.future_steps) if n in FUTURE_TERMS else TERMS[n][1](profile)
            for n in {*settings.terms, *settings.history_terms}
        }
        self.history_names = sorted(settings.history_terms)
        self.history_width = settings.history_length * sum(self.widths[n] for n in self.history_names)
        fields = sorted([*settings.terms, *(["history"] if self.history_width else [])])
        self.slices: dict[str, slice] = {}
        start = 0
        for name in fields:
            width = self.history_width if name == "history" else self.widths[name]
            self.slices[name] = slice(start, start + width)
            start += width
        self.width = start


class ObservationBuilder:
    """Builds one group's observations for N robots and keeps their history.

    A history frame is stored scaled, with its own noise, and only after the observation was built, so the history
    never holds the present frame. It is zero after a reset.
    """

    def __init__(self, layout: ObservationLayout, num_envs: int) -> None:
        self.layout = layout
        settings, self._length = layout.settings, layout.settings.history_length
        self._fields: dict[str, slice] = {}
        start = 0
        for name in layout.history_names:
            stop = start + self._length * layout.widths[name]
            self._fields[name] = slice(start, stop)
            start = stop
        self._history = np.zeros((num_envs, start), np.float32)
        """Field by field, newest frame first."""
        self._spare = np.empty_like(self._history)
        self._level = {name: level * settings.scales.get(name, 1.0) for name, level in settings.noise.items()}

    def reset(self, ids: Ids) -> None:
        """Zero the history of robots `ids`."""
        self._history[ids] = 0.0

    def __call__(self, ctx: ObservationContext, rng: np.random.Generator | None = None) -> NDArray[np.float32]:
        """Observation (N, width), float32; disturbed when `rng` is given. Advances the history by one frame."""
        out = np.empty((len(ctx.phase), self.layout.width), np.float32)
        scaled = self._scaled_terms(ctx)
        for name, place in self.layout.slices.items():
            if name == "history":
                out[:, place] = self._history
            else:
                self._write(out[:, place], name, scaled[name], rng)
        if self._length:
            for name, place in self._fields.items():
                width = self.layout.widths[name]
                new, old = self._spare[:, place], self._history[:, place]
                new[:, width:] = old[:, :-width]
                self._write(new[:, :width], name, scaled[name], rng)
            self._history, self._spare = self._spare, self._history
        return np.clip(out, -CLIP, CLIP, out=out)

    def _scaled_terms(self, ctx: ObservationContext) -> dict[str, Array]:
        scales = self.layout.settings.scales
        raw = {name: self._raw(name, ctx) for name in self.layout.widths}
        return {name: value * scales[name] if name in scales else value for name, value in raw.items()}

    def _raw(self, name: str, ctx: ObservationContext) -> Array:
        if name not in FUTURE_TERMS:
            if name not in ctx.known:
                ctx.known[name] = TERMS[name][0](ctx)
            return ctx.known[name]
        assert ctx.ahead is not None
        return FUTURE_TERMS[name][0](ctx.ahead, ctx.state, ctx.profile, self.layout.settings.future_steps)

    def _write(self, out: NDArray[np.float32], name: str, scaled: Array, rng: np.random.Generator | None) -> None:
        level = self._level.get(name, 0.0)
        if rng is None or level == 0.0:
            out[:] = scaled
            return
        noise = rng.random(scaled.shape, np.float32)
        noise -= 0.5
        noise *= 2.0 * level
        np.add(scaled, noise, out=out, casting="same_kind")

    def state_dict(self) -> dict[str, NDArray[np.float32]]:
        """The history of each field (N, frames, width), for a checkpoint."""
        rows = len(self._history)
        return {
            name: self._history[:, place].reshape(rows, self._length, -1).copy() for name, place in self._fields.items()
        }

    def load_state_dict(self, state: dict[str, NDArray[np.float32]]) -> None:
        """Take back what `state_dict` gave."""
        for name, place in self._fields.items():
            self._history[:, place] = state[name].reshape(len(self._history), -1)
