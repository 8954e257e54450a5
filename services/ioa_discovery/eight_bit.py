"""Matrix products in 8 bits: what an ONNX model keeps as 8-bit weights is multiplied as such.

A model with 8-bit weights makes 32-bit floats of them when it is loaded, and multiplies those. Multiplied in 8 bits, with the other
side rounded by blocks of 32 numbers, a short text is embedded in two thirds of the time; the weights are the same, and the vectors
differ by a cosine of 0.9998. The model is rewritten in memory, in protobuf's wire format, since the package that knows the format
is larger than the model and needed for nothing else:

    MatMul(x, Mul(Cast(weights), scales))  becomes  MatMulNBits(x, weights by blocks, scales by blocks)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

try:
    import numpy as np
except ImportError as error:
    from ioa.errors import MissingExtraError

    raise MissingExtraError.of("The ONNX embedder", "discovery") from error

_BLOCK = 32
_ZERO = 128
"""What stands for nought in an unsigned weight."""
_FLOAT32, _UINT8, _INT8 = 1, 2, 3
"""Types of tensors, as onnx.proto numbers them; below, the fields of its messages."""
_GRAPH, _OPSETS = 7, 8
_NODES, _TENSORS = 1, 5
_NODE_INPUT, _NODE_OUTPUT, _NODE_KIND, _NODE_ATTRIBUTE, _NODE_DOMAIN = 1, 2, 4, 5, 7
_SHAPE, _TYPE, _TENSOR_NAME, _DATA = 1, 2, 8, 9
_ATTRIBUTE_NAME, _ATTRIBUTE_INTEGER, _ATTRIBUTE_TYPE = 1, 3, 20
_OPSET_DOMAIN, _OPSET_VERSION = 1, 2
_INTEGER_ATTRIBUTE = 2
_DOMAIN = b"com.microsoft"
_ROUND_TO_8_BITS = 4


class _Field(NamedTuple):
    number: int
    value: memoryview
    whole: memoryview


@dataclass(frozen=True, slots=True)
class _Node:
    kind: bytes
    inputs: Sequence[bytes]
    output: bytes


@dataclass(frozen=True, slots=True)
class _Product:
    """A node that multiplies by 8-bit weights, the names of these tensors, and what the nodes in between put out."""

    node: _Node
    weights: bytes
    scales: bytes
    between: tuple[bytes, bytes]


def in_eight_bits(model: bytes) -> bytes | None:
    """Rewrite the products of a model file; None if it has none by 8-bit weights.

    Raises:
        ValueError: It is no model file.
    """
    parts = list(_fields(memoryview(model)))
    [graph] = [list(_fields(part.value)) for part in parts if part.number == _GRAPH]
    tensors = {_name(field, _TENSOR_NAME): field for field in graph if field.number == _TENSORS}
    nodes = [_node(field) for field in graph if field.number == _NODES]
    products = {product.node.output: product for product in _products(nodes, tensors)}
    if not products:
        return None
    dropped = {name for product in products.values() for name in (product.weights, product.scales, *product.between)}
    written: list[bytes | memoryview] = []
    for field in graph:
        name = _node(field).output if field.number == _NODES else _name(field, _TENSOR_NAME) if field.number == _TENSORS else b""
        if name in products:
            product = products[name]
            written += _in_blocks(product, *_weights(tensors[product.weights], tensors[product.scales]))
        elif name not in dropped:
            written.append(field.whole)
    opset = _message(_OPSETS, [_message(_OPSET_DOMAIN, [_DOMAIN]), _integer(_OPSET_VERSION, 1)])
    return b"".join([*(part.whole for part in parts if part.number != _GRAPH), _message(_GRAPH, written), opset])


def _products(nodes: Sequence[_Node], tensors: Mapping[bytes, _Field]) -> Iterator[_Product]:
    """Yield the products that can be rewritten: by weights that nothing else uses and that divide into blocks."""
    makers = {node.output: node for node in nodes}
    uses = Counter(name for node in nodes for name in node.inputs)
    for node in nodes:
        scaled = makers.get(node.inputs[1]) if node.kind == b"MatMul" else None
        cast = makers.get(scaled.inputs[0]) if scaled is not None and scaled.kind == b"Mul" else None
        if scaled is None or cast is None or cast.kind != b"Cast":
            continue
        product = _Product(node, cast.inputs[0], scaled.inputs[1], (cast.output, scaled.output))
        alone = all(uses[name] == 1 for name in (product.weights, product.scales, *product.between))
        if alone and product.weights in tensors and product.scales in tensors and _fits(tensors, product):
            yield product


def _fits(tensors: Mapping[bytes, _Field], product: _Product) -> bool:
    kind, shape, _ = _tensor(tensors[product.weights])
    of_scales, each, _ = _tensor(tensors[product.scales])
    return kind == _INT8 and of_scales == _FLOAT32 and len(shape) == 2 and shape[0] % _BLOCK == 0 and each == [1, shape[1]]


def _weights(weights: _Field, scales: _Field) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights as unsigned numbers, by column, block and row in the block, and the scale of each block."""
    (_, (rows, columns), data), (_, _, factors) = _tensor(weights), _tensor(scales)
    signed = np.frombuffer(data, np.int8).reshape(rows, columns).T
    blocks = (signed.astype(np.int16) + _ZERO).astype(np.uint8).reshape(columns, rows // _BLOCK, _BLOCK)
    return blocks, np.repeat(np.frombuffer(factors, np.float32)[:, None], rows // _BLOCK, axis=1)


def _in_blocks(product: _Product, blocks: np.ndarray, scales: np.ndarray) -> list[bytes]:
    """Write the node that multiplies by blocks, and its tensors."""
    columns, count, size = blocks.shape
    numbers = {"K": count * size, "N": columns, "bits": 8, "block_size": size, "accuracy_level": _ROUND_TO_8_BITS}
    names = [product.node.inputs[0], product.weights, product.scales]
    node = [
        *(_message(_NODE_INPUT, [name]) for name in names),
        _message(_NODE_OUTPUT, [product.node.output]),
        _message(_NODE_KIND, [b"MatMulNBits"]),
        *(_attribute(name, value) for name, value in numbers.items()),
        _message(_NODE_DOMAIN, [_DOMAIN]),
    ]
    return [
        _message(_NODES, node),
        _written_tensor(product.weights, _UINT8, blocks),
        _written_tensor(product.scales, _FLOAT32, scales),
    ]


def _node(field: _Field) -> _Node:
    fields = list(_fields(field.value))
    kind = next((bytes(each.value) for each in fields if each.number == _NODE_KIND), b"")
    inputs = [bytes(each.value) for each in fields if each.number == _NODE_INPUT]
    return _Node(kind, inputs, next((bytes(each.value) for each in fields if each.number == _NODE_OUTPUT), b""))


def _tensor(field: _Field) -> tuple[int, list[int], memoryview]:
    """Return the type, the shape and the bytes of a tensor; no bytes if it is stored in another way."""
    kind, shape, data = 0, [], memoryview(b"")
    for each in _fields(field.value):
        if each.number == _SHAPE:
            shape += _varints(each.value)
        elif each.number == _TYPE:
            [kind] = _varints(each.value)
        elif each.number == _DATA:
            data = each.value
    return (kind, shape, data) if len(data) else (0, shape, data)


def _name(field: _Field, number: int) -> bytes:
    return next((bytes(each.value) for each in _fields(field.value) if each.number == number), b"")


def _fields(message: memoryview) -> Iterator[_Field]:
    """Yield the fields of a message; the value of a number is its varint."""
    at = 0
    while at < len(message):
        start = at
        key, at = _varint(message, at)
        wire = key & 7
        first = at
        if wire == 0:
            _, at = _varint(message, at)
        elif wire == 2:
            size, first = _varint(message, at)
            at = first + size
        else:
            at += 8 if wire == 1 else 4
        if at > len(message):
            raise ValueError("It ends in the middle of a field.")
        yield _Field(key >> 3, message[first:at], message[start:at])


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Read a number; return it and where it ends."""
    value = shift = 0
    while True:
        if at == len(message):
            raise ValueError("It ends in the middle of a number.")
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _varints(packed: memoryview) -> list[int]:
    values, at = [], 0
    while at < len(packed):
        value, at = _varint(packed, at)
        values.append(value)
    return values


def _written_varint(value: int) -> bytes:
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def _integer(number: int, value: int) -> bytes:
    return _written_varint(number << 3) + _written_varint(value)


def _message(number: int, parts: Iterable[bytes | memoryview]) -> bytes:
    body = b"".join(parts)
    return _written_varint(number << 3 | 2) + _written_varint(len(body)) + body


def _attribute(name: str, value: int) -> bytes:
    parts = [
        _message(_ATTRIBUTE_NAME, [name.encode()]),
        _integer(_ATTRIBUTE_INTEGER, value),
        _integer(_ATTRIBUTE_TYPE, _INTEGER_ATTRIBUTE),
    ]
    return _message(_NODE_ATTRIBUTE, parts)


def _written_tensor(name: bytes, kind: int, values: np.ndarray) -> bytes:
    shape = [_integer(_SHAPE, size) for size in values.shape]
    return _message(_TENSORS, [*shape, _integer(_TYPE, kind), _message(_TENSOR_NAME, [name]), _message(_DATA, [values.tobytes()])])
