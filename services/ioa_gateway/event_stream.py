"""Server-sent events, as the HTML standard writes them: what each stream of this gateway is made of."""

from __future__ import annotations

import json

EVENTS = "text/event-stream"
"""Their media type."""
HEARTBEAT = b":\n\n"
"""A comment, which clients pass over: the stream stands."""


def encode_event(data: object, *, kind: str | None = None, seq: int | None = None) -> bytes:
    """Write an event, with its kind and the sequence behind which a client goes on, where it has these."""
    told_kind = "" if kind is None else f"event: {kind}\n"
    place = "" if seq is None else f"id: {seq}\n"
    return f"{told_kind}{place}data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
