"""Two processes under torchrun, on a CPU over Gloo: one policy, different robots, exact resume; and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from asap_core.errors import InputFileError
from asap_core.training.checkpoint import load_checkpoint
from asap_core.training.ranks import Ranks
from asap_core.training.session import TrainingSession
from tests.training.test_training import contract, make_trainer

TOP = Path(__file__).resolve().parents[2]
TRAIN = """
import sys
from pathlib import Path
import torch
from asap_core.training.ppo import PpoTrainer
from asap_core.training.ranks import join_ranks
from asap_core.training.session import TrainingSession
from tests.training.test_training import PPO, contract, make_trainer
folder, iterations = Path(sys.argv[1]), int(sys.argv[2])
ranks = join_ranks("cpu")
env = make_trainer(seed=ranks.seed_offset).env
trainer = PpoTrainer(env, PPO, 7, ranks)
TrainingSession(trainer, contract(), folder, 2).run(iterations, "two")
torch.save(trainer.actor.state_dict(), folder / f"actor_{ranks.rank}.pt")
"""


def train(folder: Path, iterations: int) -> None:
    folder.mkdir(exist_ok=True)
    script = folder.parent / "train.py"
    script.write_text(TRAIN)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    environment = {**os.environ, "PYTHONPATH": str(TOP), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*launch, str(script), str(folder), str(iterations)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]


def flat(folder: Path, rank: int) -> torch.Tensor:
    state = torch.load(folder / f"actor_{rank}.pt", weights_only=True)
    return torch.cat([value.flatten().double() for _, value in sorted(state.items())])


@pytest.mark.slow
def test_two_processes_train_one_policy_and_resume_exactly(tmp_path: Path) -> None:
    train(tmp_path / "straight", 4)
    assert torch.equal(flat(tmp_path / "straight", 0), flat(tmp_path / "straight", 1))
    content = load_checkpoint(tmp_path / "straight" / "checkpoint.pt")
    first, second = (process["environment"] for process in content["processes"])
    assert abs(first["robots"]["joint_pos"] - second["robots"]["joint_pos"]).max() > 1e-3
    assert first["curriculum"] == second["curriculum"]
    assert content["extra"]["history"][-1]["steps"] == 4 * 6 * 8 * 2
    train(tmp_path / "halves", 2)
    train(tmp_path / "halves", 4)
    assert torch.equal(flat(tmp_path / "straight", 0), flat(tmp_path / "halves", 0))
    with pytest.raises(InputFileError, match="trained by 2 processes, now there are 1"):
        TrainingSession(make_trainer(), contract(), tmp_path / "straight", 2).run(6, "alone")


def test_a_process_alone_shares_with_itself() -> None:
    alone = Ranks()
    assert (alone.first, alone.multi_gpu, alone.seed_offset) == (True, None, 0)
    assert (alone.gather("a"), alone.share("b")) == (["a"], "b")
    assert alone.device("cuda") == "cuda"


def test_each_process_has_a_device_and_seeds_of_its_own() -> None:
    second = Ranks(1, 4)
    assert second.multi_gpu == {"global_rank": 1, "local_rank": 1, "world_size": 4}
    assert (second.device("cuda"), second.device("cpu"), second.first) == ("cuda:1", "cpu", False)
    assert second.seed_offset != Ranks(2, 4).seed_offset != 0
