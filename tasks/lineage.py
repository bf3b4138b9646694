"""Where a model comes from: git commit, hashes that DVC locked, digest of the parameters."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml

from asap_core.files import sha256_file


def git_commit(root: Path) -> str:
    """The commit checked out at `root`, with `-dirty` when tracked files differ; `none` outside a git repository."""
    command = ["git", "-C", str(root), "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "none"


def dvc_hashes(root: Path) -> dict[str, str]:
    """Output path → md5 of every output that `dvc.lock` records."""
    try:
        lock = yaml.safe_load((root / "dvc.lock").read_text()) or {}
    except FileNotFoundError:
        return {}
    outputs = (out for stage in lock.get("stages", {}).values() for out in stage.get("outs", []))
    return {str(out["path"]): str(out["md5"]) for out in outputs if "md5" in out}


def lineage_tags(root: Path) -> dict[str, str]:
    """Tags for a model version made now from the project at `root`; MLflow allows no `=` in their names."""
    outputs = {path: digest for path, digest in dvc_hashes(root).items() if path.startswith(("data/", "models/"))}
    tags = {f"dvc:{path.replace('=', ':')}": digest for path, digest in outputs.items()}
    params = root / "params.yaml"
    return {
        "git_commit": git_commit(root),
        **({"params_sha256": sha256_file(params)} if params.exists() else {}),
        **tags,
    }
