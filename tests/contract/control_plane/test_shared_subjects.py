"""Subjects that name nobody, on which no caller can be told from another."""

from __future__ import annotations

from nats.aio.client import Client

from ioa.adapters.nats.request_reply import NatsRequester, ServiceEndpoint, answer, open_service
from ioa.errors import UnavailableError
from ioa.protocol.codec import encode
from ioa.protocol.model import Model
from tests.contract.control_plane.conftest import heard
from tests.rig.deadline import eventually

_SUBJECT, _AT_MOST, _SENT = "ioa.v1.test.shared", 40, 2_000


class Ask(Model):
    """A question without content."""


async def test_a_flood_on_a_shared_subject_is_dropped_by_the_server(nats_client: Client) -> None:
    """However many ask at once, a replica is handed so many requests in half a second, and goes on answering."""
    taken = 0

    async def count(request: Ask) -> Ask:
        nonlocal taken
        taken += 1
        return request

    async def asked() -> bool:
        try:
            return await NatsRequester(nats_client).request(_SUBJECT, Ask(), Ask) == Ask()
        except UnavailableError:
            return False

    endpoint = ServiceEndpoint("shared", _SUBJECT, answer(Ask, count), at_most=_AT_MOST)
    async with open_service(nats_client, "ioa-test", "Tests", "0.1.0", [endpoint]):
        await heard(nats_client)
        for _ in range(_SENT):
            await nats_client.publish(_SUBJECT, encode(Ask()), reply="nobody")
        assert await eventually(asked, bool)
        assert taken <= 5 * _AT_MOST < _SENT
