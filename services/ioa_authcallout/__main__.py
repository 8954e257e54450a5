"""Run one replica of the auth callout, which nats-server asks about unknown keys: `python -m ioa_authcallout`.

It has two connections: one in an account of its own, since requests contain tokens, and one as an ordinary service.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime

from ioa.adapters.nats.auth.callout_messages import answer_callouts
from ioa.adapters.nats.requests.endpoints import ServiceEndpoint, answer
from ioa.adapters.nats.requests.service import open_service
from ioa.adapters.nats.stores.audit_stream import NatsAuditSink
from ioa.adapters.nats.wire.connection import open_connection
from ioa.adapters.system_clock import SystemClock
from ioa.distribution import installed_version
from ioa.hosting.roster import read_roster
from ioa.protocol import subjects
from ioa.protocol.authcallout import AskCalloutStatus
from ioa.runtime.audit import open_audit_log
from ioa.runtime.process import StopSignal, background, run_process
from ioa.runtime.watched_file import WatchedFile, lines
from ioa_authcallout.issuer_keys import FileKeys, IssuerKeys, ProviderKeys, check_encrypted
from ioa_authcallout.settings import HINT, CalloutSettings
from ioa_authcallout.status import RecordedVerifier
from ioa_authcallout.verifier import TokenVerifier


async def serve(settings: CalloutSettings, stop: StopSignal) -> None:
    """Answer until `stop` is set."""
    settings.check()
    seed = await asyncio.to_thread(settings.signing_seed)
    revoked = await asyncio.to_thread(WatchedFile, settings.callout_keys / "revoked", lines, HINT)
    roster = await asyncio.to_thread(WatchedFile, settings.callout_roster, read_roster, HINT)

    async def reserved() -> frozenset[str]:
        return (await roster.said()).names()

    async def tenants() -> frozenset[str]:
        return frozenset((await roster.said()).tenants)

    async with AsyncExitStack() as stack:
        keys: IssuerKeys
        if settings.callout_jwks is not None:
            keys = await asyncio.to_thread(FileKeys, settings.callout_jwks)
        else:
            check_encrypted(settings.callout_issuer)
            keys = provider = ProviderKeys(settings.callout_issuer, time.monotonic)
            await stack.enter_async_context(background(provider.follow()))
        verifier = TokenVerifier(
            keys,
            settings.callout_issuer,
            settings.callout_audience,
            settings.callout_claim,
            revoked=revoked.said,
            reserved=reserved,
            tenants=tenants,
            now=_now,
        )
        client = await stack.enter_async_context(open_connection(settings.nats("ioa-authcallout")))
        audit = await stack.enter_async_context(open_audit_log(NatsAuditSink(client), SystemClock(), "authcallout"))
        recorded = RecordedVerifier(verifier.verify, keys, settings.callout_issuer, audit)
        asked = await stack.enter_async_context(open_connection(settings.asked()))
        await stack.enter_async_context(background(answer_callouts(asked, seed, recorded.verify, _now)))
        status = ServiceEndpoint("status", subjects.any_status(subjects.CALLOUT_STATUS), answer(AskCalloutStatus, recorded.status))
        about = "Accepts connections by tokens"
        await stack.enter_async_context(open_service(client, "ioa-authcallout", about, installed_version(), [status]))
        await stop.wait()


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    run_process(CalloutSettings, serve)
