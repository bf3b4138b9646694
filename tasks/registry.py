"""The model registry: what MLflow holds, rebuilt at any time from `registry/manifest.json` and the files beside it.

A version is known by the sha256 of its ONNX file, so registering the same content again adds nothing.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote, urlparse

from pydantic import Field, ValidationError

from asap_core.errors import ContractError, InputFileError, StageError
from asap_core.files import read_json, sha256_file
from asap_core.settings import Settings
from tasks.item_store import ItemStore
from tasks.mlflow_client import clear_errors, experiment_id, is_empty, open_client

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion

CONTRACT_KEY = "asap_contract"
MANIFEST = Path("registry/manifest.json")
_STORED_NAME = "model.onnx"
Alias = Literal["candidate", "deployable"]


class ModelEntry(Settings):
    """One version of a registered model."""

    model: str
    """Registered name."""
    kind: Literal["policy", "delta"]
    arm: str
    """How it was made: `vanilla`, `finetune_only`, `asap` or `delta`."""
    file: str
    """ONNX file, relative to the project root."""
    sha256: str
    contract_sha256: str
    aliases: tuple[Alias, ...] = ()
    tags: dict[str, str]
    """Lineage."""


class GateDecision(Settings):
    """Whether `deployable` moved, as evaluation decided it, with the intervals that decided."""

    verdict: Literal["granted", "refused"]
    reason: str
    intervals: dict[str, Any] = Field(default_factory=dict)


class Manifest(Settings):
    """`registry/manifest.json`."""

    format_version: Literal[1] = 1
    models: tuple[ModelEntry, ...]
    """Oldest first: the order in which an empty registry is filled."""
    gate: GateDecision


def read_manifest(root: Path) -> Manifest:
    """The manifest of the project at `root`.

    Raises:
        InputFileError: missing or malformed.
    """
    path = root / MANIFEST
    if not path.exists():
        raise InputFileError(path, "missing; `dvc repro register` writes it")
    try:
        return Manifest.model_validate(read_json(path))
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(str(part) for part in problem["loc"]) or "models"
        raise InputFileError(path, f"field {field}: {problem['msg']}; found {problem['input']!r}") from None


def read_contract(path: Path) -> str:
    """The contract (JSON text) in the metadata of an ONNX file.

    Raises:
        InputFileError: missing or not ONNX.
        ContractError: it carries no contract.
    """
    import onnx

    if not path.exists():
        raise InputFileError(path, "missing")
    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:
        raise InputFileError(path, f"not ONNX: {error}") from None
    for entry in model.metadata_props:
        if entry.key == CONTRACT_KEY:
            return str(entry.value)
    raise ContractError(f"{path}: metadata_props has no {CONTRACT_KEY!r}; export the model with its contract")


def contract_digest(path: Path) -> str:
    """sha256 of an ONNX file's contract."""
    return hashlib.sha256(read_contract(path).encode()).hexdigest()


def find_version(client: MlflowClient, model: str, sha256: str) -> ModelVersion | None:
    """The version of `model` with this content, if it is registered."""
    versions = client.search_model_versions(f"name='{model}' and tags.sha256='{sha256}'")
    return versions[0] if versions else None


def find_alias(client: MlflowClient, model: str, alias: Alias) -> ModelVersion | None:
    """The version of `model` that `alias` points at, if any."""
    from mlflow.exceptions import MlflowException

    try:
        return client.get_model_version_by_alias(model, alias)
    except MlflowException:
        return None


def artifact_file(client: MlflowClient, version: ModelVersion) -> Path | None:
    """The ONNX file of a version in a local artefact store; None if it is gone or lies elsewhere."""
    location = urlparse(client.get_model_version_download_uri(version.name, version.version))
    if location.scheme not in ("", "file"):
        return None
    path = Path(unquote(location.path)) / _STORED_NAME
    return path if path.exists() else None


def registered_file(client: MlflowClient, version: ModelVersion, root: Path) -> Path | None:
    """The very bytes that were registered as `version`; None if neither item store nor artefact store holds them."""
    sha256 = version.tags.get("sha256", "")
    artifact = artifact_file(client, version)
    if not sha256 or artifact is None:
        return None
    path = ItemStore(root).get_or_make(sha256, lambda folder: _copy(artifact, folder)) / _STORED_NAME
    return path if sha256_file(path) == sha256 else None


def sync(root: Path) -> dict[str, int]:
    """Bring MLflow to what the manifest says: missing versions are registered, aliases set. A second call adds nothing.

    Returns:
        Counts: `added` versions, `kept` versions, `aliases` that moved.

    Raises:
        InputFileError: the manifest or a model file is missing, or a file is not the one that the manifest names.
        StageError: the store cannot be reached or written.
    """
    manifest = read_manifest(root)
    for entry in manifest.models:
        _check_file(entry, root)
    with clear_errors(root):
        return _sync(manifest, root)


def _sync(manifest: Manifest, root: Path) -> dict[str, int]:
    client = open_client(root)
    counts = {"added": 0, "kept": 0, "aliases": 0}
    for entry in manifest.models:
        version = find_version(client, entry.model, entry.sha256)
        if version is not None and _is_lost(client, version):
            client.delete_model_version(entry.model, version.version)
            version = None
        counts["kept" if version is not None else "added"] += 1
        version = version or _register(client, entry, root)
        counts["aliases"] += sum(_point(client, entry.model, alias, version) for alias in entry.aliases)
    return counts


def list_models(root: Path) -> list[dict[str, str]]:
    """Every registered version: name, version, arm, aliases, first 12 digits of the content, git commit.

    Raises:
        StageError: there is no database yet, or the store cannot be read.
    """
    if is_empty(root):
        raise StageError(
            f"{root / '.asap' / 'mlflow.db'}: missing; `dvc repro` registers models, "
            f"`asap models sync` rebuilds it from {MANIFEST}"
        )
    with clear_errors(root):
        return _version_rows(open_client(root))


def _version_rows(client: MlflowClient) -> list[dict[str, str]]:
    rows = []
    for model in client.search_registered_models():
        for version in client.search_model_versions(f"name='{model.name}'"):
            aliases = sorted(alias for alias, number in model.aliases.items() if str(number) == str(version.version))
            tags = version.tags
            rows.append(
                {
                    "model": model.name,
                    "version": str(version.version),
                    "arm": tags.get("arm", ""),
                    "aliases": ", ".join(aliases),
                    "sha256": tags.get("sha256", "")[:12],
                    "git_commit": tags.get("git_commit", "")[:12],
                }
            )
    return sorted(rows, key=lambda row: (row["model"], int(row["version"])))


def _copy(path: Path, folder: Path) -> None:
    shutil.copyfile(path, folder / _STORED_NAME)


def _check_file(entry: ModelEntry, root: Path) -> None:
    path = root / entry.file
    if not path.exists():
        raise InputFileError(path, f"missing; {MANIFEST} names it. `dvc checkout registry` restores it")
    if (found := sha256_file(path)) != entry.sha256:
        raise InputFileError(path, f"sha256: found {found}, expected {entry.sha256} as {MANIFEST} says")


def _is_lost(client: MlflowClient, version: ModelVersion) -> bool:
    """A version in a local artefact store whose files were deleted."""
    location = urlparse(client.get_model_version_download_uri(version.name, version.version))
    return location.scheme in ("", "file") and artifact_file(client, version) is None


def _point(client: MlflowClient, model: str, alias: Alias, version: ModelVersion) -> bool:
    current = find_alias(client, model, alias)
    if current is not None and str(current.version) == str(version.version):
        return False
    client.set_registered_model_alias(model, alias, version.version)
    return True


def _register(client: MlflowClient, entry: ModelEntry, root: Path) -> ModelVersion:
    import onnx

    path = root / entry.file
    ItemStore(root).get_or_make(entry.sha256, lambda folder: _copy(path, folder))
    graph = onnx.load(str(path))
    run_id, source = _log_model(client, entry, graph, read_contract(path), root)
    if not client.search_registered_models(f"name='{entry.model}'"):
        client.create_registered_model(entry.model)
    digests = {"sha256": entry.sha256, "contract_sha256": entry.contract_sha256}
    tags = {**entry.tags, **digests, "kind": entry.kind, "arm": entry.arm}
    return client.create_model_version(entry.model, source=source, run_id=run_id, tags=tags)


def _log_model(client: MlflowClient, entry: ModelEntry, graph: Any, contract: str, root: Path) -> tuple[str, str]:
    """Log the model in a run of its own; returns run id and model URI."""
    import mlflow

    experiment = mlflow.set_experiment(experiment_id=experiment_id(client, root)).experiment_id
    run = client.create_run(experiment, run_name=f"register {entry.arm}", tags={"stage": "register"})
    with mlflow.start_run(run_id=run.info.run_id):
        logged = mlflow.onnx.log_model(
            graph,
            name=entry.arm,
            signature=_signature(graph),
            metadata={"contract": contract},
            onnx_execution_providers=["CPUExecutionProvider"],
            save_as_external_data=False,
            pip_requirements=["onnx", "onnxruntime"],
        )
    return run.info.run_id, logged.model_uri


def _signature(graph: Any) -> Any:
    """Inputs and outputs by name, type and width; the batch axis is free."""
    import numpy as np
    import onnx
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema, TensorSpec

    def spec(value: Any) -> ColSpec | TensorSpec:
        tensor = value.type.tensor_type
        dims = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor.shape.dim]
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        return TensorSpec(dtype, tuple(dims), name=value.name)

    inputs, outputs = ([spec(value) for value in values] for values in (graph.graph.input, graph.graph.output))
    return ModelSignature(inputs=Schema(inputs), outputs=Schema(outputs))
