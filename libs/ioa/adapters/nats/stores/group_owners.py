"""The user of each group, which never changes."""

from __future__ import annotations

from nats.aio.client import Client

from ioa.adapters.nats.stores.goal_records import record_key
from ioa.adapters.nats.streams.compare_and_set import stream_of, subject_of
from ioa.adapters.nats.streams.stream_reader import first_messages, latest_messages
from ioa.adapters.nats.streams.topology import GOAL_RECORDS, LOG
from ioa.errors import InvalidInputError
from ioa.protocol import subjects
from ioa.protocol.codec import read_field
from ioa.protocol.ids import LOCAL, CommId, UserId

_MAX_KNOWN = 10_000
"""Maximum cached users of groups."""


class GroupOwners:
    """Finds the user of a group: the user of its goal's record or, of a nested group, of the first entry of its log.

    Args:
        client: The connection.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[CommId, UserId] = {}

    async def may_read(self, reader: UserId | None, comm_id: CommId) -> bool:
        """Return whether a reader may read a group; None reads the groups of all users.

        Raises:
            UnavailableError: The group's user cannot be read now.
        """
        return reader is None or await self.owner(comm_id) == reader

    async def owner(self, comm_id: CommId) -> UserId | None:
        """Return the user of a group; None if there is no such group yet.

        Raises:
            UnavailableError: It cannot be read now.
        """
        owner = self._known.get(comm_id) or await self._read(comm_id)
        if owner is not None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[comm_id] = owner
        return owner

    async def _read(self, comm_id: CommId) -> UserId | None:
        record, log = subject_of(GOAL_RECORDS, record_key(comm_id)), subjects.log(comm_id)
        goal = (await latest_messages(self._client, stream_of(GOAL_RECORDS), [record])).get(record)
        if goal is not None:
            return UserId(goal.subject.split(".")[-2])
        launch = (await first_messages(self._client, LOG, [log])).get(log)
        return None if launch is None else _read_user(launch.data)


def _read_user(entry: bytes) -> UserId | None:
    """Return the user in the state of an encoded entry; None if it cannot be read."""
    try:
        state = read_field(entry, "state")
    except InvalidInputError:
        return None
    user = state.get("user", LOCAL) if isinstance(state, dict) else None
    return UserId(user) if isinstance(user, str) else None
