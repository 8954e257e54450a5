"""Run one replica of the auth callout, which nats-server asks about unknown keys: `python -m ioa_authcallout`.

It has two connections: one in an account of its own, since requests contain tokens, and one as an ordinary service.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from functools import partial

from ioa.adapters.nats.stores.audit_stream import NatsAuditSink
from ioa.adapters.nats.wire.connection import open_connection
from ioa.adapters.system_clock import SystemClock
from ioa.concurrency import beside
from ioa.errors import InvalidInputError, UnavailableError
from ioa.hosting.credential_store import REVOKED, lines
from ioa.hosting.roster import read_roster
from ioa.runtime.audit_log import open_audit_log
from ioa.runtime.process import StopSignal, run_process
from ioa_authcallout.callout_messages import answer_callouts
from ioa_authcallout.issuer_keys import IssuerKeys, check_encrypted, fetch_keys, read_keys
from ioa_authcallout.settings import CalloutSettings, read_text
from ioa_authcallout.verifier import KnownNames, TokenVerifier

SETTINGS = CalloutSettings


async def serve(settings: CalloutSettings, stop: StopSignal) -> None:
    """Answer until `stop` is set."""
    seed = await asyncio.to_thread(settings.signing_seed)
    await asyncio.to_thread(_read_names, settings)
    issuer = settings.callout_issuer
    if settings.callout_jwks is None:
        check_encrypted(issuer)
        fetch = partial(fetch_keys, issuer)
    else:
        fetch = partial(read_keys, settings.callout_jwks)
        await asyncio.to_thread(fetch)
    keys = IssuerKeys(fetch, time.monotonic)

    def names() -> KnownNames:
        try:
            return _read_names(settings)
        except InvalidInputError as error:  # the operator's fault, not the caller's
            raise UnavailableError(error.message) from None

    async with (
        beside(keys.follow()),
        open_connection(settings.nats("ioa-authcallout")) as client,
        open_audit_log(NatsAuditSink(client), SystemClock(), "authcallout") as audit,
        open_connection(settings.asked()) as asked,
    ):
        audience, claim = settings.callout_audience, settings.callout_claim
        verifier = TokenVerifier(keys, issuer, audience, claim, audit, read_names=names, now=_now)
        async with beside(answer_callouts(asked, seed, verifier.verify, _now)):
            await stop.wait()


def _read_names(settings: CalloutSettings) -> KnownNames:
    roster = read_roster(read_text(settings.callout_roster))
    return KnownNames(lines(read_text(settings.callout_keys / REVOKED)), roster.names(), frozenset(roster.tenants))


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    run_process(SETTINGS, serve)
