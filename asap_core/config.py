"""`params.yaml`, the only configuration file: read, validated, unknown keys refused with the nearest valid name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from asap_core.alignment.settings import AlignSettings
from asap_core.environments.settings import TrackingSettings
from asap_core.errors import AsapError, ConfigError
from asap_core.evaluation.settings import EvaluateSettings
from asap_core.reconstruction.settings import ReconstructSettings
from asap_core.retargeting.settings import RetargetSettings
from asap_core.robots import get_profile
from asap_core.robots.mjcf import link_masses, scaled_gains
from asap_core.rollouts.settings import CollectSettings, RolloutsSettings
from asap_core.screening.settings import ScreenSettings
from asap_core.settings import Settings
from asap_core.simulators.settings import SimulationSettings
from asap_core.training.settings import FinetuneSettings, PpoSettings, PretrainSettings

_VALUE_ERROR = "Value error, "
"""What pydantic puts before a validator's own text."""
_NAME = re.compile(r"\w([\w .-]*[\w-])?")


class _UniqueKeyLoader(yaml.SafeLoader):
    """Safe, and a key that stands twice in one mapping is an error; YAML's own loader keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} stands twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


class MotionsSettings(Settings):
    """Section `motions`: which human motions go through the pipeline, and which one is trained."""

    source: str = "data/human"
    """Folder of AMASS-layout npz files and videos, relative to the project or absolute."""
    body_models: str | None = None
    """Folder of licensed SMPL model files, from which betas give each person's own bones; the free body without it."""
    names: tuple[str, ...] = Field(min_length=1)
    """File names without `.npz`, `.mp4` and the like."""
    train: str
    """The motion that a policy is trained on; one of `names`."""

    @field_validator("source")
    @classmethod
    def _source_is_given(cls, source: str) -> str:
        if not source.strip():
            raise ValueError("expected a folder")
        return source

    @field_validator("names")
    @classmethod
    def _names_are_file_stems(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no name; expected letters, digits, '_', '-', '.' and spaces, no folder")
            if names.count(name) > 1:
                raise ValueError(f"{name!r} is named {names.count(name)} times")
        return names

    @model_validator(mode="after")
    def _train_is_named(self) -> MotionsSettings:
        if self.train not in self.names:
            raise ValueError(f"train is {self.train!r}, expected one of names: {', '.join(self.names)}")
        return self


class Params(Settings):
    """The whole of `params.yaml`. Sections are named after the stages, or shared by several."""

    seed: int = Field(ge=0, lt=2**31)
    robot: str
    motions: MotionsSettings
    reconstruct: ReconstructSettings = ReconstructSettings()
    screen: ScreenSettings
    retarget: RetargetSettings
    simulation: SimulationSettings
    tracking: TrackingSettings
    ppo: PpoSettings
    pretrain: PretrainSettings
    collect: CollectSettings
    rollouts: RolloutsSettings = RolloutsSettings()
    align: AlignSettings
    finetune: FinetuneSettings
    evaluate: EvaluateSettings

    @property
    def pretraining_motions(self) -> tuple[str, ...]:
        """The motions that the policy is pre-trained on."""
        return self.pretrain.motions or (self.motions.train,)

    @property
    def target(self) -> SimulationSettings:
        """The simulator that stands for the robot: the engine and the differences that `collect` names."""
        backend = self.collect.backend or self.simulation.backend
        physics = self.collect.twin.physics(self.simulation.physics)
        return self.simulation.model_copy(update={"backend": backend, "physics": physics})

    @field_validator("robot")
    @classmethod
    def _robot_exists(cls, robot: str) -> str:
        _said(lambda: get_profile(robot))
        return robot

    @model_validator(mode="after")
    def _sections_fit_each_other(self) -> Params:
        self._several_motions_can_be_told_apart()
        self._collected_motions_can_be_tracked()
        for name in self.reconstruct.clips.keys() - set(self.motions.names):
            raise ValueError(f"reconstruct.clips: {name!r} is none of motions.names: {', '.join(self.motions.names)}")
        nominal, profile = self.simulation.physics, get_profile(self.robot)
        for section, physics_dt in (("pretrain", self.pretrain.physics_dt), ("finetune", self.finetune.physics_dt)):
            _said(partial(nominal.at_step, physics_dt), section)
        twin = _said(lambda: self.collect.twin.physics(nominal), "collect.twin")
        _said(lambda: (scaled_gains(profile, twin), link_masses(profile, twin)), "collect.twin")
        kept, wanted = len(self.pretrain.snapshot_iterations()), self.collect.num_snapshots
        if kept < wanted:
            raise ValueError(
                f"pretrain keeps {kept} snapshots, collect asks for {wanted} (the sum of collect.*.snapshots); add "
                "shares to pretrain.snapshots (those between the same two evaluations count once)"
            )
        return self

    def _several_motions_can_be_told_apart(self) -> None:
        motions, names = self.pretrain.motions, self.motions.names
        stray = [name for name in motions if name not in names]
        if stray or len(set(motions)) < len(motions):
            found = ", ".join(motions)
            raise ValueError(
                f"pretrain.motions is {found}, expected names out of motions.names, each once: {', '.join(names)}"
            )
        if len(motions) > 1 and "ref_dof_pos_future" not in self.tracking.actor.terms:
            raise ValueError(
                "pretrain.motions names several, which the actor cannot tell apart; add ref_dof_pos_future to "
                "tracking.actor.terms, or take preset many"
            )
        if len(motions) > 1 and self.tracking.phase == "clip":
            raise ValueError("pretrain.motions names several: tracking.phase is 'clip', expected 'frames'")

    def _collected_motions_can_be_tracked(self) -> None:
        walk = self.collect.locomotion
        motions = (*self.collect.motions, *([walk.motion] if walk else []))
        for name in motions:
            if name not in self.motions.names:
                found = ", ".join(self.motions.names)
                raise ValueError(f"collect: {name!r} is none of motions.names: {found}")
        if {*motions} - {self.motions.train} and "ref_dof_pos_future" not in self.tracking.actor.terms:
            raise ValueError(
                "collect names motions besides motions.train, which the actor cannot tell apart; add "
                "ref_dof_pos_future to tracking.actor.terms, or take preset many"
            )


def _said(make: Callable[[], Any], where: str = "") -> Any:
    """`make()`; what it finds wrong becomes a `ValueError`, which pydantic reports with the field."""
    prefix = f"{where}: " if where else ""
    try:
        return make()
    except ValidationError as error:
        texts = [": ".join([*map(str, p["loc"]), p["msg"].removeprefix(_VALUE_ERROR)]) for p in error.errors()]
        raise ValueError("; ".join(f"{prefix}{text}" for text in texts)) from None
    except AsapError as error:
        raise ValueError(f"{prefix}{error}") from None


def load_params(path: Path | str) -> Params:
    """Read and check `params.yaml`.

    Raises:
        ConfigError: missing, not YAML, or any key or value wrong; every problem is listed with what was found, what
            was expected and, for an unknown key, the nearest valid one.
    """
    try:
        content = yaml.load(Path(path).read_text(encoding="utf-8"), _UniqueKeyLoader)
    except FileNotFoundError:
        raise ConfigError(f"{path}: missing") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not YAML: {error}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: holds {type(content).__name__}, expected a mapping of sections")
    robot = content.get("robot")
    if isinstance(robot, str) and robot.endswith(".json"):
        content["robot"] = (Path(path).parent / robot).as_posix()
    try:
        return Params.model_validate(content)
    except ValidationError as error:
        lines = [_describe(problem, content) for problem in error.errors()]
        raise ConfigError(f"{path}: {len(lines)} problem(s)\n" + "\n".join(f"  {line}" for line in lines)) from None


def _describe(problem: Any, content: dict[str, Any]) -> str:
    location = [str(part) for part in problem["loc"]]
    field = ".".join(location)
    if problem["type"] == "extra_forbidden":
        valid = sorted(_fields_at(location[:-1]))
        near = difflib.get_close_matches(location[-1], valid, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"{field}: unknown key{hint}; valid here: {', '.join(valid)}"
    if problem["type"] == "missing":
        return f"{field}: missing"
    if problem["type"] in ("model_type", "dict_type"):
        return f"{field}: found {problem['input']!r}, expected a mapping of keys"
    text = problem["msg"].removeprefix(_VALUE_ERROR)
    if problem["type"] == "value_error" and isinstance(problem["input"], dict):
        return f"{field}: {text}" if field else text
    return f"{field}: {text}; found {problem['input']!r}"


def _fields_at(location: list[str]) -> set[str]:
    model: type[BaseModel] = Params
    for part in location:
        field = model.model_fields.get(part)
        if field is None:
            return set(model.model_fields)
        candidates = [field.annotation, *get_args(field.annotation)]
        models = [c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)]
        if not models:
            return set(model.model_fields)
        model = models[0]
    return set(model.model_fields)
