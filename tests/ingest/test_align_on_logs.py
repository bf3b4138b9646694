"""`rollouts.kind: robot` in params.yaml makes `align` read what `asap ingest` made of logs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from asap_core.errors import InputFileError
from asap_core.robots import get_profile
from asap_core.robots.physics import PhysicsSettings
from asap_core.rollouts.ingest.standing_twin import Stand, stand
from asap_core.rollouts.ingest.twin_log import write_twin_npz
from asap_core.rollouts.settings import SPLITS, TwinSettings
from tasks import align
from tasks.ingest import ActionSource, Request, ingest_logs
from tasks.stages import read_params

PROJECT = Path(__file__).parents[2]
PROFILE = get_profile("g1_23dof")
CHANGES = {
    "rollouts": {"kind": "robot"},
    "align": {"joints": "ankles", "ridge": [1.0], "residual_epochs": 0, "refine": {"iterations": 0}, "max_ratio": 10.0},
}


def _log(path: Path, seed: int) -> Path:
    """A log of a twin of other physics that, for this test, does not say that it is one."""
    record = stand(PROFILE, 5.0, TwinSettings().physics(PhysicsSettings(physics_dt=0.005)), movement=Stand(seed=seed))
    write_twin_npz(path, record, seed)
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files if name != "is_twin"}
    np.savez(path, allow_pickle=False, **arrays)
    return path


@pytest.mark.slow
@pytest.mark.usefixtures("plain_pages")
def test_align_reads_the_logs_of_a_robot(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text(
        yaml.safe_dump(yaml.safe_load((PROJECT / "params.yaml").read_text()) | CHANGES)
    )
    params = read_params(tmp_path)
    with pytest.raises(InputFileError, match="kind=robot"):
        align.run(params, tmp_path)
    folder = tmp_path / "data" / "rollouts" / "kind=robot"
    for seed, split in enumerate((*SPLITS, "fit")):
        path = _log(tmp_path / f"motion_{seed}.npz", seed)
        request = Request((path,), folder, split, PROFILE, ActionSource(default="profile", scale=0.25))
        assert [result.outcome for result in ingest_logs(request)] == ["added"]
    figures = align.run(params, tmp_path)
    assert figures["chosen"]
    assert re.fullmatch(r"\d of 2: .*(zero|delta) [\d.]+ mm", str(figures["rank"]))
    assert (tmp_path / "models" / "delta" / "delta.onnx").exists()
    report = (tmp_path / "models" / "delta" / "report.json").read_text()
    assert '"kind": "robot"' in report
    assert '"tool": "asap ingest"' in report
