"""The stream `IOA_AUDIT`: lines of the audit log as JSON, one subject for each deed. Nobody deletes or purges any of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from nats.aio.client import Client
from nats.js.api import Header
from pydantic import ValidationError

from ioa.adapters.nats.following import follow_subject
from ioa.adapters.nats.reading import previous_messages
from ioa.adapters.nats.topology import AUDIT
from ioa.adapters.nats.translated_errors import unavailable_unless_answered
from ioa.ports.audit_trail import AuditPage
from ioa.protocol import subjects
from ioa.protocol.audit import AuditLine

_TIMEOUT_SECONDS = 5.0
_PAGE = 250


class NatsAuditSink:
    """Puts lines into the stream."""

    def __init__(self, client: Client) -> None:
        self._js = client.jetstream()

    async def put(self, line: AuditLine, *, key: str) -> None:
        """Publish a line; the stream drops what it has seen the key of."""
        with unavailable_unless_answered("The audit log"):
            data = line.model_dump_json(exclude_defaults=True).encode()
            headers = {Header.MSG_ID.value: key}
            await self._js.publish(subjects.audit(line.deed), data, stream=AUDIT, timeout=_TIMEOUT_SECONDS, headers=headers)


class NatsAuditTrail:
    """Reads the stream."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def page(self, *, limit: int, before: int | None = None) -> AuditPage:
        """Read the newest lines, or the newest of those before a number. What cannot be read is left out.

        Raises:
            UnavailableError: The stream does not answer, or who asks may not read it.
        """
        page = await previous_messages(self._client, AUDIT, before=before, limit=limit)
        lines = [(message.seq, line) for message in page.messages if (line := _line(message.data)) is not None]
        return AuditPage(lines, page.before)

    async def follow(self, after: int) -> AsyncGenerator[AuditLine, None]:
        """Yield each line behind a number and then each new one, for ever."""
        async with aclosing(follow_subject(self._client, AUDIT, subjects.ANY_AUDIT, after=after)) as messages:
            async for message in messages:
                line = _line(message.data)
                if line is not None:
                    yield line


def _line(data: bytes) -> AuditLine | None:
    try:
        return AuditLine.model_validate_json(data)
    except ValidationError:  # of a newer version
        return None
