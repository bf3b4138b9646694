"""A training session: iterate, evaluate, checkpoint, resume."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from asap_core.errors import InputFileError
from asap_core.files import make_folder, write_json
from asap_core.progress import say, tell_curve, track
from asap_core.training.checkpoint import load_checkpoint, save_checkpoint
from asap_core.training.contract import PolicyContract
from asap_core.training.evaluate import QuickScore
from asap_core.training.export import export_policy
from asap_core.training.ppo import IterationStats, PpoTrainer

History = list[dict[str, float]]


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(":")


class TrainingSession:
    """Runs a trainer to an iteration count and keeps everything it makes in `state_dir`, from which it resumes.

    A checkpoint is loaded back right after it was written: so an undisturbed run and a resumed one go on from the very
    same bits. Of several processes that train together, the first scores and writes for all.

    Args:
        trainer: learner and environment.
        contract: of the policies to be exported.
        state_dir: folder of checkpoint and exports; kept across kills.
        checkpoint_every: iterations between checkpoints.
        score: evaluates the present policy at each checkpoint, or None.
        snapshots: iterations, those of checkpoints, after which `snapshots/policy_<iteration>.onnx` is kept.
    """

    def __init__(
        self,
        trainer: PpoTrainer,
        contract: PolicyContract,
        state_dir: Path,
        checkpoint_every: int,
        score: Callable[[], QuickScore] | None = None,
        snapshots: Sequence[int] = (),
    ) -> None:
        self._trainer = trainer
        self._ranks = trainer.ranks
        self._contract = contract
        self._dir = state_dir
        self._every = checkpoint_every
        self._score = score
        self._snapshots = set(snapshots)
        self.history: History = []
        self.best: QuickScore | None = None
        self._told = False

    def run(self, iterations: int, description: str, curve: str = "training") -> None:
        """Train up to `iterations` in all; afterwards `state_dir` holds policy.onnx, checkpoint.pt, history.json.

        Listeners are told each iteration's figures as a step of `curve`.
        """
        make_folder(self._dir)
        self._trainer.env.guard.path = self._dir / f"exploded{self._ranks.rank or ''}.npz"
        if self._ranks.share((self._dir / "checkpoint.pt").exists()):
            self._resume(self._dir / "checkpoint.pt")
        done = self._trainer.iteration
        with track(description, iterations, done) as bar:
            while self._trainer.iteration < iterations:
                stats = self._trainer.iterate()
                self._tell_of_dump()
                self.history.append({k: float(v) for k, v in asdict(stats).items()})
                if stats.iteration % self._every == 0 or stats.iteration == iterations:
                    self._checkpoint()
                tell_curve(curve, stats.iteration, self.history[-1])
                bar.advance(1, self._note(stats))
        if self._ranks.first:
            write_json(self._dir / "history.json", self.history)

    def _tell_of_dump(self) -> None:
        guard = self._trainer.env.guard
        if guard.dumped and not self._told:
            say(f"a robot exploded; its last steps: asap show-dump {guard.path}")
            self._told = True

    def _note(self, stats: IterationStats) -> str:
        score = f" success {self.best.success:.2f} E_g {self.best.E_g_mpjpe:.0f} mm" if self.best else ""
        return f"covered {stats.share:.2f} limit {stats.distance_limit:.2f} m{score}"

    def _checkpoint(self) -> None:
        processes = self._ranks.gather(self._trainer.process_state())
        if self._ranks.first:
            self._keep(processes)
        self._ranks.share(None)
        self._restore(load_checkpoint(self._dir / "checkpoint.pt"))

    def _keep(self, processes: list[dict[str, Any]]) -> None:
        score = self._score() if self._score else None
        if score is not None:
            row = self.history[-1]
            row["success"], row["coverage"], row["E_g_mpjpe"] = score.success, score.coverage, score.E_g_mpjpe
        if score is None or score.better_than(self.best):
            self.best = score
            self._export(self._dir / "policy.onnx")
            self._save(self._dir / "best.pt", processes)
        if self._trainer.iteration in self._snapshots:
            self._export(self._dir / "snapshots" / f"policy_{self._trainer.iteration:06d}.onnx")
        self._save(self._dir / "checkpoint.pt", processes)

    def _export(self, path: Path) -> None:
        export_policy(self._trainer.actor, self._contract, path)

    def _save(self, path: Path, processes: list[dict[str, Any]]) -> None:
        extra: dict[str, Any] = {"history": self.history, "best": asdict(self.best) if self.best else None}
        save_checkpoint(path, self._trainer.state_dict(), processes, extra)

    def _resume(self, path: Path) -> None:
        try:
            self._restore(load_checkpoint(path))
        except (InputFileError, KeyError, RuntimeError) as error:
            reason = (
                error.reason if isinstance(error, InputFileError) else f"not of this training: {_first_line(error)}"
            )
            raise InputFileError(path, f"{reason}; delete {self._dir} to train anew") from None

    def _restore(self, content: dict[str, Any]) -> None:
        processes, size = content["processes"], self._ranks.world_size
        if len(processes) != size:
            raise RuntimeError(f"it was trained by {len(processes)} processes, now there are {size}")
        self._trainer.load_state_dict(content["learner"])
        self._trainer.load_process_state(processes[self._ranks.rank])
        self.history = list(content["extra"]["history"])
        best = content["extra"]["best"]
        self.best = QuickScore(**best) if best else None
