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

    Raises:
        InputFileError: missing or not an ONNX model.
        ContractError: no contract in the metadata.
    """

    def __init__(self, path: Path | str) -> None:
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
        metadata = self._session.get_modelmeta().custom_metadata_map
        if METADATA_KEY not in metadata:
            raise ContractError(
                f"{path}: metadata has no {METADATA_KEY!r}; found: {', '.join(sorted(metadata)) or 'none'}"
            )
        self.contract = PolicyContract.from_json(metadata[METADATA_KEY], str(path))
        self._path = str(path)
        self._input = self._session.get_inputs()[0].name

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
        """Raw actions (N, J)."""
        return self._session.run(None, {self._input: observation})[0]
