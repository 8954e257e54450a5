"""The stream `IOA_AUDIT`: lines of the audit log as JSON, one subject for each action. No credential deletes or purges lines."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import suppress

from nats.aio.client import Client
from nats.js.api import Header
from pydantic import ValidationError

from ioa.adapters.nats.auth.identity import ask_caller
from ioa.adapters.nats.requests.request import NatsRequester
from ioa.adapters.nats.streams.follow import open_attention
from ioa.adapters.nats.streams.stream_reader import StreamMessage, next_messages, previous_messages
from ioa.adapters.nats.streams.topology import AUDIT
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import UnavailableError
from ioa.protocol import subjects
from ioa.protocol.audit import AuditLine
from ioa.protocol.reads import AuditPage, ReadAudit

_TIMEOUT_SECONDS = 5.0


class NatsAuditSink:
    """Writes lines."""

    def __init__(self, client: Client) -> None:
        self._js = client.jetstream()

    async def put(self, line: AuditLine, *, key: str) -> None:
        """Publish a line; the stream drops a line whose key it knows."""
        with unavailable_unless_answered("The audit log"):
            data = line.model_dump_json(exclude_defaults=True).encode()
            headers = {Header.MSG_ID.value: key}
            await self._js.publish(subjects.audit(line.deed), data, stream=AUDIT, timeout=_TIMEOUT_SECONDS, headers=headers)


async def read_audit_page(client: Client, request: ReadAudit) -> AuditPage:
    """Answer `audit.page`. Lines that cannot be read are left out.

    Raises:
        UnavailableError: The stream does not answer.
    """
    if request.after is not None:
        following = await next_messages(client, AUDIT, subjects.ANY_AUDIT, after=request.after, limit=request.limit)
        upto = following.messages[-1].seq if following.messages else 0
        return AuditPage(lines=tuple(_lines(following.messages)), upto=upto)
    page = await previous_messages(client, AUDIT, before=request.before, limit=request.limit)
    return AuditPage(lines=tuple(_lines(page.messages)), before=page.before, upto=page.messages[0].seq if page.messages else 0)


class NatsAuditTrail:
    """Reads the audit log, as an auditor or admin."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._requester = NatsRequester(client)

    async def page(self, *, limit: int, before: int | None = None) -> AuditPage:
        """Read the newest lines, or the newest lines before a number.

        Raises:
            UnavailableError: Group setup does not answer.
            NotPermittedError: The credential is not an auditor's.
        """
        return await self._ask(ReadAudit(limit=limit, before=before))

    async def follow(self, after: int) -> AsyncGenerator[AuditLine, None]:
        """Yield each line after a number and then each new line, until cancelled."""
        async with open_attention(self._client, subjects.ANY_AUDIT) as attention:
            while True:
                with suppress(UnavailableError):
                    page = await self._ask(ReadAudit(after=after))
                    for _, line in page.lines:
                        yield line
                    if page.upto:
                        after = page.upto
                        continue
                await attention.wait()

    async def _ask(self, request: ReadAudit) -> AuditPage:
        subject = subjects.auditor((await ask_caller(self._client)).name, subjects.AUDIT_PAGE)
        return await self._requester.request(subject, request, AuditPage, is_repeatable=True)


def _lines(messages: Sequence[StreamMessage]) -> Iterator[tuple[int, AuditLine]]:
    for message in messages:
        with suppress(ValidationError):
            yield message.seq, AuditLine.model_validate_json(message.data)
