"""Publishing on the path of every message: what several get alike is written once, and what somebody waits for at once.

Subjects and headers are ours, or were read off the wire, so they are not validated again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import nats.errors
from nats.aio.client import Client

from ioa.adapters.nats.connection import write_at_once


async def publish_to_each(
    client: Client,
    to: Sequence[str],
    data: bytes,
    *,
    reply: str = "",
    headers: Mapping[str, str] | None = None,
    at_once: bool = False,
) -> None:
    """Publish the same to several subjects.

    Args:
        client: The connection.
        to: The subjects.
        data: What is published.
        reply: Where an answer goes.
        headers: What is written beside it.
        at_once: Whether it is written now, with what was published before: nothing that is to go with it will be published soon.

    Raises:
        Error: The connection is closed, or is away and has as much to send as it keeps; or the server takes nothing so large.
    """
    if not to:
        return
    is_ready = client._status == Client.CONNECTED
    if not is_ready and (client.is_closed or client.is_draining_pubs):
        raise nats.errors.ConnectionClosedError
    if len(data) > client._max_payload:
        raise nats.errors.MaxPayloadError
    answered_on = f" {reply}" if reply else ""
    if headers:
        block = "NATS/1.0\r\n{}\r\n".format("".join([f"{name}: {value}\r\n" for name, value in headers.items()])).encode()
        verb, behind = "HPUB", b"%d %d\r\n%b%b\r\n" % (len(block), len(block) + len(data), block, data)
    else:
        verb, behind = "PUB", b"%d\r\n%b\r\n" % (len(data), data)
    commands = b"".join([f"{verb} {subject}{answered_on} ".encode() + behind for subject in to])
    if not is_ready and not client.is_connected and client.pending_data_size + len(commands) > client._max_pending_size:
        raise nats.errors.OutboundBufferLimitError
    client.stats["out_msgs"] += len(to)
    client.stats["out_bytes"] += len(to) * len(data)
    client._pending.append(commands)
    client._pending_data_size += len(commands)
    if at_once:
        write_at_once(client)
        if not client._pending:
            return
    await client._flush_pending(force_flush=client._pending_data_size > client._max_pending_size)
