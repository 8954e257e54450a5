"""What goes on beside a connection ends with it, whatever nats-py makes of being cancelled, and refusals end no connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress

import nats.errors
import pytest
from nats.aio.msg import Msg

from ioa.adapters.nats.connection import _LastingClient
from ioa.adapters.nats.server_control import reload_server


class _Answering(_LastingClient):
    """Waits for an answer that comes together with the cancellation, which `asyncio.wait_for` of Python 3.11 drops then."""

    def __init__(self) -> None:
        super().__init__(None, asks_to_read=False)
        self._server_info = {"server_id": "S1"}
        self.asked = asyncio.Event()

    async def _answer(self) -> None:
        is_first = not self.asked.is_set()
        self.asked.set()
        with suppress(asyncio.CancelledError) if is_first else nullcontext():
            await asyncio.sleep(3_600)

    async def flush(self, timeout: int = 10) -> None:
        """Wait for the server."""
        await self._answer()

    async def request(self, *_args: object, **_options: object) -> Msg:
        """Ask the server."""
        await self._answer()
        return Msg(self, data=b"{}")


async def _ask_again_and_again(client: _Answering) -> None:
    client._deaf_to.add("refused")
    client._is_deaf.set()
    await client.subscribe_again()


async def _reload_again_and_again(client: _Answering) -> None:
    while True:
        await reload_server(client)


@pytest.mark.parametrize("goes_on", [_ask_again_and_again, _reload_again_and_again])
async def test_an_answer_that_comes_with_the_end_does_not_hold_it_up(goes_on: Callable[[_Answering], Awaitable[None]]) -> None:
    """A connection to a server with keys, which had refused a subscription, was not closed: what asks for it again went on."""
    client = _Answering()
    going = asyncio.ensure_future(goes_on(client))
    await client.asked.wait()
    going.cancel()
    ended, _ = await asyncio.wait({going}, timeout=1)
    going.cancel()
    assert ended == {going}


async def test_a_refusal_while_requests_end_by_another_ends_no_connection() -> None:
    """Of two requests at once each is refused, and the second refusal may come while both are ending by the first."""
    client = _LastingClient(None, asks_to_read=False)
    refusal = 'permissions violation for publish to "ioa.v1.say"'

    async def ask() -> None:
        async with client._until_not_permitted("ioa.v1.say"):
            await asyncio.wait_for(asyncio.Event().wait(), 3_600)

    asking = [asyncio.create_task(ask()) for _ in range(2)]
    await asyncio.sleep(0)
    while not all(one.done() for one in asking):
        await client._process_err(refusal)  # what it raises ends nats-py's reading, and the connection stays open, deaf
        await asyncio.sleep(0)
    for one in asking:
        with pytest.raises(nats.errors.TimeoutError):
            await one
