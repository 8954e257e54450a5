"""The stream of dead letters: pages for users and operators, and publishing a letter's message again."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable

from nats.aio.client import Client
from nats.js.api import Header

from ioa.adapters.nats.streams.log_reader import GroupOwners
from ioa.adapters.nats.streams.stream_reader import StreamMessage, message_at, previous_messages
from ioa.adapters.nats.streams.topology import DEAD
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import InvalidInputError, NotFoundError, UnavailableError
from ioa.protocol import subjects
from ioa.protocol.dead_letters import DeadLetter
from ioa.protocol.ids import UserId
from ioa.protocol.reads import MAX_PAGE_BYTES, DeadPage, GoalReader, ReadDeadLetters

_EXAMINED = 64
"""Letters that are examined for one page of a user's letters."""
_MAX_ROWS = 300
"""Maximum letters of a page; reason and subject of a letter have at most 1,000 characters each."""


class DeadLetterReader:
    """Answers `dead.page`. A user reads the letters of its own goals and groups.

    Args:
        client: The connection.
        owners: Finds the user of each group.
    """

    def __init__(self, client: Client, owners: GroupOwners) -> None:
        self._client = client
        self._owners = owners

    async def page(self, reader: GoalReader, request: ReadDeadLetters) -> DeadPage:
        """Read letters. A letter that does not exist, or that the reader may not read, is missing.

        Raises:
            UnavailableError: The stream does not answer.
        """
        if request.seq is not None:
            found = await message_at(self._client, DEAD, request.seq)
            if found is None or not await self._may_read(reader, found):
                return DeadPage(letters=(), data=b"")
            return DeadPage(letters=(_letter(found),), data=found.data)
        limit = min(request.limit, _MAX_ROWS)
        examined = limit if reader.reads_all else max(limit, _EXAMINED)
        page = await previous_messages(self._client, DEAD, before=request.before, limit=examined, max_bytes=MAX_PAGE_BYTES)
        readable = [one for one in page.messages if await self._may_read(reader, one)]
        before = readable[limit - 1].seq if len(readable) > limit else page.before
        return DeadPage(letters=tuple(map(_letter, readable[:limit])), before=before, data=b"")

    async def _may_read(self, reader: GoalReader, message: StreamMessage) -> bool:
        return reader.reads_all or await self._owner(message) == reader.user

    async def _owner(self, message: StreamMessage) -> UserId | None:
        """Return the user whose goal or group a letter is about; None if its subject names neither."""
        subject = message.headers.get("Ioa-Subject", "")
        try:
            return subjects.parse_goal_subject(subject)[0]
        except InvalidInputError:
            pass
        try:
            return await self._owners.owner(subjects.parse_comm(subject))
        except InvalidInputError:
            return None


class NatsDeadLetterBox:
    """Reads dead letters, and as an admin publishes their messages again.

    Args:
        client: The connection.
        ask: Sends a `dead.page` request.
    """

    def __init__(self, client: Client, ask: Callable[[ReadDeadLetters], Awaitable[DeadPage]]) -> None:
        self._js = client.jetstream()
        self._ask = ask

    async def page(self, *, limit: int, before: int | None = None) -> DeadPage:
        """List the newest letters, or the newest letters before a number, without their messages."""
        return await self._ask(ReadDeadLetters(limit=limit, before=before))

    async def read(self, seq: int) -> DeadLetter:
        """Return one letter.

        Raises:
            NotFoundError: There is no letter with this number, or it was removed.
        """
        page = await self._ask(ReadDeadLetters(seq=seq))
        for letter in page.letters:
            return letter.model_copy(update={"data": page.data})
        raise NotFoundError(f"There is no dead letter {seq}.", hint="`ioa dead` lists the dead letters.")

    async def put_back(self, letter: DeadLetter) -> bool:
        """Publish the message again on its subject, and remove the letter; return False if an earlier call has published it.

        The message id contains the digest of the message, so that no other user can use the id before.

        Raises:
            InvalidInputError: The message is not of a queue, or was not stored whole.
            UnavailableError: A stream does not answer, or does not permit this credential.
        """
        letter.check_returnable()
        headers = {Header.MSG_ID.value: message_id(letter)}
        with unavailable_unless_answered("The stream of the message"):
            stored = await self._js.publish(letter.subject, letter.data, headers=headers)
        try:
            with unavailable_unless_answered("The dead-letter stream"):
                await self._js.delete_msg(DEAD, letter.seq)
        except UnavailableError as error:
            raise UnavailableError(
                f"The message is back on {letter.subject}, but its dead letter could not be removed: {error.message}",
                hint="Only an admin may remove it. A retry does not publish the message twice.",
            ) from error
        return not stored.duplicate


def message_id(letter: DeadLetter) -> str:
    """Return the id of a letter's message when it is published again."""
    return f"dead/{letter.seq}/{hashlib.sha256(letter.data).hexdigest()}"


def _letter(message: StreamMessage) -> DeadLetter:
    size = message.headers.get("Ioa-Bytes", "")
    return DeadLetter(
        seq=message.seq,
        reason=message.subject.rpartition(".")[2],
        why=message.headers.get("Ioa-Reason", ""),
        subject=message.headers.get("Ioa-Subject", ""),
        at=message.stored_at,
        size_bytes=int(size) if size.isdecimal() else len(message.data),
    )
