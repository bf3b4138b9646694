"""dvc.yaml says the truth: its stages are the product's, and the code a stage runs is what it depends on."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from asap_core.config import load_params
from tasks.item_store import code_version
from tasks.stages import STAGES

ROOT = Path(__file__).resolve().parents[2]
DEFINITION: dict[str, Any] = yaml.safe_load((ROOT / "dvc.yaml").read_text())
EVERYWHERE = {"asap_core/config.py", "asap_core/errors.py", "asap_core/files.py", "asap_core/progress.py"}
"""Plumbing that cannot change a result, and the reader of params.yaml, whose sections are tracked themselves."""
PLUMBING = {f"tasks/{name}.py" for name in ("item_store", "mlflow_client", "lineage", "stages", "tracking")}


def source_of(module: str) -> Path | None:
    """The file of a module of this project, relative to its root."""
    path = Path(*module.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if (ROOT / candidate).exists():
            return candidate
    return None


def imports_of(path: Path) -> set[Path]:
    """Project files that a file imports, anywhere in it and at run time, with their packages' `__init__`."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    wanted = {m for m in modules if m.split(".")[0] in ("asap_core", "tasks")}
    parents = {".".join(m.split(".")[:n]) for m in wanted for n in range(2, m.count(".") + 2)}
    return {source for module in wanted | parents if (source := source_of(module)) is not None}


def code_of(stage: str) -> set[str]:
    """What a stage runs, as dvc.yaml writes it: rooms of asap_core, its top modules, modules of tasks."""
    seen: set[Path] = set()
    queue = [Path("tasks") / f"{stage}.py"]
    while queue:
        path = queue.pop()
        if path in seen or path.as_posix() in EVERYWHERE | PLUMBING:
            continue
        seen.add(path)
        queue += imports_of(path)
    parts = {path.parts[:2] for path in seen if path.name != "__init__.py" or len(path.parts) > 2}
    return {"/".join(part) for part in parts} - {"asap_core/settings.py"}


def test_stages_are_those_of_the_command_line_in_order() -> None:
    assert tuple(DEFINITION["stages"]) == STAGES
    assert [s["cmd"] for s in DEFINITION["stages"].values()] == [f"sh bin/stage {name}" for name in STAGES]


@pytest.mark.parametrize("stage", STAGES)
def test_code_that_a_stage_runs_is_its_dependency(stage: str) -> None:
    declared = {dep for dep in DEFINITION["stages"][stage]["deps"] if dep.startswith(("asap_core", "tasks"))}
    assert code_of(stage) == declared


@pytest.mark.parametrize("stage", ["reconstruct", "screen", "retarget", "pretrain", "align", "finetune"])
def test_what_is_kept_between_runs_depends_on_that_code_too(stage: str) -> None:
    code = importlib.import_module(f"tasks.{stage}").CODE
    assert set(code) == {dep for dep in DEFINITION["stages"][stage]["deps"] if dep.startswith(("asap_core", "tasks"))}
    assert len(code_version(*code)) == 20


@pytest.mark.parametrize("stage", STAGES)
def test_params_of_a_stage_exist(stage: str) -> None:
    sections = load_params(ROOT / "params.yaml").model_dump()
    for key in DEFINITION["stages"][stage]["params"]:
        value = sections
        for part in key.split("."):
            assert part in value, f"{stage}: {key}"
            value = value[part]


def filled(text: str) -> str:
    """With the values of params.yaml in place of `${section.key}`."""
    values: Any = yaml.safe_load((ROOT / "params.yaml").read_text())
    return re.sub(r"\$\{(\w+)\.(\w+)\}", lambda match: str(values[match[1]][match[2]]), text)


def test_every_output_is_made_once_and_every_dependency_has_a_maker() -> None:
    made: list[str] = []
    for name, stage in DEFINITION["stages"].items():
        for dep in (filled(dep) for dep in stage["deps"]):
            if dep.startswith(("data/", "models/", "evaluation/")) and dep != filled("${motions.source}"):
                assert any(dep == out or dep.startswith(f"{out}/") for out in made), (
                    f"{name} reads {dep} before it is made"
                )
        made += [*stage.get("outs", []), *(key for metric in stage.get("metrics", []) for key in metric)]
    assert len(made) == len(set(made))
