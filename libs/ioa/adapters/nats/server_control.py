"""Having a nats-server read its configuration anew, over a connection to it."""

from __future__ import annotations

import json

import nats.errors
from nats.aio.client import Client

from ioa.adapters.nats.permissions import reloading
from ioa.cancellation import heeding_cancellation
from ioa.errors import InvalidInputError, UnavailableError

_PATIENCE_SECONDS = 5.0


async def reload_server(client: Client) -> None:
    """Have the server that a connection is to read its configuration anew.

    Raises:
        UnavailableError: It does not answer.
        InvalidInputError: It cannot take what stands there, and goes on with what it read before.
    """
    server = client._server_info["server_id"]
    try:
        with heeding_cancellation():
            answer = await client.request(reloading(server), b"", timeout=_PATIENCE_SECONDS)
        said = json.loads(answer.data)
    except (nats.errors.Error, OSError, ValueError) as error:
        raise UnavailableError(f"nats-server was not told to reload: {str(error) or type(error).__name__}.") from None
    if "error" in said:
        raise InvalidInputError(f"nats-server did not reload: {said['error'].get('description', said['error'])}.")
