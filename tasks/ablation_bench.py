"""`asap bench ablation-…`: what the delta's fit depends on, and the paper's comparison with random action noise."""

from __future__ import annotations

from pathlib import Path

from asap_core.evaluation.ablation_bench.bench import Places, bench, shown
from asap_core.evaluation.closed_loop_bench.arms import NOISE_LEVELS
from asap_core.robots import get_profile
from asap_core.training.ppo import use_threads
from tasks.bench_places import ALIGNMENT_CODE, shared_folder
from tasks.closed_loop_bench import bench_closed_loop
from tasks.item_store import code_version
from tasks.stages import Figures, read_params

TARGET, FOLD = "altered", "0"
"""What an ablation runs on if nothing is named."""
_CODE = (*ALIGNMENT_CODE, "asap_core/evaluation/ablation_bench")
_NOISE_ARMS = ("oracle", "vanilla", "finetune_only", "asap", *NOISE_LEVELS)


def bench_ablation(name: str, root: Path, targets: str = TARGET, folds: str = FOLD) -> Figures:
    """Ablation `name` of `ABLATIONS`: the share of the open-loop error closed; resumes.

    Args:
        targets, folds: names with commas between them.

    Raises:
        UnknownNameError: no such ablation, target or fold.
        InputFileError: the shared policies are missing.
    """
    params = read_params(root)
    use_threads(params.simulation.threads)
    places = Places(
        shared=shared_folder(root),
        cache=root / ".asap" / "ablation_bench",
        code=code_version(*_CODE),
        out=root / "evaluation" / "ablations",
    )
    profile = get_profile("g1_23dof")
    return dict(
        shown(bench(name, targets.split(","), folds.split(","), profile, params.simulation, params.align, places))
    )


def bench_action_noise(
    root: Path, targets: str = TARGET, motions: str | None = None, seeds: int = 3, iterations: int = 40
) -> Figures:
    """The paper's Fig. 11 in the closed loop: fine-tuning with noise of several sizes, beside ASAP and its controls.

    Arguments, errors and files as of `bench_closed_loop`, whose cells it shares; results in evaluation/ablations.
    """
    out = root / "evaluation" / "ablations" / "action_noise"
    return bench_closed_loop(root, targets, motions, ",".join(_NOISE_ARMS), seeds, iterations, out)
