"""`params.yaml`, the only configuration file: read, validated, unknown keys refused with the nearest valid name."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, Field, ValidationError, model_validator

from asap_core.alignment.settings import AlignSettings
from asap_core.environments.settings import TrackingSettings
from asap_core.errors import ConfigError
from asap_core.evaluation.settings import EvaluateSettings
from asap_core.retargeting.settings import RetargetSettings
from asap_core.rollouts.settings import CollectSettings
from asap_core.screening.settings import ScreenSettings
from asap_core.settings import Settings
from asap_core.simulators.settings import SimulationSettings
from asap_core.training.settings import FinetuneSettings, PpoSettings, PretrainSettings


class MotionsSettings(Settings):
    """Section `motions`: which human motions go through the pipeline, and which one is trained."""

    source: str = "data/human"
    """Folder of AMASS-layout npz files, relative to the project or absolute."""
    names: tuple[str, ...] = Field(min_length=1)
    """File names without `.npz`."""
    train: str
    """The motion that a policy is trained on; one of `names`."""

    @model_validator(mode="after")
    def _train_is_named(self) -> MotionsSettings:
        if self.train not in self.names:
            raise ValueError(f"train is {self.train!r}, expected one of names: {', '.join(self.names)}")
        return self


class Params(Settings):
    """The whole of `params.yaml`. Sections are named after the stages, or shared by several."""

    seed: int = Field(ge=0)
    robot: str
    motions: MotionsSettings
    screen: ScreenSettings
    retarget: RetargetSettings
    simulation: SimulationSettings
    tracking: TrackingSettings
    ppo: PpoSettings
    pretrain: PretrainSettings
    collect: CollectSettings
    align: AlignSettings
    finetune: FinetuneSettings
    evaluate: EvaluateSettings


def load_params(path: Path | str) -> Params:
    """Read and check `params.yaml`.

    Raises:
        ConfigError: missing, not YAML, or any key or value wrong; every problem is listed with what was found, what
            was expected and, for an unknown key, the nearest valid one.
    """
    try:
        content = yaml.safe_load(Path(path).read_text())
    except FileNotFoundError:
        raise ConfigError(f"{path}: missing") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not YAML: {error}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: holds {type(content).__name__}, expected a mapping of sections")
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
        return f"{field}: unknown key{hint} Valid here: {', '.join(valid)}"
    if problem["type"] == "missing":
        return f"{field}: missing"
    return f"{field}: {problem['msg']}; found {problem['input']!r}"


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
