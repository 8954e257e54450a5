"""Requests of A2A 0.3 that are wrong, told as such, and shortly.

The library tells all that is wrong with one, which takes hundreds of times as many bytes as it has. And it answers parameters that
are none as an invalid request (-32600); by JSON-RPC 2.0, section 5.1, it is the parameters (-32602).
"""

from __future__ import annotations

import json
from typing import Any, Final, get_args

from a2a.compat.v0_3.types import A2ARequest
from a2a.server.jsonrpc_models import InvalidParamsError, InvalidRequestError
from a2a.server.request_handlers.response_helpers import build_error_response
from pydantic import BaseModel, ValidationError

from ioa.protocol.validation_errors import in_words

_REQUESTS: Final[dict[str, type[BaseModel]]] = {
    one.model_fields["method"].default: one for one in get_args(A2ARequest.model_fields["root"].annotation)
}
_MOST_TOLD = 20


class WrongRequestError(Exception):
    """A request of 0.3 that cannot be read.

    Attributes:
        answer: What is answered.
    """

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer["error"]["message"])
        self.answer = answer


def check_request(body: bytes) -> None:
    """See that a request of 0.3 by JSON-RPC is one; a body that asks for none of its methods is left to the library.

    An id that is missing beside wrong parameters is the smaller fault.

    Raises:
        WrongRequestError: It is none.
    """
    try:
        request = json.loads(body)
    except ValueError:
        return
    method = request.get("method") if isinstance(request, dict) else None
    kind = _REQUESTS.get(method) if isinstance(method, str) else None
    if kind is None:
        return
    try:
        kind.model_validate(request)
    except ValidationError as error:
        told = in_words(error, "request", most=_MOST_TOLD)
        refused = (
            InvalidParamsError(message=f"The parameters are wrong: {told}.")
            if _is_wrong_in_params(kind, request, error.error_count())
            else InvalidRequestError(message=f"The request is wrong: {told}.")
        )
        named = request.get("id")  # the library's models take 1.0 for 1, and it writes no such answer
        named = int(named) if isinstance(named, float) and named.is_integer() else named
        is_one = isinstance(named, str | int) and not isinstance(named, bool)
        raise WrongRequestError(build_error_response(named if is_one else None, refused)) from None


def _is_wrong_in_params(kind: type[BaseModel], request: dict[str, Any], mistakes: int) -> bool:
    """Whether its parameters are what is wrong with a request, of which hundreds may be; besides, its id may be missing."""
    try:
        kind.model_validate({name: value for name, value in request.items() if name != "params"})
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        others = [(one["loc"], one["type"]) for one in found if one["loc"] != ("params",)]
        return mistakes > len(others) and all(one == (("id",), "missing") for one in others)
    return True
