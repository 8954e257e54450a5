"""The dead letters as users and operators see them: pages, and publishing a letter's message again."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable

from nats.aio.client import Client
from nats.js.api import Header

from ioa.adapters.nats.streams.topology import DEAD
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import NotFoundError, UnavailableError
from ioa.protocol.operation.dead_letters import DeadLetter
from ioa.protocol.setup.reads import DeadPage, ReadDeadLetters


class NatsDeadLetterBox:
    """Reads dead letters by `ask`, which sends a `dead.page` request, and as an admin publishes their messages again."""

    def __init__(self, client: Client, ask: Callable[[ReadDeadLetters], Awaitable[DeadPage]]) -> None:
        self._js = client.jetstream()
        self._ask = ask

    async def page(self, *, limit: int, before: int | None = None) -> DeadPage:
        """List the newest letters, or the newest letters before a number, without their messages."""
        return await self._ask(ReadDeadLetters(limit=limit, before=before))

    async def read(self, seq: int) -> DeadLetter:
        """Return one letter, or raise `NotFoundError`."""
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
        with unavailable_unless_answered("The stream of the message"):
            stored = await self._js.publish(letter.subject, letter.data, headers={Header.MSG_ID.value: message_id(letter)})
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
