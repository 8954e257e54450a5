"""One replica of a micro service (ADR-32): it listens, answers, and tells of itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import nats.errors
from nats.aio.client import Client
from nats.micro import add_service
from nats.micro.request import Request
from nats.micro.service import Endpoint as MicroEndpoint
from nats.micro.service import EndpointConfig, EndpointStats
from nats.micro.service import Service as MicroService

from ioa.adapters.nats.dispatching import RequestDispatcher
from ioa.adapters.nats.endpoints import USUAL_BOUNDS, Bounds, ServiceEndpoint
from ioa.adapters.nats.listening import Listener
from ioa.adapters.nats.slowed_callers import slowed_answer, slowed_statistics
from ioa.cancellation import TaskGroup, heeding_cancellation
from ioa.ports.inspection import SlowedCaller
from ioa.protocol import subjects
from ioa.quotas import Family


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
        listeners, write = list[Listener](), partial(_write, client)
        dispatcher = RequestDispatcher(group, bounds, slowed, write)
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
