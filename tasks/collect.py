"""Stage `collect`: snapshots of the policy act on the twin; what happens is written as rollouts."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import numpy as np

from asap_core.config import Params
from asap_core.environments.playback import perturbed_starts, play
from asap_core.environments.reference import ReferenceMotion
from asap_core.errors import StageError
from asap_core.files import atomic_dir, sha256_file, write_json
from asap_core.progress import track
from asap_core.robots import get_profile
from asap_core.rollouts import SPLITS, Rollout, Split, check_disjoint, concatenate, kind_folder, split_folder
from asap_core.rollouts.recorder import PolicyIdentity, to_rollout
from asap_core.simulators.factory import make_simulator
from asap_core.training.policy import OnnxPolicy
from tasks._training import named_reference

SOURCE = {"kind": "twin", "label": "twin, not a robot", "tool": "asap collect"}
"""Of every rollout, with the engine it was made in."""
_SEEDS_PER_SPLIT = 100


def run(params: Params, root: Path) -> dict[str, float | int | str]:
    """Roll the snapshots of models/pretrained out on the twin; writes data/rollouts/kind=twin.

    Raises:
        StageError: fewer snapshots than the splits ask for, or a split in which every run failed at once.
    """
    references = collected_references(params, root)
    snapshots = assign_snapshots(params, root / "models" / "pretrained" / "snapshots")
    folder = kind_folder(root, "twin")
    joined: dict[Split, Rollout] = {}
    files = []
    total = sum(map(len, snapshots.values())) * len(references)
    with atomic_dir(folder) as out, track("collect", total) as tracker:
        for split in SPLITS:
            split_folder(out, split).mkdir()
            recorded = []
            for number, (path, reference) in enumerate(product(snapshots[split], references)):
                rollout = _record(params, reference, path, split, number)
                rollout.save(split_folder(out, split) / f"{path.stem}_{reference.name}.parquet")
                recorded.append(rollout)
                files.append(_entry(split, path, rollout))
                tracker.advance(note=f"{split} {path.stem} {reference.name}")
            joined[split] = concatenate(recorded)
        check_disjoint(joined, folder)
        write_json(out / "manifest.json", {"source": source(params), "files": files})
    figures: dict[str, float | int | str] = {"target": SOURCE["label"]}
    return figures | {f"{split}_transitions": len(joined[split].transitions()) for split in SPLITS}


def source(params: Params) -> dict[str, str]:
    """Where the rollouts come from."""
    return {**SOURCE, "engine": params.target.backend}


def assign_snapshots(params: Params, folder: Path) -> dict[Split, list[Path]]:
    """The newest snapshots go to `heldout`, the next to `validation`, those before to `fit`.

    Raises:
        StageError: there are too few.
    """
    ordered = sorted(
        folder.glob("policy_[0-9]*.onnx"), key=lambda path: int(re.sub(r"\D", "", path.stem)), reverse=True
    )
    order: tuple[Split, ...] = ("heldout", "validation", "fit")
    needed = params.collect.num_snapshots
    if len(ordered) < needed:
        raise StageError(
            f"{folder}: found {len(ordered)} policy snapshots, expected {needed} (sum of collect.*.snapshots); "
            "lower collect.fit.snapshots or add shares to pretrain.snapshots"
        )
    assigned: dict[Split, list[Path]] = {}
    for split in order:
        count = params.collect.of(split).snapshots
        assigned[split], ordered = ordered[:count], ordered[count:]
    return assigned


def collected_references(params: Params, root: Path) -> list[ReferenceMotion]:
    """The motions that are rolled out, the walk last; the first is `motions.train` where none are named."""
    walk = params.collect.locomotion
    names = (*(params.collect.motions or (params.motions.train,)), *([walk.motion] if walk else []))
    return [named_reference(params, name, root) for name in dict.fromkeys(names)]


def _episodes(params: Params, reference: ReferenceMotion, split: Split) -> int:
    """Runs of one motion by each snapshot of a split."""
    settings, walk = params.collect, params.collect.locomotion
    tasks = settings.motions or (params.motions.train,)
    episodes = settings.of(split).episodes if reference.name in tasks else 0
    if walk is not None and reference.name == walk.motion:
        episodes += settings.locomotion_episodes(split, reference.length_s)
    return episodes


def _record(params: Params, reference: ReferenceMotion, path: Path, split: Split, number: int) -> Rollout:
    profile = get_profile(params.robot)
    policy = OnnxPolicy(path)
    policy.check(profile, reference)
    episodes = _episodes(params, reference, split)
    simulator = make_simulator(profile, params.target, episodes)
    frames = np.zeros(episodes, np.intp)
    seed = (params.seed * len(SPLITS) + SPLITS.index(split)) * _SEEDS_PER_SPLIT + number
    noise = params.collect.start_noise
    starts = perturbed_starts(reference, frames, seed, noise.joint_pos, noise.joint_vel)
    run = play(policy, policy.contract.rule, reference, profile, simulator, starts, frames)
    try:
        return to_rollout(run, reference, profile, PolicyIdentity(path.stem, sha256_file(path)), source(params))
    except ValueError as error:
        raise StageError(f"split {split}: {error}") from None


def _entry(split: Split, path: Path, rollout: Rollout) -> dict[str, object]:
    return {
        "split": split,
        "policy": path.stem,
        "policy_sha256": str(rollout.policy_sha256[0]),
        "motion": str(rollout.motion[0]),
        "episodes": len(np.unique(rollout.episode)),
        "transitions": len(rollout.transitions()),
    }
