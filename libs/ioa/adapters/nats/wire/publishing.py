"""Publish the same message to several subjects with one write. nats-py writes each separately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import nats.errors
from nats.aio.client import Client


async def publish_to_each(
    client: Client,
    to: Sequence[str],
    data: bytes,
    *,
    reply: str = "",
    headers: Mapping[str, str] | None = None,
) -> None:
    """Publish a message to several subjects.

    Args:
        client: The connection.
        to: The subjects, which are not validated.
        data: The payload.
        reply: Subject of replies.
        headers: The headers, which are not validated.

    Raises:
        Error: The connection is closed, its send buffer is full, or the payload is larger than the server allows.
    """
    if not to:
        return
    if client.is_closed:
        raise nats.errors.ConnectionClosedError
    if len(data) > client._max_payload:
        raise nats.errors.MaxPayloadError
    answer_to = f" {reply}" if reply else ""
    if headers:
        block = "NATS/1.0\r\n{}\r\n".format("".join([f"{name}: {value}\r\n" for name, value in headers.items()])).encode()
        verb, rest = "HPUB", b"%d %d\r\n%b%b\r\n" % (len(block), len(block) + len(data), block, data)
    else:
        verb, rest = "PUB", b"%d\r\n%b\r\n" % (len(data), data)
    commands = b"".join([f"{verb} {subject}{answer_to} ".encode() + rest for subject in to])
    if not client.is_connected and client.pending_data_size + len(commands) > client._max_pending_size:
        raise nats.errors.OutboundBufferLimitError
    client.stats["out_msgs"] += len(to)
    client.stats["out_bytes"] += len(to) * len(data)
    client._pending.append(commands)
    client._pending_data_size += len(commands)
    await client._flush_pending(force_flush=client._pending_data_size > client._max_pending_size)
