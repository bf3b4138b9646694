"""A TFLite network on the CPU, cut down to the outputs that are used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asap_core.errors import MissingPartError

THREADS = 2
MISSING = "is not installed; `make video` installs the extra `video` and fetches the networks' weights"

Floats = NDArray[np.float32]


class Network:
    """One network with one float32 input."""

    def __init__(self, content: bytes, outputs: list[tuple[int, ...]], threads: int = THREADS) -> None:
        """Load the bytes of a tflite file and keep what leads to `outputs`, named by their shapes.

        Raises:
            MissingPartError: ai-edge-litert is not installed.
        """
        try:
            from ai_edge_litert.interpreter import Interpreter
        except ImportError:
            raise MissingPartError(f"ai-edge-litert {MISSING}") from None
        self._interpreter = Interpreter(model_content=_pruned(content, outputs), num_threads=threads)
        self._interpreter.allocate_tensors()
        self._input: int = self._interpreter.get_input_details()[0]["index"]
        index = {tuple(one["shape"].tolist()): one["index"] for one in self._interpreter.get_output_details()}
        self._outputs: list[int] = [index[shape] for shape in outputs]

    def run(self, tensor: Floats) -> list[Floats]:
        """The outputs, in the order of the constructor's list, each without its first axis of length 1."""
        self._interpreter.set_tensor(self._input, tensor[None])
        self._interpreter.invoke()
        return [self._interpreter.get_tensor(index)[0] for index in self._outputs]


def _pruned(content: bytes, outputs: list[tuple[int, ...]]) -> bytes:
    """The same model without the operators that lead to no output of these shapes.

    The pose networks spend a fifth of their time on a silhouette that is not used here.
    """
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(content, 0))
    graph = model.subgraphs[0]
    graph.outputs = [one for one in graph.outputs if tuple(graph.tensors[one].shape.tolist()) in outputs]
    maker = {tensor: number for number, operator in enumerate(graph.operators) for tensor in operator.outputs}
    needed: set[int] = set()
    queue: list[Any] = list(graph.outputs)
    while queue:
        number = maker.get(queue.pop())
        if number is not None and number not in needed:
            needed.add(number)
            queue += list(graph.operators[number].inputs)
    graph.operators = [operator for number, operator in enumerate(graph.operators) if number in needed]
    model.signatureDefs = None
    builder = flatbuffers.Builder(len(content))
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())
