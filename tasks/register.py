"""Stage `register`: the policies and the delta model of this project become versions in the registry.

`registry/` receives the manifest and a copy of every model it names, so that it alone rebuilds an empty database.
`candidate` points at the newest policy and delta model; `deployable` moves only when evaluation granted it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from asap_core.errors import InputFileError
from asap_core.files import atomic_dir, read_object, sha256_file, write_json
from tasks.lineage import lineage_tags
from tasks.mlflow_client import clear_errors, open_client
from tasks.registry import (
    MANIFEST,
    Alias,
    GateDecision,
    Manifest,
    ModelEntry,
    contract_digest,
    find_alias,
    find_version,
    registered_file,
    sync,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient

    from asap_core.config import Params
    from tasks.stages import Figures

_METRICS = Path("evaluation/metrics.json")
_MODELS = Path("registry/models")
DEPLOYED_ARM = "asap"
"""The arm that may become deployable."""


def run(params: Params, root: Path) -> Figures:
    """Write `registry/` and bring MLflow to it.

    Raises:
        InputFileError: evaluation's figures or a model are missing or malformed.
        ContractError: a model carries no contract.
    """
    metrics = read_object(root / _METRICS)
    gate = _read_gate(metrics, root / _METRICS)
    model = f"{params.robot}-{params.motions.train}"
    sources = _sources(metrics, root)
    with clear_errors(root):
        entries = _write_registry(model, sources, gate, root)
    counts = sync(root)
    return {**counts, "models": len(entries), "deployable": gate.verdict, "deployable_reason": gate.reason}


def _write_registry(model: str, sources: dict[str, Path], gate: GateDecision, root: Path) -> list[ModelEntry]:
    """Write `registry/`; returns what its manifest names."""
    client = open_client(root)
    tags = lineage_tags(root)
    of_arm = {"delta": tags | _acceptance_tag(root)}
    entries = [_entry(client, model, arm, path, gate, of_arm.get(arm, tags)) for arm, path in sources.items()]
    files = {entry.sha256: path for entry, path in zip(entries, sources.values(), strict=True)}
    kept = _kept_deployable(client, model, gate, root)
    if kept is not None:
        entry, path = kept
        entries = _with_kept(entries, entry)
        files.setdefault(entry.sha256, path)
    _write(Manifest(models=tuple(entries), gate=gate), files, root)
    return entries


def _read_gate(metrics: Any, path: Path) -> GateDecision:
    try:
        return GateDecision.model_validate(metrics["gate"])
    except KeyError:
        raise InputFileError(path, "field gate: missing; `dvc repro evaluate` writes it") from None
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(("gate", *map(str, problem["loc"])))
        raise InputFileError(path, f"field {field}: {problem['msg']}; found {problem['input']!r}") from None


def _sources(metrics: dict[str, Any], root: Path) -> dict[str, Path]:
    """Arm → ONNX file; of the fine-tuned arms, the seed that evaluation found best."""

    def finetuned(arm: str) -> Path:
        return root / "models" / "finetuned" / arm / f"seed_{metrics.get(f'best_seed_{arm}', 0)}" / "policy.onnx"

    return {
        "vanilla": root / "models" / "pretrained" / "policy.onnx",
        "finetune_only": finetuned("finetune_only"),
        "asap": finetuned("asap"),
        "delta": root / "models" / "delta" / "delta.onnx",
    }


def _acceptance_tag(root: Path) -> dict[str, str]:
    """Whether the delta model may be fine-tuned with; models of before acceptance existed say nothing."""
    path = root / "models" / "delta" / "report.json"
    report = read_object(path) if path.exists() else {}
    return {"acceptance": str(report["acceptance"]["verdict"])} if "acceptance" in report else {}


def _entry(
    client: MlflowClient, model: str, arm: str, path: Path, gate: GateDecision, tags: dict[str, str]
) -> ModelEntry:
    kind: Literal["policy", "delta"] = "delta" if arm == "delta" else "policy"
    name = f"{model}-delta" if kind == "delta" else model
    contract = contract_digest(path)
    sha256 = sha256_file(path)
    aliases: list[Alias] = ["candidate"] if arm in (DEPLOYED_ARM, "delta") else []
    if arm == DEPLOYED_ARM and gate.verdict == "granted":
        aliases.append("deployable")
    known = find_version(client, name, sha256)
    return ModelEntry(
        model=name,
        kind=kind,
        arm=arm,
        file=(_MODELS / f"{sha256}.onnx").as_posix(),
        sha256=sha256,
        contract_sha256=contract,
        aliases=tuple(aliases),
        tags=_lineage_of(known.tags) if known is not None else tags,
    )


def _lineage_of(tags: dict[str, str]) -> dict[str, str]:
    """A version keeps the lineage under which it was first registered."""
    return {key: value for key, value in tags.items() if key not in ("sha256", "contract_sha256", "kind", "arm")}


def _kept_deployable(
    client: MlflowClient, model: str, gate: GateDecision, root: Path
) -> tuple[ModelEntry, Path] | None:
    """The version that stays deployable because this one was refused."""
    version = find_alias(client, model, "deployable") if gate.verdict == "refused" else None
    path = registered_file(client, version, root) if version is not None else None
    if version is None or path is None:
        return None
    entry = ModelEntry(
        model=model,
        kind="policy",
        arm=version.tags["arm"],
        file=(_MODELS / f"{version.tags['sha256']}.onnx").as_posix(),
        sha256=version.tags["sha256"],
        contract_sha256=version.tags["contract_sha256"],
        aliases=("deployable",),
        tags=_lineage_of(version.tags),
    )
    return entry, path


def _with_kept(entries: list[ModelEntry], kept: ModelEntry) -> list[ModelEntry]:
    """`kept` first, unless one of `entries` is the same content, which then stays deployable itself."""
    for number, entry in enumerate(entries):
        if (entry.model, entry.sha256) == (kept.model, kept.sha256):
            entries[number] = entry.model_copy(update={"aliases": (*entry.aliases, "deployable")})
            return entries
    return [kept, *entries]


def _write(manifest: Manifest, files: dict[str, Path], root: Path) -> None:
    with atomic_dir(root / MANIFEST.parent) as folder:
        (folder / _MODELS.name).mkdir()
        for sha256, path in files.items():
            shutil.copyfile(path, folder / _MODELS.name / f"{sha256}.onnx")
        write_json(folder / MANIFEST.name, manifest.model_dump(mode="json"))
