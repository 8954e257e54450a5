"""The user of each group, which never changes."""

from __future__ import annotations

from nats.aio.client import Client

from ioa.adapters.nats.stores.goal_records import record_key
from ioa.adapters.nats.streams.compare_and_set import stream_of, subject_of
from ioa.adapters.nats.streams.stream_reader import first_message, latest_message
from ioa.adapters.nats.streams.topology import GOAL_RECORDS, LOG
from ioa.errors import InvalidInputError
from ioa.protocol import subjects
from ioa.protocol.codec import read_field
from ioa.protocol.ids import LOCAL, CommId, UserId


class GroupOwners:
    """Finds the user of a group: the user of its goal's record or, of a nested group, of the first entry of its log.

    Raises:
        UnavailableError: From every method.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def may_read(self, reader: UserId | None, comm_id: CommId) -> bool:
        """Return whether a reader may read a group; None reads the groups of all users."""
        return reader is None or await self.owner(comm_id) == reader

    async def owner(self, comm_id: CommId) -> UserId | None:
        """Return the user of a group; None if there is no such group yet, or its first entry cannot be read."""
        record, log = subject_of(GOAL_RECORDS, record_key(comm_id)), subjects.log(comm_id)
        goal = await latest_message(self._client, stream_of(GOAL_RECORDS), record)
        if goal is not None:
            return UserId(goal.subject.split(".")[-2])
        launch = await first_message(self._client, LOG, log)
        try:
            return None if launch is None else UserId(read_field(launch.data, "state").get("user", LOCAL))
        except (AttributeError, InvalidInputError):
            return None
