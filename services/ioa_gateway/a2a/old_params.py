"""Parameters of A2A 0.3 that are wrong, told as such.

The library answers them as an invalid request (-32600); by JSON-RPC 2.0, section 5.1, it is the parameters (-32602).
"""

from __future__ import annotations

import json
from typing import Any, Final, get_args

from a2a.compat.v0_3.types import A2ARequest
from a2a.server.jsonrpc_models import InvalidParamsError
from a2a.server.request_handlers.response_helpers import build_error_response
from pydantic import BaseModel, ValidationError

from ioa.protocol.codec import in_words

_REQUESTS: Final[dict[str, type[BaseModel]]] = {
    one.model_fields["method"].default: one for one in get_args(A2ARequest.model_fields["root"].annotation)
}


class WrongParamsError(Exception):
    """A request of 0.3 of which nothing but the parameters is wrong.

    Attributes:
        answer: What is answered.
    """

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer["error"]["message"])
        self.answer = answer


def check_params(body: bytes) -> None:
    """See that the parameters of a request of 0.3 by JSON-RPC are some; every other body is left to the library.

    An id that is missing beside them is the smaller fault.

    Raises:
        WrongParamsError: They are not.
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
        found = error.errors(include_url=False, include_context=False, include_input=False)
        wrong = [one for one in found if one["loc"][0] == "params"]
        if wrong and all(one in wrong or (one["loc"], one["type"]) == (("id",), "missing") for one in found):
            refused = InvalidParamsError(
                message=f"The parameters are wrong: {in_words(error, 'request', most=len(found))}."[:1_000]
            )
            named = request.get("id")  # the library's models take 1.0 for 1, and it writes no such answer
            raise WrongParamsError(build_error_response(int(named) if isinstance(named, float) else named, refused)) from None
