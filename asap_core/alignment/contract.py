"""The delta model as a file: ONNX with its contract in the metadata, checked whenever it is loaded."""

from __future__ import annotations

import copy
import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from asap_core.alignment.delta_model import DeltaActionModel, DeltaCorrection
from asap_core.alignment.features import INPUTS, WIDTHS
from asap_core.errors import ContractError, InputFileError
from asap_core.files import atomic_file
from asap_core.robots.profile import RobotProfile

KIND = "delta_action_model"
VERSION = 3
"""Of the input layout; models of 3 act at each physics step, those before were held for a control step."""
METADATA_KEY = "asap_contract"
OUTPUT = "joint_delta"
_OPSET = 17


@dataclass(frozen=True)
class DeltaContract:
    """What a delta model was made for. Gains and limits are per joint, in the order of `joint_names`."""

    robot: str
    joint_names: tuple[str, ...]
    kp: tuple[float, ...]
    kd: tuple[float, ...]
    joint_lower: tuple[float, ...]
    joint_upper: tuple[float, ...]
    joint_torque_limit: tuple[float, ...]
    control_dt: float
    delta_limit: float
    """rad."""
    name: str
    """Which candidate it is."""

    @classmethod
    def of(cls, profile: RobotProfile, control_dt: float, delta_limit: float, name: str) -> DeltaContract:
        """The contract of a model that is fitted on `profile`."""
        return cls(
            robot=profile.name,
            joint_names=tuple(profile.joint_names),
            kp=tuple(profile.kp.tolist()),
            kd=tuple(profile.kd.tolist()),
            joint_lower=tuple(profile.joint_lower.tolist()),
            joint_upper=tuple(profile.joint_upper.tolist()),
            joint_torque_limit=tuple(profile.joint_torque_limit.tolist()),
            control_dt=control_dt,
            delta_limit=delta_limit,
            name=name,
        )

    def to_json(self) -> str:
        """All fields, the kind and the input layout; numbers in full precision."""
        inputs = [{"name": n, "frame": "world" if n.startswith("root") else "joint"} for n in INPUTS]
        return json.dumps(
            {"kind": KIND, "version": VERSION, **self.__dict__, "inputs": inputs, "output": OUTPUT}, sort_keys=True
        )

    @classmethod
    def from_json(cls, text: str, path: Path | str) -> DeltaContract:
        """Read a contract.

        Raises:
            ContractError: not a delta model's contract, or a field missing.
        """
        try:
            data: dict[str, Any] = dict(json.loads(text))
        except (ValueError, TypeError) as error:
            raise ContractError(f"{path}: the contract is no JSON object: {error}") from None
        if data.get("kind") != KIND:
            raise ContractError(f"{path}: contract field kind: found {data.get('kind')!r}, expected {KIND!r}")
        if data.get("version") != VERSION:
            found = data.get("version", 1)
            raise ContractError(f"{path}: contract field version: found {found!r}, expected {VERSION}; fit it anew")
        missing = [name for name in cls.__dataclass_fields__ if name not in data]
        if missing:
            raise ContractError(f"{path}: contract fields missing: {', '.join(missing)}")
        fields = {name: data[name] for name in cls.__dataclass_fields__}
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
        return cls(**values)

    def check(self, profile: RobotProfile, control_dt: float, path: Path | str) -> None:
        """Refuse a robot, joint order, gains, limits or rate other than this model's.

        Raises:
            ContractError: naming the first field that differs.
        """
        expected = DeltaContract.of(profile, control_dt, self.delta_limit, self.name)
        for name in self.__dataclass_fields__:
            found, wanted = getattr(self, name), getattr(expected, name)
            if found != wanted:
                raise ContractError(f"{path}: contract field {name}: model has {found}, this run has {wanted}")


def export_delta(model: DeltaActionModel, contract: DeltaContract, path: Path | str) -> None:
    """Write `model` as ONNX (float32, any batch size) with its contract. Atomic."""
    import onnx

    example = tuple(torch.zeros(2, WIDTHS.get(name, len(contract.joint_names))) for name in INPUTS)
    with atomic_file(path) as partial:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                _as_float32(model),
                example,
                str(partial),
                input_names=list(INPUTS),
                output_names=[OUTPUT],
                dynamic_axes={name: {0: "n"} for name in (*INPUTS, OUTPUT)},
                opset_version=_OPSET,
                dynamo=False,
            )
        graph = onnx.load(str(partial))
        onnx.helper.set_model_props(graph, {METADATA_KEY: contract.to_json()})
        onnx.save(graph, str(partial))


def _as_float32(model: DeltaActionModel) -> DeltaActionModel:
    return copy.deepcopy(model).float().eval()


def read_contract(path: Path | str) -> DeltaContract:
    """The contract of a delta model's ONNX file.

    Raises:
        InputFileError: missing or not ONNX.
        ContractError: no contract, or that of something else.
    """
    import onnx

    path = Path(path)
    if not path.exists():
        raise InputFileError(path, "missing")
    try:
        proto = onnx.load(str(path))
    except Exception as error:
        raise InputFileError(path, f"not a readable ONNX file: {error}") from None
    for entry in proto.metadata_props:
        if entry.key == METADATA_KEY:
            return DeltaContract.from_json(entry.value, path)
    raise ContractError(f"{path}: metadata field {METADATA_KEY}: missing; not a model of this project")


def load_delta(path: Path | str, profile: RobotProfile, control_dt: float) -> DeltaCorrection:
    """A delta model's file as an `ActionCorrection` for any number of robots.

    Raises:
        InputFileError: missing or not ONNX.
        ContractError: made for another robot, joint order, gains, limits or control rate.
    """
    import onnxruntime as ort

    read_contract(path).check(profile, control_dt, path)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    try:
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has no public base of its errors
        raise InputFileError(path, f"not a model that runs: {str(error).splitlines()[0]}") from None
    if sorted(i.name for i in session.get_inputs()) != sorted(INPUTS):
        found = ", ".join(i.name for i in session.get_inputs())
        raise ContractError(f"{path}: inputs: found {found}, expected {', '.join(INPUTS)}")

    def predict(inputs: tuple[NDArray[np.floating], ...]) -> NDArray[np.floating]:
        feed = {name: value.astype(np.float32) for name, value in zip(INPUTS, inputs, strict=True)}
        return np.asarray(session.run(None, feed)[0], dtype=np.float64)

    return DeltaCorrection(predict, control_dt)
