"""A policy as deployed: an ONNX file with its contract, run by onnxruntime on a CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asap_core.environments.observations import ObservationLayout
from asap_core.environments.reference import ReferenceMotion
from asap_core.errors import ContractError, InputFileError
from asap_core.robots.profile import RobotProfile
from asap_core.training.contract import METADATA_KEY, PolicyContract


class OnnxPolicy:
    """Call with observations (N, W) float32, get raw actions (N, J) float32. Deterministic.

    Args:
        path: the ONNX file.
        contract: of a policy that carries none, as those of the paper; else it is read from the metadata.

    Raises:
        InputFileError: missing or not an ONNX model.
        ContractError: no contract in the metadata.
    """

    def __init__(self, path: Path | str, contract: PolicyContract | None = None) -> None:
        import onnxruntime

        if not Path(path).is_file():
            raise InputFileError(path, "missing; expected an ONNX policy")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has no public base of its errors
            raise InputFileError(path, f"not a readable ONNX model: {str(error).splitlines()[0]}") from None
        self._path = str(path)
        self.contract = contract or self._own_contract()
        self._input = self._session.get_inputs()[0]

    def _own_contract(self) -> PolicyContract:
        metadata = self._session.get_modelmeta().custom_metadata_map
        if METADATA_KEY not in metadata:
            raise ContractError(
                f"{self._path}: metadata has no {METADATA_KEY!r}; found: {', '.join(sorted(metadata)) or 'none'}"
            )
        return PolicyContract.from_json(metadata[METADATA_KEY], self._path)

    def check(self, profile: RobotProfile, reference: ReferenceMotion) -> None:
        """Refuse to act on another robot, at another rate or after another motion.

        Raises:
            ContractError: the contract differs, or the network's widths are not those of the contract.
        """
        self.contract.check(profile, reference, self._path)
        layout = ObservationLayout(self.contract.observation, profile)
        ends = (self._session.get_inputs()[0], self._session.get_outputs()[0])
        for end, wanted in zip(ends, (layout.width, len(profile.joint_names)), strict=True):
            if len(end.shape) != 2 or end.shape[1] != wanted:
                raise ContractError(f"{self._path}: {end.name} has shape {end.shape}, expected (N, {wanted})")

    def __call__(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        """Raw actions (N, J); row by row where the network takes one row only."""
        rows = [row[None] for row in observation] if self._input.shape[0] == 1 else [observation]
        return np.concatenate([self._session.run(None, {self._input.name: part})[0] for part in rows])
