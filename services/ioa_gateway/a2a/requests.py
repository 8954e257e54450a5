"""A2A requests that were authenticated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ioa.protocol.ids import PoolId
from ioa_gateway.context import ApiCall

REQUEST = "ioa.request"
"""The key of the `A2ARequest` in a request's scope and in the library's call context."""


@dataclass
class A2ARequest:
    """An authenticated request.

    Attributes:
        pool: The pool of the URL; None for all agents.
        base_url: The gateway's URL, as the client knows it.
        error: The error that decides the status of the response, instead of an error of A2A.
    """

    call: ApiCall
    pool: PoolId | None
    base_url: str
    error: Exception | None = None


def is_old(headers: Mapping[str, str]) -> bool:
    """Return whether the client speaks A2A 0.3: it does not name version 1."""
    return headers.get("a2a-version", "").partition(".")[0] != "1"
