"""Encoding of server-sent events (HTML standard)."""

from __future__ import annotations

import json

EVENTS = "text/event-stream"
"""The media type of streams."""
HEARTBEAT = b":\n\n"
"""A comment, which clients ignore."""


def encode_event(data: object, *, kind: str | None = None, seq: int | None = None) -> bytes:
    """Encode an event, with its kind and the sequence after which a client continues, if any."""
    told_kind = "" if kind is None else f"event: {kind}\n"
    place = "" if seq is None else f"id: {seq}\n"
    return f"{told_kind}{place}data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
