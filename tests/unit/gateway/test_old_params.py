"""Requests of A2A 0.3 that are wrong: they are told as such, shortly, and take no longer than they are long."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ioa_gateway.a2a.old_params import WrongRequestError, check_request


def _request(parts: int, **changed: Any) -> bytes:
    params = {"message": {"messageId": "a", "role": "user", "parts": [0] * parts}}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params, **changed}).encode()


@pytest.mark.parametrize(("number", "code"), [(1, -32602), (1.0, -32602), (None, -32600), (1.5, -32600), ({}, -32600)])
@pytest.mark.parametrize("parts", [1, 300, 980])
def test_what_is_wrong_is_told_shortly(parts: int, number: Any, code: int) -> None:
    """Of an id that is none, too, by which the library would answer with all that it finds: 668 kB for 2 kB."""
    with pytest.raises(WrongRequestError) as refused:
        check_request(_request(parts, id=number))
    told = refused.value.answer
    assert (told["error"]["code"], told["id"], len(json.dumps(told)) < 2_000) == (code, 1 if code == -32602 else None, True)


def test_what_is_left_out_is_wrong_by_itself() -> None:
    """An id that is missing is the smaller fault, but is one, and parameters that are missing are wrong ones."""
    for request, code in (({"params": {}}, -32602), ({"id": 1}, -32602), ({"params": {"id": "g1"}}, -32600)):
        with pytest.raises(WrongRequestError) as refused:
            check_request(json.dumps({"jsonrpc": "2.0", "method": "tasks/get", **request}).encode())
        assert refused.value.answer["error"]["code"] == code
