"""What every route is given, and how a row of the table of routes is written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from typing import Any, Generic, TypeVar

from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive

from ioa.adapters.nats.stores.webhooks import NatsWebhooks
from ioa.beside import beside
from ioa.cancellation import fail_after
from ioa.client.client import Client
from ioa.client.documents import told
from ioa.client.seat import PersonSeat
from ioa.errors import ForbiddenError, InvalidInputError, IoaError, NotFoundError, PayloadTooLargeError
from ioa.group.goal_lists import GoalStatus
from ioa.group.requests import GroupSnapshot, no_group
from ioa.protocol.api_keys import Scope
from ioa.protocol.codec import validate
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import GoalRecord
from ioa.protocol.ids import CommId, GoalId, GoalName, UserId, check_token, parse_goal_id
from ioa.protocol.labels import bears
from ioa.protocol.model import Instruction, Model
from ioa.protocol.texts import check_texts
from ioa.protocol.webhooks import Webhook
from ioa_gateway.callers import Caller
from ioa_gateway.keyring import Keyring
from ioa_gateway.limits import CallerLimits
from ioa_gateway.outward.posting import Posting
from ioa_gateway.problems import Problem
from ioa_gateway.rooms import Rooms
from ioa_gateway.seats import Seats

MAX_BODY_BYTES, MAX_FILE_BYTES = 256_000, 100_000_000

MAX_ITEMS = 500
"""Questions or open turns in one response."""

Q = TypeVar("Q", bound=Model)
B = TypeVar("B", bound=Model)
T = TypeVar("T")

BODY_SILENCE = timedelta(seconds=60)
"""How long a body may go without a byte."""
_BODY_BYTES_A_SECOND = 10_000
"""How fast a body has to come behind its first minute: a byte a minute would hold its place for months."""

_WRITTEN_AT_ONCE = 32_768
"""How many bytes of a long document are written before others have their turn: a ms or two."""

_ASKED_AGAIN = timedelta(minutes=30)
_MAX_TRACE_CHARS = 200

WITHIN = timedelta(seconds=3)
"""In which an answer has to come, and which the system has to answer in."""


class Nothing(Instruction):
    """No parameters, or no body."""


@dataclass(frozen=True)
class WebhookParts:
    """What webhooks need.

    Attributes:
        store: Where they are kept.
        posting: How they are told something.
        draw: Draws as many random bytes.
        making: Who is making one.
    """

    store: NatsWebhooks
    posting: Posting
    draw: Callable[[int], bytes]
    making: dict[UserId, asyncio.Lock] = field(default_factory=dict)

    @asynccontextmanager
    async def of_user(self, user: UserId) -> AsyncIterator[None]:
        """Make one webhook of a user at a time, so that they can be counted."""
        async with self.making.setdefault(user, asyncio.Lock()):
            yield


@dataclass(frozen=True)
class LookedAt:
    """What of how a goal stands may be kept while something else is waited for: hundreds wait, and a result takes megabytes.

    Attributes:
        record: The goal, without its team.
        standing: The group that works for it, if one was opened.
        has_ended: Whether it has a result.
    """

    record: GoalRecord
    standing: GroupSnapshot | None
    has_ended: bool


@dataclass(frozen=True)
class ApiCall:
    """A request that was let in.

    Attributes:
        caller: Who asks.
        client: The system as the caller's user sees it.
        rooms: What happens in groups, read once for all who follow them.
        keyring: Who is let in.
        limits: What a key may use up.
        hooks: What webhooks need.
        path: What stands in the path, by name.
        session: The session cookie, if any. It is not verified where no caller is required.
        is_secure: Whether it came by HTTPS.
        sent: The body as it comes, of a route that takes one of bytes.
        left: Waits until whoever asks has gone; for when the body is read.
        seats: The seats of people that the gateway speaks for.
    """

    caller: Caller
    client: Client
    rooms: Rooms
    keyring: Keyring
    limits: CallerLimits
    hooks: WebhookParts
    path: Mapping[str, str]
    headers: Headers
    session: str | None
    is_secure: bool
    sent: AsyncIterator[bytes]
    left: Callable[[], Awaitable[None]]
    seats: Seats

    @asynccontextmanager
    async def seat(self, person: str) -> AsyncIterator[PersonSeat]:
        """Take the seat of a person that the caller may answer as, in its turn.

        Raises:
            ForbiddenError: The key is not for that, or the gateway has no key of the seat.
            InvalidInputError: Nobody can be called so.
        """
        self.caller.check_person(person)
        yield await self.seats.of(person)

    async def goal(self, user: UserId | None, goal_id: str | None = None) -> GoalName:
        """Name a goal, that of the path by default: the caller's own, unless it is said whose.

        Raises:
            NotFoundError: The caller sees only goals with his labels, or may not read others' goals, and there is none like it
                among those that he knows.
        """
        name = GoalName(user or self.caller.user, parse_goal_id(self.path["goal_id"] if goal_id is None else goal_id))
        if not self._may_know(name.owner):
            raise _no_goal(name)
        if self.caller.labels:
            await self._check_seen(name)
        return name

    @asynccontextmanager
    async def looking(self, name: GoalName, *, with_team: bool) -> AsyncIterator[GoalStatus]:
        """Look at a goal in a turn of the caller's user, which lasts as long as the block: what is read may take megabytes.

        Pages are read in the same turn, and none is waited for in the block: two such calls would wait for each other.

        Raises:
            NotFoundError: There is no such goal.
        """
        async with self.limits.pages.slot(self.caller.user):
            yield await self.client.goal(name, with_team=with_team)

    async def look(self, name: GoalName) -> LookedAt:
        """Look at a goal without its team, and whether it has ended; who tells its result looks in a turn, by `looking`.

        Raises:
            NotFoundError: There is no such goal.
        """
        async with self.looking(name, with_team=False) as status:
            return LookedAt(status.record, status.standing, status.result is not None)

    async def webhooks(self, is_wanted: Callable[[Webhook], bool]) -> Sequence[Webhook]:
        """Read some webhooks, in a turn of the caller's user; of others nothing is kept."""
        async with self.limits.pages.slot(self.caller.user):
            return [hook async for hook in self.hooks.store.all() if is_wanted(hook)]

    async def group(self) -> CommId:
        """Name the group of the path.

        Raises:
            NotFoundError: The caller sees only goals with his labels, or may not read others' goals, and this group works for
                none that he knows.
        """
        try:
            comm_id = CommId(check_token(self.path["comm_id"]))
        except ValueError as error:
            raise InvalidInputError(str(error)) from None
        if self.caller.labels or self.caller.owner is not None:
            try:
                found = await self.client.group(comm_id)
            except NotFoundError:
                raise no_group(comm_id) from None
            owner = GoalName(found.state.user, found.state.goal_id).owner
            labels = {} if found.charter is None else found.charter.labels
            if not (self._may_know(owner) and bears(labels, self.caller.labels)):
                raise no_group(comm_id)
        return comm_id

    async def while_let_in(self, waited: Awaitable[T]) -> T:
        """Wait for something for as long as the caller's key lets in.

        Raises:
            UnauthenticatedError: It does no more.
        """
        async with beside(self.keyring.watch(self.caller)):
            found = await waited
        self.keyring.check(self.caller)
        return found

    async def while_asked(self, waited: Awaitable[T]) -> T:
        """Wait for something for as long as the caller's key lets in, and he has not gone.

        Raises:
            UnauthenticatedError: It does no more.
            ClientDisconnect: He has.
        """

        async def leave() -> None:
            await self.left()
            raise ClientDisconnect

        async with beside(leave()):
            return await self.while_let_in(waited)
        raise AssertionError("the block returns, or raises")

    async def goal_id_of_words(self, entrance: str, kind: str, *words: str) -> GoalId:
        """Derive a goal's id of what the caller says: the same within half an hour, and never after a full one."""
        period = int(self.keyring.now().timestamp() // _ASKED_AGAIN.total_seconds())
        before, now = (self.caller.goal_id(entrance, kind, json.dumps([*words, one])) for one in (period - 1, period))
        try:
            await self.look(GoalName(self.caller.user, before))
        except NotFoundError:
            return now
        return before

    def with_caller(self, order: GoalOrder) -> GoalOrder:
        """Add the caller's labels to an order, and the trace of the request unless the order has one.

        Raises:
            ForbiddenError: It has another value of one of them.
        """
        if other := [name for name, value in self.caller.labels.items() if order.labels.get(name, value) != value]:
            raise ForbiddenError(f"This key launches goals with a label {other[0]} of its own.", hint="Leave that label out.")
        said = {name: getattr(order, name) for name in order.model_fields_set}
        if self.caller.labels:
            said["labels"] = {**order.labels, **self.caller.labels}
        if not order.traceparent and (trace := self.headers.get("traceparent", "")):
            said["traceparent"] = trace[:_MAX_TRACE_CHARS]
        return GoalOrder.model_validate(said)

    async def _check_seen(self, name: GoalName) -> None:
        try:
            goal = (await self.look(name)).record.goal
        except NotFoundError:
            raise _no_goal(name) from None
        if not bears(goal.labels, self.caller.labels):
            raise _no_goal(name)

    def _may_know(self, owner: UserId) -> bool:
        """Return whether the caller may learn that a goal of a user exists."""
        return owner == self.caller.user or self.caller.owner is None


def _no_goal(name: GoalName) -> NotFoundError:
    return NotFoundError(f"There is no goal {name}.", hint="`ioa goals` lists them.")


@dataclass(frozen=True)
class ApiRow(Generic[Q, B]):
    """One line of the table of routes.

    Attributes:
        path: With `{names}`.
        scopes: What a key must be for, all of it; nothing lets everybody in.
        does: What happens, in the imperative.
        handle: Does it.
        query: Its parameters.
        body: What is sent; `Nothing` reads none.
        read: Reads the body, if it is no JSON of its class alone, and has what that takes until the answer begins.
        answers: What each status means that is no error.
        told: What an answer holds, by its status; nothing of one that has no JSON.
        errors: What may go wrong besides what every route may answer.
        within: In which the answer has to begin.
        media_type: Of the answer.
        headers: Headers that it heeds, and what each says.
        takes_bytes: Whether `ApiCall.sent` is read, in place of a body of JSON.
        tells: How its clients read what went wrong.
    """

    method: str
    path: str
    _: KW_ONLY
    scopes: tuple[Scope, ...]
    does: str
    handle: Callable[[ApiCall, Q, B], Awaitable[Response]]
    query: type[Q] = Nothing  # type: ignore[assignment]  # a test holds both to what `handle` takes
    body: type[B] = Nothing  # type: ignore[assignment]
    read: Callable[[ApiCall, bytes], AbstractAsyncContextManager[B]] | None = None
    answers: Mapping[int, str]
    told: Mapping[int, type[BaseModel]] = field(default_factory=dict)
    errors: tuple[type[IoaError], ...] = ()
    within: timedelta = WITHIN
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    takes_bytes: bool = False
    tells: Callable[[Problem], Problem] = lambda problem: problem

    @asynccontextmanager
    async def read_body(self, call: ApiCall, data: bytes) -> AsyncIterator[B]:
        """Read what was sent, for as long as the block.

        Raises:
            InvalidInputError: It is no such body.
        """
        if self.read is None:
            yield validate(self.body, read_object(data))
        else:
            async with self.read(call, data) as body:
                yield body


async def left(receive: Receive) -> None:
    """Wait until whoever has sent a request, whose body is read, has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def sent(request: Request, most: int, check: Callable[[], None]) -> AsyncIterator[bytes]:
    """Yield a body as it comes.

    Args:
        request: What is read.
        most: How many bytes.
        check: Called at each part, and when the body is whole; raises if nothing of it is to be read any more.

    Raises:
        PayloadTooLargeError: It has more bytes than that.
        HTTPException: It does not come, or very slowly.
    """
    now, silence = asyncio.get_running_loop().time, BODY_SILENCE.total_seconds()
    size, waited, parts = 0, 0.0, request.stream()
    while True:
        begun = now()
        try:
            async with fail_after(min(silence, silence + size / _BODY_BYTES_A_SECOND - waited)):
                part = await anext(parts, None)
        except TimeoutError:
            raise HTTPException(408, "The body did not come.") from None
        waited += now() - begun  # and not what it takes to store a part
        check()
        if part is None:
            return
        size += len(part)
        if size > most:
            raise PayloadTooLargeError(
                f"The body has more than {most:,} bytes.", hint="Files go to /v1/uploads, up to 100 MB each."
            )
        yield part


def announced(request: Request, most: int) -> int:
    """Return how many bytes a body is to have: `most` if its head does not say."""
    unsized = most if "transfer-encoding" in request.headers else 0
    return int(request.headers.get("content-length", unsized))


async def replayed(request: Request, parts: AsyncIterator[bytes], check: Callable[[bytes], None]) -> Receive:
    """Read and check a whole body; return a `receive` that returns it again, for a library that reads without limits.

    Args:
        request: The request.
        parts: Its body.
        check: Raises if the body is invalid.
    """
    body = [b"".join([part async for part in parts])]
    check(body[0])

    async def receive() -> Message:
        if body:
            return {"type": "http.request", "body": body.pop(), "more_body": False}
        return await request.receive()

    return receive


def read_object(data: bytes) -> dict[str, Any]:
    """Read an object of JSON.

    Raises:
        InvalidInputError: It is none, is nested too deep, or holds a text that nothing can store.
    """
    try:
        found = json.loads(data or b"{}", parse_constant=_no_number)
        check_texts(found, "body")
    except InvalidInputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"The body is no JSON: {str(error)[:200]}.") from None
    if not isinstance(found, dict):
        raise InvalidInputError("The body is no JSON object.")
    return found


def check_json(data: bytes) -> None:
    """Reject JSON that libraries fail to parse: NaN, Infinity, too long numbers and too deep nesting. Syntax errors pass.

    Raises:
        InvalidInputError: The body contains one of these.
    """
    try:
        json.loads(data, parse_constant=_no_number)
    except json.JSONDecodeError:
        pass
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"The body is no JSON: {str(error)[:200]}.") from None


def _no_number(said: str) -> None:
    """Refuse what `json` reads and no JSON is (RFC 8259): NaN and Infinity."""
    raise ValueError(f"{said} is no number")


async def document_of_many(found: Mapping[str, Any], name: str, parts: Iterable[BaseModel]) -> Response:
    """Answer with a document one list of which is long: it is written little by little, and others' requests go on between."""
    written, size = list[bytes](), 0
    for part in parts:
        written.append(written_part(part))
        size += len(written[-1])
        if size >= _WRITTEN_AT_ONCE:
            size = 0
            await asyncio.sleep(0)
    return document_of_parts(found, name, written)


def document_of_parts(found: Mapping[str, Any], name: str, parts: Iterable[bytes]) -> Response:
    """Answer with a document one list of which is written: as bytes, so that a wide character in one part widens no other."""
    head = "".join(f"{_written({key: value})[1:-1]}," for key, value in found.items())
    return Response(b'{%b"%b":[%b]}' % (head.encode(), name.encode(), b",".join(parts)), media_type="application/json")


def written_part(part: BaseModel) -> bytes:
    """Write what stands in a list."""
    return _written(told(part)).encode()


def document(found: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Answer with a document."""
    return Response(_written(found), status, headers, "application/json")


def _written(found: Mapping[str, Any]) -> str:
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))
