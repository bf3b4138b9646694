"""Which stages run in a process of their own, with which command, and what is seen of them while they run."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from asap_core.config import Params, load_params
from asap_core.errors import StageError
from asap_core.progress import heard_by
from tasks.stage_process import OUTPUTS, _Mirror, isaaclab_python, needs_process, stage_command
from tasks.stages import STAGES

ROOT = Path(__file__).resolve().parents[2]


def params_with(tmp_path: Path, **sections: dict[str, Any]) -> Params:
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    for name, values in sections.items():
        content[name] = {**content[name], **values}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(content))
    return load_params(tmp_path / "params.yaml")


@pytest.mark.parametrize(
    ("sections", "apart"),
    [
        ({}, set()),
        ({"simulation": {"backend": "isaaclab"}}, {"pretrain", "collect", "align", "finetune", "evaluate"}),
        ({"collect": {"backend": "isaaclab"}}, {"collect", "evaluate"}),
        (
            {"simulation": {"backend": "isaaclab"}, "collect": {"backend": "mujoco"}},
            {"pretrain", "align", "finetune", "evaluate"},
        ),
        ({"ppo": {"gpus": 2}}, {"pretrain", "finetune"}),
    ],
)
def test_stages_that_simulate_in_isaac_lab_or_train_on_several_gpus_run_apart(
    tmp_path: Path, sections: dict[str, Any], apart: set[str]
) -> None:
    params = params_with(tmp_path, **sections)
    assert {stage for stage in STAGES if needs_process(stage, params)} == apart


def test_outputs_are_those_of_dvc() -> None:
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    for stage, outputs in OUTPUTS.items():
        metrics = [name for entry in stages[stage].get("metrics", []) for name in entry]
        assert set(outputs) == {*stages[stage]["outs"], *metrics}, stage


def test_several_gpus_start_through_torchrun_and_one_does_not(tmp_path: Path) -> None:
    two = params_with(tmp_path, ppo={"gpus": 2})
    launched = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "-m", "tasks.stage_child"]
    assert stage_command("finetune", two, ROOT) == [sys.executable, *launched, "finetune"]
    assert stage_command("align", two, ROOT) == [sys.executable, "-m", "tasks.stage_child", "align"]


def test_interpreter_of_isaac_lab_is_found_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.stage_process.find_spec", lambda name: None)
    monkeypatch.delenv("ASAP_ISAACLAB_PYTHON", raising=False)
    with pytest.raises(StageError, match=r"\.venv-isaaclab/bin/python is missing and ASAP_ISAACLAB_PYTHON is not set"):
        isaaclab_python(tmp_path)
    own = tmp_path / ".venv-isaaclab" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.touch(mode=0o755)
    assert isaaclab_python(tmp_path) == str(own)
    monkeypatch.setenv("ASAP_ISAACLAB_PYTHON", sys.executable)
    assert isaaclab_python(tmp_path) == sys.executable
    monkeypatch.setenv("ASAP_ISAACLAB_PYTHON", str(tmp_path / "nothing"))
    with pytest.raises(StageError, match="nothing is no program that can be run"):
        isaaclab_python(tmp_path)


class Ear:
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def progress(self, description: str, done: int, total: int, note: str) -> None:
        self.heard.append((description, done, total, note))

    def curve(self, name: str, step: int, values: Any) -> None:
        self.heard.append((name, step, dict(values)))

    def said(self, text: str) -> None:
        self.heard.append(text)


def test_what_the_child_tells_is_told_here(capsys: pytest.CaptureFixture[str]) -> None:
    ear = Ear()
    with heard_by(ear), ExitStack() as bars:
        mirror = _Mirror(bars)
        for done, what in ((1, "pretrain"), (2, "pretrain"), (1, "score")):
            mirror({"kind": "progress", "description": what, "done": done, "total": 2, "note": f"at {done}"})
        mirror({"kind": "curve", "name": "pretrained", "step": 4, "values": {"reward": 0.5}})
        mirror({"kind": "said", "text": "kernels are compiled"})
        mirror({"kind": "unknown"})
    assert ear.heard == [
        ("pretrain", 1, 2, "at 1"),
        ("pretrain", 2, 2, "at 2"),
        ("score", 1, 2, "at 1"),
        ("pretrained", 4, {"reward": 0.5}),
        "kernels are compiled",
    ]
    assert "pretrain: 2/2 at 2" in capsys.readouterr().err
