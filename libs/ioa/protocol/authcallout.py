"""How an auth callout fares: whom it has let in, and whom not."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from ioa.protocol.model import Model


class AskCalloutStatus(Model):
    """Ask how an auth callout fares."""


class CalloutStatus(Model):
    """What one replica tells of itself.

    Attributes:
        issuer: Whose tokens it takes.
        away: For how many seconds the issuer's keys could not be asked for; None if they could the last time.
        let_in: How many connections it has let in since it started.
        refused: How many not, by the reason.
        crowding: From which addresses very many were refused in the last minute, and how many.
    """

    issuer: str
    away: float | None = None
    let_in: int = Field(ge=0)
    refused: Mapping[str, int]
    crowding: Mapping[str, int] = {}
