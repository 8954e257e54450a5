"""Status of an auth callout: accepted and rejected connections."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from ioa.protocol.model import Model


class AskCalloutStatus(Model):
    """Request the status of an auth callout."""


class CalloutStatus(Model):
    """Status of a replica.

    Attributes:
        issuer: Issuer of the accepted tokens.
        away: Seconds since the issuer's keys could not be fetched; None if the last fetch succeeded.
        let_in: Connections accepted since the start.
        refused: Connections rejected since the start, by reason.
    """

    issuer: str
    away: float | None = None
    let_in: int = Field(ge=0)
    refused: Mapping[str, int]
