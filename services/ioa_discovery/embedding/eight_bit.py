"""Weights of 8 bits that stay so: what an ONNX model stores in 8 bits is multiplied and looked up as such.

onnxruntime makes 32-bit floats of such weights when it loads them. Multiplied in 8 bits, with the other side rounded by blocks of
32 numbers, a short text is embedded in two thirds of the time, and the vectors differ by a cosine of 0.9998. Looked up in 8 bits
and scaled afterwards, the rows of a table are the same numbers, and the table takes a quarter of the memory:

    MatMul(x, Mul(Cast(weights), scales))     becomes  MatMulNBits(x, weights by blocks, scales by blocks)
    Gather(Mul(Cast(weights), scales), rows)  becomes  Mul(Cast(Gather(weights, rows)), Gather(scales, rows))

Only the messages and fields of onnx.proto that are used here are declared; protobuf keeps all others as they are. The package
`onnx` declares all of them, but is larger than the model and needed for nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

try:
    import numpy as np
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.message import DecodeError
except ImportError as error:
    from ioa.errors import MissingExtraError

    raise MissingExtraError.of("The ONNX embedder", "discovery") from error

_DECLARED = {
    "OperatorSetIdProto": "1 domain string, 2 version int64",
    "AttributeProto": "1 name string, 3 i int64, 20 type int32",
    "TensorProto": "1 dims int64*, 2 data_type int32, 8 name string, 9 raw_data bytes",
    "NodeProto": "1 input string*, 2 output string*, 4 op_type string, 5 attribute AttributeProto*, 7 domain string",
    "GraphProto": "1 node NodeProto*, 5 initializer TensorProto*",
    "ModelProto": "7 graph GraphProto, 8 opset_import OperatorSetIdProto*",
}
"""The fields of each message: number, name, type; a star stands for a repeated field."""
_FLOAT32, _UINT8, _INT8, _INTEGER_ATTRIBUTE = 1, 2, 3, 2
"""Types of tensors and of attributes, as onnx.proto numbers them."""
_BLOCK = 32
_ZERO = 128
"""The unsigned weight that stands for zero."""
_DOMAIN = "com.microsoft"
_ROUND_TO_8_BITS = 4


@dataclass(frozen=True, slots=True)
class _Floats:
    """Floats that the runtime would make of a tensor of 8-bit weights and one of scales, and the two nodes that make them."""

    cast: Any
    scaled: Any
    weights: Any
    scales: Any


def in_eight_bits(model: bytes) -> bytes | None:
    """Rewrite a model file; None if it has nothing to rewrite.

    Raises:
        ValueError: It is no model file.
    """
    parsed = _message("ModelProto")()
    try:
        parsed.ParseFromString(model)
    except DecodeError as error:
        raise ValueError("It is no protobuf message.") from error
    if not parsed.graph.node:
        raise ValueError("It has no graph.")
    floats = {found.scaled.output[0]: found for found in _floats(parsed.graph)}
    nodes: list[Any] = []
    replaced: set[str] = set()
    for node in parsed.graph.node:
        found = next((floats[name] for name in node.input if name in floats), None)
        rewritten = _rewritten(node, found) if found else None
        nodes += rewritten or [node]
        if found and rewritten:
            replaced |= {*found.cast.output, *found.scaled.output}
    if not replaced:
        return None
    del parsed.graph.node[:]
    parsed.graph.node.extend(node for node in nodes if node.output[0] not in replaced)
    parsed.opset_import.add(domain=_DOMAIN, version=1)
    written: bytes = parsed.SerializeToString()
    return written


def _floats(graph: Any) -> Iterator[_Floats]:
    """Yield the floats that can stay 8-bit weights: nothing is used twice, and each weight has the scale of its row or column."""
    makers = {node.output[0]: node for node in graph.node}
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    uses = Counter(name for node in graph.node for name in node.input)
    for scaled in graph.node:
        cast = makers.get(scaled.input[0]) if scaled.op_type == "Mul" else None
        if cast is None or cast.op_type != "Cast":
            continue
        weights, scales = tensors.get(cast.input[0]), tensors.get(scaled.input[1])
        alone = all(uses[name] == 1 for name in (*cast.input, *cast.output, *scaled.input, *scaled.output))
        if alone and _holds(weights, _INT8) and _holds(scales, _FLOAT32):
            yield _Floats(cast, scaled, weights, scales)


def _holds(tensor: Any, kind: int) -> bool:
    return tensor is not None and tensor.data_type == kind and len(tensor.dims) == 2 and bool(tensor.raw_data)


def _rewritten(node: Any, floats: _Floats) -> list[Any] | None:
    """Return what takes the place of a node that reads such floats; None if it has to stay."""
    (rows, columns), scales, name = floats.weights.dims, [*floats.scales.dims], floats.scaled.output[0]
    if node.op_type == "MatMul" and node.input[1] == name and scales == [1, columns] and rows % _BLOCK == 0:
        return [_product(node, floats)]
    if node.op_type == "Gather" and node.input[0] == name and scales == [rows, 1] and not any(each.i for each in node.attribute):
        return _lookup(node, floats)
    return None


def _product(node: Any, floats: _Floats) -> Any:
    """Put the weights into blocks of a column, each with its scale, and multiply by these."""
    rows, columns = floats.weights.dims
    signed = np.frombuffer(floats.weights.raw_data, np.int8).reshape(rows, columns).T
    blocks = (signed.astype(np.int16) + _ZERO).astype(np.uint8).reshape(columns, rows // _BLOCK, _BLOCK)
    factors = np.frombuffer(floats.scales.raw_data, np.float32)
    _refill(floats.weights, _UINT8, blocks)
    _refill(floats.scales, _FLOAT32, np.repeat(factors[:, None], rows // _BLOCK, axis=1))
    product = _node("MatMulNBits", [node.input[0], floats.weights.name, floats.scales.name], node.output[0], domain=_DOMAIN)
    numbers = {"K": rows, "N": columns, "bits": 8, "block_size": _BLOCK, "accuracy_level": _ROUND_TO_8_BITS}
    for name, value in numbers.items():
        product.attribute.add(name=name, i=value, type=_INTEGER_ATTRIBUTE)
    return product


def _lookup(node: Any, floats: _Floats) -> list[Any]:
    """Look rows up before they are made floats."""
    output = node.output[0]
    rows, scales, made = f"{output}_rows", f"{output}_scales", f"{output}_floats"
    cast = _node("Cast", [rows], made)
    cast.attribute.extend(floats.cast.attribute)
    return [
        _node("Gather", [floats.weights.name, node.input[1]], rows),
        _node("Gather", [floats.scales.name, node.input[1]], scales),
        cast,
        _node("Mul", [made, scales], output),
    ]


def _node(kind: str, inputs: Iterable[str], output: str, *, domain: str = "") -> Any:
    return _message("NodeProto")(input=inputs, output=[output], op_type=kind, domain=domain)


def _refill(tensor: Any, kind: int, values: np.ndarray) -> None:
    tensor.data_type, tensor.raw_data = kind, values.tobytes()
    tensor.dims[:] = values.shape


def _message(name: str) -> Any:
    return _messages()[name]


@cache
def _messages() -> Mapping[str, Any]:
    """Return the classes of onnx.proto's messages. They are made at run time, so that no type checker knows their fields."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="onnx.proto", package="onnx")
    for message, fields in _DECLARED.items():
        declared = file.message_type.add(name=message)
        for number, name, kind in (each.split() for each in fields.split(", ")):
            added = declared.field.add(name=name, number=int(number))
            added.label = field.LABEL_REPEATED if kind.endswith("*") else field.LABEL_OPTIONAL
            if (of := kind.rstrip("*")) in _DECLARED:
                added.type, added.type_name = field.TYPE_MESSAGE, f".onnx.{of}"
            else:
                added.type = field.Type.Value(f"TYPE_{of.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"onnx.{name}")) for name in _DECLARED}
