"""params.yaml at the door: what a stage would choke on later is refused before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from asap_core.config import Params, load_params
from asap_core.errors import ConfigError
from asap_core.training.settings import PretrainSettings

ROOT = Path(__file__).resolve().parents[2]


def load_changed(tmp_path: Path, key: str, value: Any) -> Params:
    """Load the project's params.yaml with one dotted key changed."""
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    *sections, last = key.split(".")
    place = content
    for section in sections:
        place = place.setdefault(section, {})
    place[last] = value
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(content))
    return load_params(tmp_path / "params.yaml")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("motions.names", ["squat", "../human/kick"], "'../human/kick' is no name"),
        ("motions.names", ["squat", "squat"], "'squat' is named 2 times"),
        ("motions.source", "", "motions.source: expected a folder"),
        ("screen", None, "screen: found None, expected a mapping of keys"),
        ("seed", True, "seed: expected no truth value"),
        ("robot", "g1_23dfo", "Did you mean 'g1_23dof'?"),
        ("pretrain.physics_dt", 0.003, "pretrain: physics_dt 0.003 s does not divide control_dt 0.02 s"),
        ("finetune.physics_dt", 0.03, "finetune: physics_dt"),
        ("pretrain.snapshots", [1.0], "pretrain keeps 1 snapshots, collect asks for 6"),
        ("pretrain.snapshots", [0.5, 2.0], "pretrain.snapshots.1"),
        ("collect.twin.strength", {"elboww": 0.8}, "collect.twin: strength: 'elboww' matches no joint"),
        ("collect.twin.strength", {"knee": 0.0}, "expected a factor > 0"),
        ("collect.twin.added_mass", {"torso": 2.0}, "Did you mean 'torso_link'?"),
        ("tracking.actor", {"terms": ["local_ref_rigid_body_pos"], "history_terms": []}, "for the critic only"),
        ("tracking.termination.distance_end", 9.0, "distance_end is 9.0, expected at most distance_start"),
        ("ppo.mini_batches", 100000, "mini_batches is 100000, expected at most"),
        ("align.ridge", [-1.0], "align.ridge"),
        ("align.refine.horizon", 1.0, "did you mean 'horizons_s'?"),
    ],
)
def test_what_fits_nothing_is_named(tmp_path: Path, key: str, value: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_changed(tmp_path, key, value)
    assert message in str(caught.value)
    assert "Value error" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00", b"seed: 2026-13-45", b"seed: 0\nseed: 1", b"[" * 3000, b"- 1"]
)
def test_what_is_no_mapping_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "params.yaml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"params\.yaml: (not YAML|holds)"):
        load_params(tmp_path / "params.yaml")


def test_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_params(tmp_path)


def test_last_snapshot_is_kept_when_evaluations_do_not_divide_the_iterations() -> None:
    settings = PretrainSettings(iterations=150, evaluate_every=16)
    assert settings.snapshot_iterations() == [80, 96, 112, 128, 144, 150]


def test_a_robot_file_is_found_beside_params(tmp_path: Path) -> None:
    from asap_core.robots import get_profile
    from asap_core.robots.profile_file import write_profile
    from tasks.item_store import robot_version

    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    content["robot"] = "profiles/own.json"
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(ConfigError, match=r"own\.json: missing"):
        load_params(tmp_path / "params.yaml")
    write_profile(tmp_path / "profiles" / "own.json", get_profile("g1_23dof"), [])
    params = load_params(tmp_path / "params.yaml")
    assert get_profile(params.robot).joint_names == get_profile("g1_23dof").joint_names
    first = robot_version(params.robot)
    write_profile(tmp_path / "profiles" / "own.json", get_profile("g1_23dof"), ["a note"])
    assert robot_version(params.robot) != first
    assert robot_version("g1_23dof") == ""


def test_twin_may_run_in_another_engine(tmp_path: Path) -> None:
    ours, theirs = load_params(ROOT / "params.yaml"), load_changed(tmp_path, "collect.backend", "physx")
    assert (ours.target.backend, theirs.target.backend, theirs.simulation.backend) == ("mujoco", "physx", "mujoco")
    assert theirs.target.physics == ours.target.physics == ours.collect.twin.physics(ours.simulation.physics)
    assert theirs.target.physics != theirs.simulation.physics
    with pytest.raises(ConfigError, match=r"collect\.backend: .*'mujoco', 'physx'.*; found 'bullet'"):
        load_changed(tmp_path, "collect.backend", "bullet")
