"""Registration is idempotent by content, follows the gate, and comes back from the manifest."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from asap_core.errors import ContractError, InputFileError
from asap_core.files import read_json, sha256_file, write_json
from tasks import register
from tasks.mlflow_client import open_client
from tasks.registry import find_alias, list_models, read_manifest, sync

PARAMS: Any = SimpleNamespace(robot="g1", motions=SimpleNamespace(train="squat"))
INTERVALS = {"E_g_mpjpe_vs_vanilla": [-0.2, 0.05]}


def write_model(path: Path, gain: float, contract: str | None = '{"gain": 1}') -> None:
    """An ONNX file computing gain * obs, 3 wide."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    node = helper.make_node("Mul", ["obs", "gain"], ["action"])
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in ("obs", "action")]
    weight = numpy_helper.from_array(np.float32(gain), "gain")
    model = helper.make_model(helper.make_graph([node], "m", values[:1], values[1:], [weight]))
    model.ir_version = 10
    model.opset_import[0].version = 17
    if contract is not None:
        helper.set_model_props(model, {"asap_contract": contract})
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(path))


@pytest.fixture(scope="module")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow database with its tables and no rows, which takes seconds to make."""
    root = tmp_path_factory.mktemp("empty")
    open_client(root).search_experiments()
    return root / ".asap" / "mlflow.db"


@pytest.fixture
def project(tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose stages up to `evaluate` have run; seed 1 is the best of `asap`."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    (tmp_path / ".asap").mkdir()
    shutil.copyfile(empty_database, tmp_path / ".asap" / "mlflow.db")
    write_model(tmp_path / "models/pretrained/policy.onnx", 1.0)
    write_model(tmp_path / "models/finetuned/finetune_only/seed_0/policy.onnx", 2.0)
    write_model(tmp_path / "models/finetuned/asap/seed_1/policy.onnx", 3.0)
    write_model(tmp_path / "models/delta/delta.onnx", 0.1)
    evaluate(tmp_path, "granted")
    return tmp_path


def evaluate(root: Path, verdict: str) -> None:
    gate = {"verdict": verdict, "reason": f"{verdict} by the test", "intervals": INTERVALS}
    write_json(root / "evaluation/metrics.json", {"best_seed_asap": 1, "best_seed_finetune_only": 0, "gate": gate})


def versions(root: Path) -> dict[tuple[str, str], str]:
    return {(row["model"], row["arm"]): row["aliases"] for row in list_models(root)}


def sync_in_new_process(root: Path) -> tuple[dict[str, int], dict[str, int], list[dict[str, str]]]:
    """Two syncs and a listing; MLflow keeps connections to a deleted database within one process."""
    code = (
        "import json, pathlib, sys; from tasks.registry import list_models, sync; root = pathlib.Path(sys.argv[1]);"
        "print(json.dumps([sync(root), sync(root), list_models(root)]))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(root)], capture_output=True, text=True, check=True)
    first, second, rows = json.loads(done.stdout)
    return first, second, rows


def test_database_is_put_in_place_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MLflow cannot go on with half of its tables, which a full disk or a kill would leave."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    import mlflow

    def break_off(client: Any, **_: Any) -> None:
        Path(client.tracking_uri.removeprefix("sqlite:///")).write_text("half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(mlflow.MlflowClient, "search_experiments", break_off)
        with pytest.raises(OSError, match="No space"):
            open_client(tmp_path)
    assert not any((tmp_path / ".asap").iterdir())
    left = tmp_path / ".asap" / ".partial-mlflow.db-killed"
    left.write_text("half")
    os.utime(left, (0, 0))
    open_client(tmp_path)
    assert [path.name for path in (tmp_path / ".asap").iterdir()] == ["mlflow.db"]


def test_registering_twice_adds_no_version(project: Path) -> None:
    first = register.run(PARAMS, project)
    manifest = (project / "registry/manifest.json").read_bytes()
    second = register.run(PARAMS, project)
    assert (first["added"], first["kept"]) == (4, 0)
    assert (second["added"], second["kept"], second["aliases"]) == (0, 4, 0)
    assert (project / "registry/manifest.json").read_bytes() == manifest
    assert versions(project) == {
        ("g1-squat", "vanilla"): "",
        ("g1-squat", "finetune_only"): "",
        ("g1-squat", "asap"): "candidate, deployable",
        ("g1-squat-delta", "delta"): "candidate",
    }


@pytest.mark.parametrize("verdict", ["accepted", "rejected"])
def test_the_verdict_on_a_delta_is_stored_with_it(project: Path, verdict: str) -> None:
    write_json(project / "models" / "delta" / "report.json", {"acceptance": {"verdict": verdict, "checks": []}})
    register.run(PARAMS, project)
    client = open_client(project)
    tags = {m.name: client.get_model_version(m.name, "1").tags for m in client.search_registered_models()}
    assert tags["g1-squat-delta"]["acceptance"] == verdict
    assert "acceptance" not in tags["g1-squat"]


def test_deleted_database_comes_back(project: Path) -> None:
    register.run(PARAMS, project)
    before = list_models(project)
    shutil.rmtree(project / ".asap")
    first, second, rows = sync_in_new_process(project)
    assert first["added"] == 4
    assert second == {"added": 0, "kept": 4, "aliases": 0}
    assert rows == before


def test_lost_artefacts_are_registered_again(project: Path) -> None:
    register.run(PARAMS, project)
    shutil.rmtree(project / ".asap" / "mlartifacts")
    assert sync(project)["added"] == 4
    assert len(list_models(project)) == 4


def test_loaded_model_computes_and_keeps_its_contract(project: Path) -> None:
    import mlflow

    register.run(PARAMS, project)
    open_client(project)
    model = mlflow.onnx.load_model("models:/g1-squat@candidate")
    assert {entry.key: entry.value for entry in model.metadata_props}["asap_contract"] == '{"gain": 1}'
    predict = mlflow.pyfunc.load_model("models:/g1-squat@candidate").predict
    np.testing.assert_array_equal(predict({"obs": np.ones((2, 3), np.float32)})["action"], np.full((2, 3), 3.0))
    with pytest.raises(mlflow.exceptions.MlflowException, match="schema"):
        predict({"obs": np.ones((2, 4), np.float32)})


def test_refused_policy_leaves_the_deployable_one_and_says_why(project: Path) -> None:
    register.run(PARAMS, project)
    old = sha256_file(project / "models/finetuned/asap/seed_1/policy.onnx")
    write_model(project / "models/finetuned/asap/seed_1/policy.onnx", 4.0)
    evaluate(project, "refused")
    figures = register.run(PARAMS, project)
    assert figures["deployable"] == "refused"
    manifest = read_manifest(project)
    assert manifest.gate.intervals == INTERVALS
    assert [e.sha256 for e in manifest.models if "deployable" in e.aliases] == [old]
    assert [e.arm for e in manifest.models if "candidate" in e.aliases] == ["asap", "delta"]
    shutil.rmtree(project / ".asap")
    first, _, rows = sync_in_new_process(project)
    assert first["added"] == 5
    assert [row["sha256"] for row in rows if row["aliases"] == "deployable"] == [old[:12]]


def test_refused_from_the_start_sets_no_deployable(project: Path) -> None:
    evaluate(project, "refused")
    register.run(PARAMS, project)
    assert find_alias(open_client(project), "g1-squat", "deployable") is None
    assert find_alias(open_client(project), "g1-squat-delta", "deployable") is None


def test_lineage_tags_and_foreign_run_id(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_RUN_ID", "0" * 32)
    lock = {"schema": "2.0", "stages": {"pretrain": {"outs": [{"path": "models/pretrained", "md5": "abc.dir"}]}}}
    (project / "dvc.lock").write_text(json.dumps(lock))
    (project / "params.yaml").write_text("seed: 0\n")
    register.run(PARAMS, project)
    version = find_alias(open_client(project), "g1-squat", "candidate")
    assert version is not None
    assert version.tags["dvc:models/pretrained"] == "abc.dir"
    assert version.tags["params_sha256"] == sha256_file(project / "params.yaml")
    assert version.tags["git_commit"] == "none"


def test_model_without_contract_is_refused(project: Path) -> None:
    write_model(project / "models/delta/delta.onnx", 0.1, contract=None)
    with pytest.raises(ContractError, match=r"delta\.onnx.*asap_contract"):
        register.run(PARAMS, project)
    assert not (project / "registry").exists()


def test_changed_file_is_not_synced(project: Path) -> None:
    register.run(PARAMS, project)
    entry = read_manifest(project).models[0]
    write_model(project / entry.file, 9.0)
    with pytest.raises(InputFileError, match="sha256: found"):
        sync(project)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gate": None}, "field gate"),
        ({"gate": {"verdict": "maybe", "reason": ""}}, "field gate.verdict"),
    ],
)
def test_malformed_gate_names_the_field(project: Path, change: dict[str, Any], message: str) -> None:
    path = project / "evaluation/metrics.json"
    write_json(path, {**read_json(path), **change})
    with pytest.raises(InputFileError, match=message):
        register.run(PARAMS, project)
