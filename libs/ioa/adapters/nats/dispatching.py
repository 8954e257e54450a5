"""Dispatches requests side by side, within bounds, so that nobody gets more than his share.

What each caller may ask is counted (`ioa.quotas`), and what there is no room for at once is answered in turns. One that has waited
here for longer than its caller will is dropped.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, TypeAlias, cast

import nats.errors
import structlog
from nats.aio.msg import Msg
from nats.micro.request import ERROR_CODE_HEADER, ERROR_HEADER, Request

from ioa.adapters.nats.endpoints import Bounds, HeadedAnswer, ServiceEndpoint
from ioa.adapters.nats.headers import header_bytes, written_bytes
from ioa.adapters.nats.listening import Listener
from ioa.adapters.nats.permissions import SHOWN_ASKER
from ioa.adapters.nats.publishing import publish_to_each
from ioa.adapters.nats.reply_headers import error_headers, one_line, patience_in
from ioa.adapters.nats.request_metrics import kind_of, request_seconds, requests
from ioa.errors import (
    ErrorRow,
    Fault,
    IoaError,
    PayloadTooLargeError,
    RateLimitedError,
    UnavailableError,
    row_of,
)
from ioa.json_text import parse_json
from ioa.ports.inspection import SlowedCaller
from ioa.protocol.codec import check_size
from ioa.quotas import Admitted, Buckets, Family, Holding, QuotaRefusal, Rate
from ioa.telemetry import log_context
from ioa.telemetry.logs import OneASecond

_DISMISSED, _DISMISSED_SECONDS = Rate(1_000, 8_000), 5.0
"""How often those who have been told when to come back, and go on regardless, are told again, all together, and what: the server
keeps a request between accounts, with its reply subject of up to 8 kB, until it is answered or long afterwards. At once that is all
that comes from who floods several subjects before he is closed out."""
_SHORT_SECONDS = 0.001
"""What takes no longer by the clock had the processor for itself. For so long, too, what was read of the processor's time is
believed: what others have had of it since is charged to whose step takes longer."""
_MOST_FREE = 16
"""How many tasks wait for the next requests, beside those that answer."""
_NO_ROOM_SECONDS = 1.0
"""When somebody is to come back for whom too many requests wait already."""
_SHARED_PART, _SHARED_SECONDS, _SHARED_AT_ONCE = 0.25, 0.5, 4
"""Which part of its time a replica gives to those subjects, after so many seconds at once, and how many it answers side by side.
One request may cost a thousand times what another does."""
_CALLER_CHARS = 64
_RATE_LIMITED = row_of(RateLimitedError).wire_code
_UNANSWERED = "unanswered"

_log = structlog.get_logger(__name__)


def _dismissal() -> bytes:
    """Return what is written behind the subject of such an answer."""
    error = RateLimitedError("This is asked too often.", retry_after=timedelta(seconds=_DISMISSED_SECONDS), hint="Come back later.")
    headers = error_headers(error) | {ERROR_HEADER: error.message, ERROR_CODE_HEADER: _RATE_LIMITED}
    block = "NATS/1.0\r\n{}\r\n".format("".join(f"{name}: {value}\r\n" for name, value in headers.items())).encode()
    return b"%d %d\r\n%b\r\n" % (len(block), len(block), block)


_DISMISSAL = _dismissal()


@dataclass(frozen=True)
class _Waiting:
    """A request for which there was no room when it came."""

    endpoint: ServiceEndpoint
    caller: str
    request: Request
    until: float
    """When its caller has gone, by the loop's clock."""


class _Turns:
    """The lanes that wait for their turns at a part of what is answered at once, and at a part of the time."""

    def __init__(self, most: int, part: float | None = None) -> None:
        self.most = most
        self.part = part
        self.in_flight = 0
        self.lanes: deque[_Lane] = deque()
        self.waking: asyncio.TimerHandle | None = None
        self._full_at = 0.0

    def spend(self, seconds: float, now: float) -> None:
        """Take so much off the time that is left."""
        if self.part is not None:
            self._full_at = max(self._full_at, now) + seconds / self.part

    def wait(self, now: float) -> float:
        """In how many seconds there is time again; 0 if there is."""
        return 0.0 if self.part is None else max(0.0, self._full_at - now - _SHARED_SECONDS / self.part)


class _Lane:
    """The requests of one load. `in_turn` says that some wait for which the lane has room, so that the others' turns come first."""

    __slots__ = ("in_flight", "in_turn", "key", "most", "turns", "waiting")

    def __init__(self, key: str, most: int, turns: _Turns) -> None:
        self.key = key
        self.most = most
        self.turns = turns
        self.in_flight = 0
        self.in_turn = False
        self.waiting: deque[_Waiting] = deque()


_Begun: TypeAlias = tuple[_Lane, ServiceEndpoint, str, Request]


class _Kept:
    """What waits of one caller."""

    __slots__ = ("bytes", "number")

    def __init__(self) -> None:
        self.number = self.bytes = 0


class RequestDispatcher:
    """Answers requests side by side, within bounds, and lets each lane have its turn."""

    def __init__(
        self,
        group: asyncio.TaskGroup,
        bounds: Bounds,
        slowed: Callable[[str, Family], None],
        write: Callable[[bytes], Awaitable[None]],
    ) -> None:
        self._group = group
        self._bounds = bounds
        self._slowed = slowed
        self._write = write
        self._loop = asyncio.get_running_loop()
        self._waiting = 0
        self._waiting_bytes = 0
        self._lanes: dict[str, _Lane] = {}
        self._kept: dict[str, _Kept] = {}
        self._buckets = Buckets(bounds.rates)
        self._holding = Holding()
        self._core = _Core()
        self._turns = _Turns(bounds.max_concurrent)
        self._shared = _Turns(_SHARED_AT_ONCE, _SHARED_PART)
        self._free: list[asyncio.Future[_Begun | None]] = []
        """What those tasks wait for that have nothing to answer."""
        self._closed = False
        self._failed = OneASecond(self._loop.time)
        self._dismissed = Buckets({Family.OTHERS: _DISMISSED})
        self._dismissals: list[str] = []
        self.taken = Counter[str]()
        """How many requests were taken, by endpoint."""

    def callers(self) -> Iterable[str]:
        """Return who has asked before."""
        return self._buckets.callers()

    def take(self, endpoint: ServiceEndpoint, listener: Listener, message: Msg) -> None:
        """Answer a request as soon as there is room. One that comes after all is closed was not taken."""
        if self._closed:
            return
        caller = ""
        if endpoint.caller_at is not None:
            caller = message.subject.split(".")[endpoint.caller_at]
        elif endpoint.at_most is not None:
            caller = _asker(message)
        is_bounded = endpoint.caller_at is not None or (caller and endpoint.counts is not None)
        if is_bounded and caller not in endpoint.for_many:
            counts = 1 if endpoint.counts is None else partial(endpoint.counts, message.data)
            size = len(message.data) + header_bytes(message.headers)
            judged = self._buckets.judge(caller, endpoint.family, self._loop.time(), size, counts)
            if not isinstance(judged, Admitted):
                self._put_off(endpoint, listener, caller, message, judged)
                return
        self.taken[endpoint.name] += 1
        headers, message.headers = message.headers, None  # nobody reads them any more, and they may have 400 kB as they lie here
        request = Request(message)
        lane = self._lane(endpoint, caller, request.subject)
        if self._has_room(lane.turns) and lane.in_flight < lane.most and not lane.waiting:
            self._start(lane, endpoint, caller, request)
            return
        if not self._may_keep_more(caller, request):
            self._refuse(endpoint, caller, message, _NO_ROOM_SECONDS, is_first=False)
        elif self._has_room_to_wait(endpoint, lane, request):
            self._keep(caller, 1, len(request.data))
            lane.waiting.append(_Waiting(endpoint, caller, request, self._loop.time() + patience_in(headers)))
            self._give_turn(lane)
            self._serve(lane.turns)
        else:
            error = UnavailableError(f"Too many requests wait for {endpoint.name}.")
            self._group.create_task(self._respond_error(endpoint, caller, request, error))
        self._forget_idle(lane)

    def slowed(self) -> Sequence[SlowedCaller]:
        """Return whose requests were refused lately for their number."""
        found = self._buckets.slowed(self._loop.time())
        return [SlowedCaller(caller, family.value, number) for (caller, family), number in found.items()]

    def close(self) -> None:
        """Take nothing more. The task group is about to end, and refuses tasks by an error that would end nats-py's reading."""
        self._closed = True
        while self._hand(None):
            pass
        if self._shared.waking is not None:
            self._shared.waking.cancel()

    def _put_off(self, endpoint: ServiceEndpoint, listener: Listener, caller: str, message: Msg, judged: QuotaRefusal) -> None:
        """Reject a request that exceeds the rate of its caller, and stop listening to a caller that goes on regardless."""
        if judged.is_flood and endpoint.caller_at is None:
            self._refuse_waiting(f"caller {caller}")
        elif judged.is_flood:
            listener.close_out(caller)
        self._refuse(endpoint, caller, message, judged.retry_after, is_first=judged.is_first)

    def _refuse_waiting(self, lane: str) -> None:
        """Refuse what waits in a lane: who floods has others wait for it, and is about to be ended."""
        waiting = deque[_Waiting]() if (found := self._lanes.get(lane)) is None else found.waiting
        while waiting:
            first = waiting.popleft()
            self._keep(first.caller, -1, -len(first.request.data))
            requests.counts[kind_of(first.endpoint.subject), _RATE_LIMITED] += 1
            error = _too_often(first.endpoint, first.caller, _NO_ROOM_SECONDS)
            self._group.create_task(self._respond_error(first.endpoint, first.caller, first.request, error))

    def _refuse(self, endpoint: ServiceEndpoint, caller: str, message: Msg, retry_after: float | None, *, is_first: bool) -> None:
        """Tell a caller when to come back, in a hurry if it was told often enough, or not at all."""
        requests.counts[kind_of(endpoint.subject), _RATE_LIMITED] += 1
        if is_first:
            _log.warning("caller_slowed_down", caller=caller[:_CALLER_CHARS], family=endpoint.family.value)
            self._slowed(caller, endpoint.family)
        if retry_after is not None:
            error = _too_often(endpoint, caller, retry_after)
            self._group.create_task(self._respond_error(endpoint, caller, Request(message), error))
            return
        is_told = isinstance(self._dismissed.judge("", Family.OTHERS, self._loop.time()), Admitted)
        if is_told and message.reply:
            self._dismissals.append(message.reply)
            if len(self._dismissals) == 1:
                self._group.create_task(self._dismiss())

    async def _dismiss(self) -> None:
        """Answer all at once that are to be told in a hurry, and the same: each answer by itself costs as much as a request."""
        replies, self._dismissals = self._dismissals, []
        await self._write(b"".join(b"HPUB %b %b" % (reply.encode(), _DISMISSAL) for reply in replies))

    def _may_keep_more(self, caller: str, request: Request) -> bool:
        kept = self._kept.get(caller)
        if not caller or kept is None:
            return True
        size = kept.bytes + len(request.data)
        return kept.number < self._bounds.caller_max_queued and size <= self._bounds.caller_max_queued_bytes

    def _keep(self, caller: str, number: int, size: int) -> None:
        """Count what waits, or, with numbers below zero, what waits no more."""
        self._waiting += number
        self._waiting_bytes += size
        if caller:
            kept = self._kept.get(caller) or self._kept.setdefault(caller, _Kept())
            kept.number += number
            kept.bytes += size
            if not kept.number:
                del self._kept[caller]

    def _lane(self, endpoint: ServiceEndpoint, caller: str, subject: str) -> _Lane:
        if endpoint.lane is not None:
            key, most = endpoint.lane(subject), self._bounds.lane_max_concurrent
        elif endpoint.caller_max_concurrent is not None and caller not in endpoint.for_many:
            key, most = f"caller {caller} of {endpoint.name}", endpoint.caller_max_concurrent
        elif caller:
            key, most = f"caller {caller}", self._bounds.lane_max_concurrent
        else:
            key, most = f"endpoint {endpoint.name}", self._bounds.max_concurrent
        turns = self._turns if endpoint.at_most is None else self._shared
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane(key, most, turns)
        return lane

    def _has_room(self, turns: _Turns) -> bool:
        return turns.in_flight < turns.most and (turns.part is None or not turns.wait(self._loop.time()))

    def _has_room_to_wait(self, endpoint: ServiceEndpoint, lane: _Lane, request: Request) -> bool:
        is_bounded = endpoint.lane is not None or endpoint.caller_at is not None or endpoint.at_most is not None
        most_of_lane = self._bounds.lane_max_queued if is_bounded else self._bounds.max_queued
        return (
            self._waiting < self._bounds.max_queued
            and len(lane.waiting) < most_of_lane
            and self._waiting_bytes + len(request.data) <= self._bounds.max_queued_bytes
        )

    def _give_turn(self, lane: _Lane) -> None:
        """Put a lane in line, behind the others, if it has something to do and may do it."""
        if lane.waiting and lane.in_flight < lane.most and not lane.in_turn:
            lane.in_turn = True
            lane.turns.lanes.append(lane)

    def _start(self, lane: _Lane, endpoint: ServiceEndpoint, caller: str, request: Request) -> None:
        lane.turns.in_flight += 1
        lane.in_flight += 1
        begun = lane, endpoint, caller, request
        if not self._hand(begun):
            self._group.create_task(self._work(begun))

    async def _work(self, request: _Begun | None) -> None:
        """Answer a request, and then others: to make a task for each takes longer than to wake one that waits."""
        while request is not None:
            log_context.unbind()  # that of who has answered the one before, which may have begun this task
            await self._answer(*request)
            if self._closed or len(self._free) >= _MOST_FREE:
                return
            request = None  # it may have a megabyte, and the next one may be long in coming
            free: asyncio.Future[_Begun | None] = self._loop.create_future()
            self._free.append(free)
            request = await free

    def _hand(self, request: _Begun | None) -> bool:
        """Hand a request to a task that waits for one, or have it end; whether there is any. Those that were cancelled are none."""
        while self._free:
            free = self._free.pop()
            if not free.done():
                free.set_result(request)
                return True
        return False

    async def _answer(self, lane: _Lane, endpoint: ServiceEndpoint, caller: str, request: Request) -> None:
        try:
            if lane.turns.part is None:
                await self._answer_one(endpoint, caller, request)
            else:
                await self._answer_in_part(lane.turns, endpoint, caller, request)
        finally:
            lane.turns.in_flight -= 1
            lane.in_flight -= 1
            this = asyncio.current_task()
            if this is not None and not this.cancelling():  # else the service has failed, and its task group refuses tasks
                self._go_on(lane)

    async def _answer_one(self, endpoint: ServiceEndpoint, caller: str, request: Request) -> None:
        """Answer a request, and charge who asked, if that counts, with its bytes and with the time that it took itself.

        The time of most, which are of families where it does not count, is not looked at: that would cost more than it tells.
        """
        if not caller or caller in endpoint.for_many:
            await self._respond(endpoint, caller, request)
        elif endpoint.is_work or self._bounds.rates[endpoint.family].second_counts is None:
            size = await self._respond(endpoint, caller, request)
            if size is not None:
                self._buckets.charge(caller, endpoint.family, self._loop.time(), answered_bytes=size)
        else:
            answering, size = _OwnTime(self._respond(endpoint, caller, request), self._core), None
            try:
                size = await answering
            finally:
                self._buckets.charge(caller, endpoint.family, self._loop.time(), answering.seconds, size or 0)

    async def _answer_in_part(self, turns: _Turns, endpoint: ServiceEndpoint, caller: str, request: Request) -> None:
        """Answer a request of those that have a part of the time, and charge who asked with what it took itself."""
        asked_at, answering = self._idle(), _OwnTime(self._respond(endpoint, caller, request), self._core)
        try:
            size = await answering
            held = 0.0 if endpoint.counts is None else answering.seconds
            if endpoint.searches is not None:
                waited = self._holding.took(request.subject, asked_at, self._idle())
                held += waited if endpoint.searches(request.data) else 0.0
            if size is not None and caller:
                self._buckets.charge(caller, endpoint.family, self._loop.time(), held, size)
        finally:
            turns.spend(answering.seconds, self._loop.time())

    def _idle(self) -> float:
        """Return a time that goes on only while nothing is worked on here."""
        return self._loop.time() - time.thread_time()

    async def _respond(self, endpoint: ServiceEndpoint, caller: str, request: Request) -> int | None:
        """Answer a request, and return how many bytes the answer has, also where it cannot be sent; None if that is an error."""
        started = time.perf_counter()
        code, size = "ok", None
        try:
            check_size(request.data, endpoint.max_bytes, f"This request for {endpoint.name}")
            answer = await endpoint.handler(request.subject, request.data)
            if isinstance(answer, HeadedAnswer):
                size = len(answer.data)
                await _respond_data(request, answer.data, dict(answer.headers))
            else:
                size = len(answer)
                await _respond_data(request, answer)
        except IoaError as error:
            row = row_of(error)
            code = row.wire_code
            self._tell_failed(endpoint, caller, row, error)
            await self._respond_error(endpoint, caller, request, error)
        except nats.errors.MaxPayloadError:
            code = row_of(PayloadTooLargeError).wire_code
            left_out = self._failed.left_out((endpoint.name, caller, code))
            if left_out is not None:
                _log.error("answer_too_large", endpoint=endpoint.name, **_of_whom(caller, left_out))
            too_large = PayloadTooLargeError(f"The answer of {endpoint.name} is larger than the server allows.")
            await self._respond_error(endpoint, caller, request, too_large)
        except (nats.errors.Error, OSError) as error:
            code = _UNANSWERED
            self._tell_unanswered(endpoint, caller, error)
        except Exception:  # noqa: BLE001 - whoever asks gets an answer, the log the bug
            code = row_of(Exception).wire_code
            _log.exception("request_crashed", endpoint=endpoint.name)
            await self._respond_error(endpoint, caller, request, IoaError(f"{endpoint.name} failed; its log says why."))
        finally:
            kind = kind_of(endpoint.subject)
            requests.counts[kind, code] += 1
            request_seconds.observe(time.perf_counter() - started, (kind,))
        return size

    async def _respond_error(self, endpoint: ServiceEndpoint, caller: str, request: Request, error: IoaError) -> None:
        try:
            with suppress(ValueError):
                await request.respond_error(row_of(error).wire_code, one_line(error.message), headers=error_headers(error))
        except (nats.errors.Error, OSError) as failure:
            self._tell_unanswered(endpoint, caller, failure)

    def _tell_unanswered(self, endpoint: ServiceEndpoint, caller: str, error: Exception) -> None:
        """Log that an answer could not be sent, once in a second for each caller, who may have chosen what stands in it."""
        left_out = self._failed.left_out((endpoint.name, caller, _UNANSWERED))
        if left_out is not None:
            more = _of_whom(caller, left_out)
            _log.warning("request_unanswered", endpoint=endpoint.name, error=str(error) or type(error).__name__, **more)

    def _tell_failed(self, endpoint: ServiceEndpoint, caller: str, row: ErrorRow, error: IoaError) -> None:
        """Log what came of a request; of what is the same caller's fault, at the same endpoint, one line in a second.

        It is told why each time itself. To write all down, of which he makes the words, costs more than to refuse him does. A line
        names the caller: it says how many of his were left out, and is not the same as another one's.
        """
        is_chosen = row.fault is Fault.CALLER
        left_out = self._failed.left_out((endpoint.name, caller, row.wire_code)) if is_chosen else 0
        if left_out is not None:
            more = _of_whom(caller, left_out)
            getattr(_log, row.level)("request_failed", endpoint=endpoint.name, code=row.wire_code, error=error.message, **more)

    def _go_on(self, lane: _Lane) -> None:
        """Begin what there is room for now that a request of a lane is answered."""
        if lane.waiting or lane.turns.lanes:
            self._give_turn(lane)
            self._serve(lane.turns)
        self._forget_idle(lane)

    def _serve(self, turns: _Turns) -> None:
        """Answer the lanes in turn while there is room, and go on as soon as there is time again."""
        while turns.lanes and self._has_room(turns):
            self._serve_lane(turns.lanes.popleft())
        if turns.lanes and turns.waking is None and (wait := turns.wait(self._loop.time())):
            turns.waking = self._loop.call_later(wait, self._wake, turns)

    def _wake(self, turns: _Turns) -> None:
        turns.waking = None
        if not self._closed:
            self._serve(turns)

    def _serve_lane(self, lane: _Lane) -> None:
        """Answer the first one of a lane that is still waited for."""
        lane.in_turn, now = False, self._loop.time()
        while lane.waiting:
            first = lane.waiting.popleft()
            self._keep(first.caller, -1, -len(first.request.data))
            if first.until > now:
                self._start(lane, first.endpoint, first.caller, first.request)
                break
            requests.counts[kind_of(first.endpoint.subject), "overdue"] += 1
        self._give_turn(lane)
        self._forget_idle(lane)

    def _forget_idle(self, lane: _Lane) -> None:
        if not lane.in_flight and not lane.waiting:
            self._lanes.pop(lane.key, None)


def _of_whom(caller: str, left_out: int) -> dict[str, str | int]:
    """Return what a line says of whom it is about, and how many of his were left out."""
    more: dict[str, str | int] = {"caller": caller[:_CALLER_CHARS]} if caller else {}
    return more | ({"dropped": left_out} if left_out else {})


def _too_often(endpoint: ServiceEndpoint, caller: str, retry_after: float) -> RateLimitedError:
    return RateLimitedError(
        f"{caller} asks too often for {endpoint.name}.", retry_after=timedelta(seconds=retry_after), hint="Come back later."
    )


def _asker(message: Msg) -> str:
    """Who asks on a subject that many share, as the server tells where users have keys; empty where they have none."""
    try:
        told = parse_json((message.headers or {})[SHOWN_ASKER])
        return f"{told['acc']} {told['user']}"
    except (KeyError, ValueError, TypeError, AttributeError):
        return ""


class _Core:
    """Tells how long steps of work took of this thread's processor time, which takes ten times as long to read as the clock does.

    So the clock is read. Where a step took long by it, others may have had the processor meanwhile: then it took no more than
    what this thread has had since that was read last, a moment before.
    """

    __slots__ = ("_read", "read_at")

    def __init__(self) -> None:
        self.read_at = float("-inf")
        self._read = 0.0

    def had(self, now: float) -> float:
        """Return how many seconds this thread has had since that was read last."""
        before, self._read, self.read_at = self._read, time.thread_time(), now
        return self._read - before


class _OwnTime:
    """Awaits something, and counts the processor time that it takes itself: what others do while it waits is theirs."""

    __slots__ = ("_awaited", "_core", "seconds")

    def __init__(self, awaited: Coroutine[Any, Any, int | None], core: _Core) -> None:
        self._awaited = awaited
        self._core = core
        self.seconds = 0.0

    def __await__(self) -> Generator[Any, Any, int | None]:
        step: Callable[[Any], Any] = self._awaited.send
        given: object = None
        while True:
            began = time.monotonic()
            if began - self._core.read_at > _SHORT_SECONDS:
                self._core.had(began)
            try:
                waits_for = step(given)
            except StopIteration as done:
                return cast(int | None, done.value)
            finally:
                now = time.monotonic()
                took = now - began
                self.seconds += took if took < _SHORT_SECONDS else min(took, self._core.had(now))
            try:
                step, given = self._awaited.send, (yield waits_for)
            except BaseException as error:  # noqa: BLE001 - a cancellation, too, is its own to take
                step, given = self._awaited.throw, error


async def _respond_data(request: Request, data: bytes, headers: dict[str, str] | None = None) -> None:
    message = request._msg
    if not message.reply:
        return  # who asks wants no answer, which nats-py takes for a mistake of who gives one
    if headers is None:
        await publish_to_each(message._client, [message.reply], data, at_once=True)
        return
    if len(data) + written_bytes(headers) > message._client.max_payload:  # nats-py looks at data alone, and the server hangs up
        raise nats.errors.MaxPayloadError
    await request.respond(data, headers)
