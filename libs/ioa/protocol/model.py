"""The base of everything that travels: immutable, validated, tolerant of fields a newer peer adds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict


class Model(BaseModel):
    """An immutable value. Unknown fields are ignored, so that a rolling upgrade does not refuse its newer peers."""

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_timedelta="float")


def _to_utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("a time must carry its zone")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time lies outside the calendar") from None


Time = Annotated[datetime, AfterValidator(_to_utc)]
