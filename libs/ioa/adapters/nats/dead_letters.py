"""Looking through the stream of dead letters, and putting one back to where it came from.

Each letter is read by its sequence, which whoever may see dead letters at all is allowed to.
"""

from __future__ import annotations

from nats.aio.client import Client
from nats.js.api import Header, PubAck, RawStreamMsg
from nats.js.errors import NotFoundError as NoSuchMessage

from ioa.adapters.nats.reading import DirectReads, ends_of
from ioa.adapters.nats.topology import DEAD
from ioa.adapters.nats.translated_errors import unavailable_unless_answered
from ioa.beside import together
from ioa.errors import NotFoundError, UnavailableError
from ioa.ports.dead_letter_box import DeadLetter, DeadLetterPage

_AT_ONCE = 64


class NatsDeadLetterBox:
    """The stream `IOA_DEAD`, for those who look after a system."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._js = DirectReads(client)

    async def page(self, *, limit: int, before: int | None = None) -> DeadLetterPage:
        """List the newest letters, or the newest of those before a number.

        Raises:
            UnavailableError: The stream does not answer.
        """
        first_seq, end = await ends_of(self._client, DEAD)
        end = end if before is None else min(before, end)
        found: list[DeadLetter] = []
        while len(found) < limit and end > first_seq:
            start = max(first_seq, end - _AT_ONCE)
            window = await together(*map(self._find, range(end - 1, start - 1, -1)))
            found += [letter for letter in window if letter is not None]
            end = start
        is_last = len(found) <= limit and end <= first_seq
        letters = found[:limit]
        return DeadLetterPage(letters, None if is_last or not letters else letters[-1].seq)

    async def read(self, seq: int) -> DeadLetter:
        """Read one letter.

        Raises:
            NotFoundError: There is none of this number, or not any more.
            UnavailableError: The stream does not answer.
        """
        letter = await self._find(seq)
        if letter is None:
            raise NotFoundError(f"There is no dead letter {seq}.", hint="`ioa dead` lists those that there are.")
        return letter

    async def put_back(self, letter: DeadLetter) -> bool:
        """Publish the message again where it was published, and take the letter out; False if it had been put back already.

        A message that is put back is the same one however often that is tried within the time in which its stream tells doubles
        by their ids, so that a try that was cut short may be repeated. Where another message has taken the id it is published
        without any, since a goal that comes twice is led once, and one that comes never is lost.

        Raises:
            InvalidInputError: It cannot be put back: it is no message of a queue, or was not kept whole.
            UnavailableError: A stream does not answer, or does not let this credential in.
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
                f"The message is back on {letter.subject}, but its dead letter could not be taken out: {error.message}",
                hint="Only an admin may. Trying again soon puts nothing back twice.",
            ) from error
        return not stored.duplicate

    async def _is_stored(self, letter: DeadLetter, stored: PubAck) -> bool:
        try:
            message = await self._client.jetstream().get_msg(stored.stream, stored.seq)
        except NoSuchMessage:
            return False
        return (message.subject, message.data or b"") == (letter.subject, letter.data)

    async def _find(self, seq: int) -> DeadLetter | None:
        with unavailable_unless_answered("The dead-letter stream"):
            try:
                return _letter(await self._js.get_msg(DEAD, seq))
            except NoSuchMessage:
                return None


def _letter(message: RawStreamMsg) -> DeadLetter:
    # What is no ASCII comes as an object of the standard library's parser of e-mails.
    headers, data = {name: str(value) for name, value in (message.headers or {}).items()}, message.data or b""
    size = headers.get("Ioa-Bytes", "")
    return DeadLetter(
        seq=message.seq or 0,
        reason=(message.subject or "").rpartition(".")[2],
        why=headers.get("Ioa-Reason", ""),
        subject=headers.get("Ioa-Subject", ""),
        at=message.time,
        data=data,
        size_bytes=int(size) if size.isdecimal() else len(data),
    )
