"""One replica of a micro service (ADR-32): it listens, answers, and tells of itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.micro import add_service
from nats.micro.request import Request
from nats.micro.service import Endpoint as MicroEndpoint
from nats.micro.service import EndpointConfig, EndpointStats
from nats.micro.service import Service as MicroService

from ioa.adapters.nats.dispatching import RequestDispatcher
from ioa.adapters.nats.endpoints import USUAL_BOUNDS, Bounds, ServiceEndpoint
from ioa.adapters.nats.flood_tellers import NatsFlooderTeller, NatsTraceTeller
from ioa.adapters.nats.listening import Listener
from ioa.adapters.nats.slowed_callers import slowed_answer, slowed_statistics
from ioa.cancellation import TaskGroup, fail_at, heeding_cancellation
from ioa.ports.inspection import SlowedCaller
from ioa.protocol import subjects
from ioa.quotas import Family

_TOLD_AT_ONCE, _TOLD_EVERY_SECONDS = 50, 0.5
"""How often a service tells of itself within how many seconds, on each subject."""


@asynccontextmanager
async def open_service(  # noqa: PLR0913  # all that there is
    client: Client,
    name: str,
    description: str,
    version: str,
    endpoints: Sequence[ServiceEndpoint],
    *,
    bounds: Bounds = USUAL_BOUNDS,
    known: Callable[[], Iterable[str]] = tuple,
    slowed: Callable[[str, Family], None] = lambda _caller, _family: None,
    also_slowed: Callable[[], Sequence[SlowedCaller]] = tuple,
) -> AsyncIterator[None]:
    """Answer requests as one replica of a micro service; on leaving, finish those in flight.

    All replicas share a queue group, so each request reaches one of them. Requests are answered side by side; those for which
    there is no room wait, the lanes in turn, and beyond the bounds whoever asks is told to come again. One that has waited here for
    longer than its caller will is dropped. Whose requests are refused for their number stands in the statistics of the first
    endpoint (`slowed_callers`); who goes on regardless is closed out for a while (`listening`). Each replica tells the same on a
    subject that names who asks: on those of the statistics anybody may ask so often that nobody else is heard.

    Args:
        client: Where requests come from.
        name: That of the service.
        description: What it is for.
        version: Its version.
        endpoints: What it answers.
        bounds: How much this replica takes on.
        known: Returns who is to be served while somebody else floods, besides those who have asked before.
        slowed: Is told of a caller that asks too often, once in a while.
        also_slowed: Returns who is slowed down by other means, to be told of first in the same statistics.
    """
    async with TaskGroup() as group:
        traces, flooders = NatsTraceTeller(client), NatsFlooderTeller(client)
        listeners, write = list[Listener](), partial(_write, client)
        dispatcher = RequestDispatcher(group, bounds, slowed, traces.hear, flooders.note, write)
        told_by = next((endpoint.name for endpoint in endpoints if not endpoint.is_own), "")

        def tell(stats: EndpointStats) -> object:
            stats.num_requests = dispatcher.taken[stats.name]
            return slowed_statistics(also_slowed(), dispatcher.slowed()) if stats.name == told_by else None

        service = await add_service(
            client, name=name, description=description, version=version, queue_group=name, metadata={}, stats_handler=tell
        )

        async def tell_slowed(_subject: str, _data: bytes) -> bytes:
            return slowed_answer(name, also_slowed(), dispatcher.slowed())

        to_slowed = ServiceEndpoint("slowed", subjects.ANY_SLOWED, tell_slowed, is_own=True, caller_at=subjects.CALLER_AT)
        followed = _OwnTelling(client, service, traces.hear).bound(), traces.follow(), flooders.follow()
        telling = [group.create_task(one) for one in followed]

        def everybody() -> Iterable[str]:
            return {*known(), *dispatcher.callers()}

        for endpoint in (*endpoints, to_slowed):
            queue = service.id if endpoint.is_own else name
            listener = Listener(
                client=client,
                subject=endpoint.subject,
                queue=queue,
                caller_at=endpoint.caller_at,
                known=everybody,
                group=group,
                at_most=endpoint.at_most,
                is_rare=endpoint is to_slowed,
            )
            await listener.open(partial(dispatcher.take, endpoint, listener))
            listeners.append(listener)
            if not endpoint.is_own:
                service._endpoints.append(_Announced(service, endpoint, name))
        try:
            yield
        finally:
            for task in telling:
                task.cancel()
            try:
                for listener in listeners:
                    await listener.aclose()
                with heeding_cancellation(), suppress(nats.errors.Error, OSError, TimeoutError):  # of a server that goes just then
                    await service.stop()
            finally:
                dispatcher.close()


async def _write(client: Client, commands: bytes) -> None:
    """Write what is in the server's own language already; nothing while the connection is away."""
    if client.is_connected:
        with suppress(nats.errors.Error, OSError):
            await client._send_command(commands)
            await client._flush_pending()


class _OwnTelling:
    """Has what the service tells of itself (`$SRV.…`) asked so often at a time at most; the server drops what is beyond.

    Those subjects name no caller, and whoever may see that everything runs may ask them as fast as he can. Where the server has
    written itself there, nothing is listened to for a moment, and one message after it, as `Listener` does.
    """

    def __init__(self, client: Client, service: MicroService, is_of_nobody: Callable[[Msg], bool]) -> None:
        self._client = client
        self._standing, self._resting = service._subscriptions, dict[str, Subscription]()
        self._is_of_nobody = is_of_nobody
        self._has_written, self._due = asyncio.Event(), asyncio.Event()

    async def bound(self) -> None:
        """Do so, for ever: whenever a subscription is used up, or the server has written there, and not before."""
        loop = asyncio.get_running_loop()
        for key, subscription in self._standing.items():
            assert subscription._cb is not None, "nats-py's services answer by callbacks"
            subscription._cb = self._heeding(key, subscription._cb)
            await subscription.unsubscribe(limit=_TOLD_AT_ONCE)
        self._due.set()  # what came before that was not heeded
        again_at = loop.time() + _TOLD_EVERY_SECONDS
        while True:
            await self._due.wait()
            self._due.clear()
            with suppress(TimeoutError):
                async with fail_at(again_at):
                    await self._has_written.wait()
            if self._has_written.is_set():
                await self._rest()
                await self._hear_again(most=1)
            else:
                await self._hear_again(most=_TOLD_AT_ONCE)
            again_at = loop.time() + _TOLD_EVERY_SECONDS

    def _heeding(self, key: str, take: Callable[[Msg], Awaitable[None]]) -> Callable[[Msg], Awaitable[None]]:
        async def heed(message: Msg) -> None:
            if self._is_of_nobody(message):
                self._has_written.set()
                self._due.set()
                return
            if key in self._standing and self._is_used_up(key):
                self._due.set()
            await take(message)

        return heed

    def _is_used_up(self, key: str) -> bool:
        """Whether it has heard what it may; also until its bound is set, so that what comes before that is looked at."""
        used = self._standing[key]
        received, most = int(used._received), int(used._max_msgs)
        return received >= most

    async def _rest(self) -> None:
        self._resting |= self._standing
        self._standing.clear()  # nats-py's service would end them once more
        for used in self._resting.values():
            with suppress(nats.errors.Error, OSError):
                await used.unsubscribe()
        await asyncio.sleep(_TOLD_EVERY_SECONDS)
        self._has_written.clear()

    async def _hear_again(self, most: int) -> None:
        for key, used in (self._standing | self._resting).items():
            if key in self._resting or self._is_used_up(key):
                try:
                    self._standing[key] = await self._client.subscribe(used.subject, cb=used._cb)
                    self._resting.pop(key, None)
                    await self._standing[key].unsubscribe(limit=most)
                except (nats.errors.Error, OSError):
                    self._due.set()


class _Announced(MicroEndpoint):
    """An endpoint as other programs see it (ADR-32); its requests come by a `Listener`."""

    def __init__(self, service: MicroService, endpoint: ServiceEndpoint, queue: str) -> None:
        super().__init__(service, EndpointConfig(endpoint.name, _never, queue, endpoint.subject))

    async def _start(self) -> None:
        """Subscribe to nothing."""

    async def _stop(self) -> None:
        """Leave nothing."""


async def _never(request: Request) -> None:
    raise AssertionError(f"{request.subject} is heard by a listener")
