"""The stream `IOA_AUDIT`: lines of the audit log as JSON, one subject for each action. No credential deletes or purges lines."""

from __future__ import annotations

from nats.aio.client import Client
from nats.js.api import Header

from ioa.adapters.nats.auth.identity import ask_caller
from ioa.adapters.nats.requests.request import NatsRequester
from ioa.adapters.nats.streams.stream import Stream
from ioa.adapters.nats.streams.topology import AUDIT
from ioa.protocol import subjects
from ioa.protocol.operation.audit import AuditLine
from ioa.protocol.setup.reads import AuditPage, ReadAudit


class NatsAuditSink:
    """Writes lines."""

    def __init__(self, client: Client) -> None:
        self._stream = Stream(client, AUDIT)

    async def put(self, line: AuditLine, *, key: str) -> None:
        """Publish a line; the stream drops a line whose key it knows."""
        data = line.model_dump_json(exclude_defaults=True).encode()
        await self._stream.publish(subjects.audit(line.deed), data, {Header.MSG_ID.value: key})


class NatsAuditTrail:
    """Reads the audit log, as an auditor or admin."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._requester = NatsRequester(client)

    async def page(self, *, limit: int, before: int | None = None) -> AuditPage:
        """Read the newest lines, or the newest lines before a number."""
        subject = subjects.auditor((await ask_caller(self._client)).name, subjects.AUDIT_PAGE)
        return await self._requester.request(subject, ReadAudit(limit=limit, before=before), AuditPage)
