"""The stream of dead letters: reading it for users, and putting a letter back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from nats.aio.client import Client
from nats.js.api import Header, PubAck
from nats.js.errors import NotFoundError as NoSuchMessage

from ioa.adapters.nats.stores.group_owners import GroupOwners
from ioa.adapters.nats.streams.stream_reader import StreamMessage, latest_messages, message_at, previous_messages
from ioa.adapters.nats.streams.topology import DEAD
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import InvalidInputError, NotFoundError, UnavailableError
from ioa.page_size import count_page
from ioa.protocol import subjects
from ioa.protocol.dead_letters import DeadLetter, DeadLetterPage
from ioa.protocol.ids import UserId
from ioa.protocol.reads import MAX_PAGE_BYTES, DeadPage, DeadRow, GoalReader, ReadDeadLetters

_EXAMINED = 64
"""Letters that are examined for one page of a user's letters."""


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
            return await self._readable(reader, [] if found is None else [found])
        if request.reason:
            newest = await latest_messages(self._client, DEAD, [subjects.dead(request.reason)])
            return await self._readable(reader, [*newest.values()])
        limit = request.limit if reader.reads_all else max(request.limit, _EXAMINED)
        page = await previous_messages(self._client, DEAD, before=request.before, limit=limit, max_bytes=MAX_PAGE_BYTES // 2)
        return await self._readable(reader, page.messages, page.before, request.limit)

    async def _readable(
        self, reader: GoalReader, messages: Sequence[StreamMessage], before: int | None = None, limit: int = 1
    ) -> DeadPage:
        found = [one for one in messages if reader.reads_all or await self._owner(one) == reader.user]
        count = count_page((len(one.data) for one in found), MAX_PAGE_BYTES, limit)
        while count > 1 and sum(len(one.data) for one in found[:count]) > MAX_PAGE_BYTES:
            count -= 1
        if count < len(found):
            before = found[count - 1].seq
        data = b"".join([one.data for one in found[:count]])
        return DeadPage(letters=tuple(map(_row, found[:count])), before=before, data=data)

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
    """Reads dead letters, and puts one back as an admin.

    Args:
        client: The connection.
        ask: Sends a `dead.page` request.
    """

    def __init__(self, client: Client, ask: Callable[[ReadDeadLetters], Awaitable[DeadPage]]) -> None:
        self._client = client
        self._js = client.jetstream()
        self._ask = ask

    async def page(self, *, limit: int, before: int | None = None) -> DeadLetterPage:
        """List the newest letters, or the newest letters before a number; fewer than `limit` if they are large."""
        page = await self._ask(ReadDeadLetters(limit=limit, before=before))
        return DeadLetterPage(_letters(page), page.before)

    async def newest(self, reason: str) -> DeadLetter | None:
        """Read the newest letter of a reason; None if there is none that the caller may read."""
        return next(iter(_letters(await self._ask(ReadDeadLetters(reason=reason)))), None)

    async def read(self, seq: int) -> DeadLetter:
        """Read one letter.

        Raises:
            NotFoundError: There is no letter with this number, or it was removed.
        """
        for letter in _letters(await self._ask(ReadDeadLetters(seq=seq))):
            return letter
        raise NotFoundError(f"There is no dead letter {seq}.", hint="`ioa dead` lists the dead letters.")

    async def put_back(self, letter: DeadLetter) -> bool:
        """Publish the message again on its subject, and remove the letter; False if it had been put back already.

        The message has an id, so that a repeated call publishes nothing twice within the time in which the stream remembers ids.
        If another message has taken the id, it is published without one: a goal that arrives twice is led once, and a goal that
        never arrives is lost.

        Raises:
            InvalidInputError: The message is not of a queue, or was not stored whole.
            UnavailableError: A stream does not answer, or does not permit this credential.
        """
        letter.check_returnable()
        headers = {Header.MSG_ID.value: f"dead/{letter.seq}"}
        with unavailable_unless_answered("The stream of the message"):
            stored = await self._js.publish(letter.subject, letter.data, headers=headers)
            if stored.duplicate and not await self._is_stored(letter, stored):
                stored = await self._js.publish(letter.subject, letter.data)
        try:
            with unavailable_unless_answered("The dead-letter stream"):
                await self._js.delete_msg(DEAD, letter.seq)
        except UnavailableError as error:
            raise UnavailableError(
                f"The message is back on {letter.subject}, but its dead letter could not be removed: {error.message}",
                hint="Only an admin may remove it. A retry does not publish the message twice.",
            ) from error
        return not stored.duplicate

    async def _is_stored(self, letter: DeadLetter, stored: PubAck) -> bool:
        try:
            message = await self._client.jetstream().get_msg(stored.stream, stored.seq)
        except NoSuchMessage:
            return False
        return (message.subject, message.data or b"") == (letter.subject, letter.data)


def _row(message: StreamMessage) -> DeadRow:
    size = message.headers.get("Ioa-Bytes", "")
    return DeadRow(
        seq=message.seq,
        reason=message.subject.rpartition(".")[2],
        why=message.headers.get("Ioa-Reason", ""),
        subject=message.headers.get("Ioa-Subject", ""),
        at=message.stored_at,
        size_bytes=int(size) if size.isdecimal() else len(message.data),
        size=len(message.data),
    )


def _letters(page: DeadPage) -> list[DeadLetter]:
    documents = page.split([row.size for row in page.letters])
    return [
        DeadLetter(
            seq=row.seq, reason=row.reason, why=row.why, subject=row.subject, at=row.at, data=data, size_bytes=row.size_bytes
        )
        for row, data in zip(page.letters, documents, strict=True)
    ]
