"""One decision asked of the model: the question, reads, and repairs of useless answers, all of which stay in the conversation."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import structlog
from pydantic import BaseModel

from ioa.agent.model.answers import Read, ShapedAnswer, parse_answer
from ioa.agent.model.metered_calls import MAX_REPAIRS, Budget, Cause, MeteredCalls, estimate_tokens
from ioa.agent.model.prompt_templates import VERSION, fill
from ioa.agent.model.reading import Reader
from ioa.concurrency import fail_after
from ioa.errors import InvalidInputError, IoaError, ModelError, UnavailableError
from ioa.ports.brain_types import UndecidedError
from ioa.ports.chat_model import AnswerLimits, ChatMessage, ChatModel, ModelAnswer, PromptTooLongError
from ioa.ports.meter import Meter
from ioa.protocol.decisions import NOT_LEGAL, READ, TAKEN
from ioa.retry import pauses

log = structlog.get_logger(__name__)
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before an unavailable model is asked again: the first pause, doubled each time up to the longest."""
_MAX_SHORTENINGS = 8
"""Maximum times that a decision learns that the model's context is smaller; each time it at least halves, or is stated."""

A = TypeVar("A", bound=ShapedAnswer)
T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


class NoUsableAnswerError(UndecidedError):
    """The model gave no usable answer, for the reason in `cause` and `why`."""

    def __init__(self, model: str, cause: Cause, why: str) -> None:
        super().__init__(f"{model} did not decide: {why}", is_away=cause.is_away)
        self.cause, self.why = cause, why


@dataclass
class Adviser:
    """The model that a brain asks for its decisions.

    Attributes:
        sleep: Waits for seconds before an unavailable model is asked again.
        failures: Number of failures since its last answer.
    """

    model: ChatModel
    budget: Budget
    sleep: Sleep = asyncio.sleep
    failures: int = 0


@dataclass
class Dialogue:
    """The conversation of one decision. Only the question at its beginning can become shorter.

    Attributes:
        purpose: The kind of decision, as the log of calls names it.
        rules: The system message.
        question: Returns the question in at most about the given tokens.
        meter: Counts the cost.
        about: Parts of the cache key, such as the agent and the group: equal for questions with the same beginning.
        patience: Maximum time in which an unavailable model is asked again; None: `Budget.decision_timeout`.
        reader: Answers reads; None if there is nothing to read.
    """

    adviser: Adviser
    purpose: str
    rules: str
    question: Callable[[int], Sequence[ChatMessage]]
    meter: Meter
    about: tuple[str, ...]
    patience: timedelta | None = None
    reader: Reader | None = None

    def __post_init__(self) -> None:
        self._budget = self.adviser.budget
        self._later: list[ChatMessage] = []
        self._context: int | None = None
        self._times = 1
        self._away: UnavailableError | None = None
        """The last error of an unavailable model; None while it answers."""
        self._timeout = self._budget.decision_timeout.total_seconds()
        self._patience = self._timeout if self.patience is None else self.patience.total_seconds()
        self._calls = MeteredCalls(self._budget, self.meter, self.purpose)
        self._began, self._waited = asyncio.get_running_loop().time(), 0.0

    async def decide(self, shape: type[A], build: Callable[[A], Awaitable[T]]) -> T:
        """Ask until an answer is usable, and return what `build` makes of it.

        Args:
            shape: The form of the answer.
            build: Makes the decision of an answer, or raises the reason why it is not legal, with the legal alternatives.

        Raises:
            NoUsableAnswerError: No answer was usable, the model is unavailable, or it took too long.
        """
        try:
            async with fail_after(self._timeout):
                return await self._until_usable(shape, build)
        except NoUsableAnswerError:
            raise
        except TimeoutError:
            cause, why = Cause.TOO_SLOW, f"no usable answer within {self._timeout:g} s"
            if self._away is not None:
                cause, why = Cause.UNAVAILABLE, str(self._away)
        except UnavailableError as error:
            cause, why = Cause.UNAVAILABLE, str(error)
        except ModelError as error:
            cause, why = Cause.REFUSED, str(error)
        self._calls.note(cause)
        self.adviser.failures += cause is not Cause.UNAVAILABLE  # each failed call is counted already
        raise NoUsableAnswerError(self._budget.model, cause, why)

    async def _until_usable(self, shape: type[A], build: Callable[[A], Awaitable[T]]) -> T:
        """See `decide`. A cut answer is requested again, once, with twice the limit."""
        repairs = 0
        while True:
            answer, limit = await self._call(shape)
            is_cut, is_exhausted = answer.finish == "length", self.meter.is_exhausted()
            if is_cut and not is_exhausted and self._times == 1:
                self._times = 2
                self._calls.note(Cause.CUT)
                continue
            cause = Cause.CUT if is_cut else Cause.USELESS_ANSWER
            outcome, about = str(cause), ""
            try:
                if is_cut:
                    raise InvalidInputError(fill("shorter", tokens=f"{limit:,}"))
                if answer.finish == "filter":
                    raise InvalidInputError("a filter of the provider held it back; say it in other words.")
                said = parse_answer(answer.text, shape)
                outcome, about = NOT_LEGAL, said.decision.type
                if self.reader is not None and isinstance(said.decision, Read):
                    text = await self.reader.read(said.decision, await self._bytes_to_read(), is_exhausted=is_exhausted)
                    self._calls.note(READ)
                    self._go_on(answer, text)
                    continue
                built = await build(said)
            except IoaError as error:
                problem = error.message
            else:
                self._calls.note(TAKEN)
                return built
            self._calls.note(outcome, about)
            if repairs == MAX_REPAIRS or is_exhausted:
                raise NoUsableAnswerError(self._budget.model, cause, problem)
            repairs += 1
            log.debug("model_answer_unusable", content=f"{problem} {answer.text}")
            self._go_on(answer, fill("repair", problem=problem))

    def _go_on(self, answer: ModelAnswer, reply: str) -> None:
        self._later += [ChatMessage("assistant", answer.text or "(nothing)"), ChatMessage("user", reply)]

    async def _bytes_to_read(self) -> int:
        """Return the bytes that can be read: half of a prompt is for the question."""
        context = await self._context_tokens()
        return 3 * max(0, self._room(context) - self._budget.prompt_tokens(context) // 2)

    async def _call(self, shape: type[BaseModel]) -> tuple[ModelAnswer, int]:
        """Call the model: again with a shorter question if it was too long, and later if the model is unavailable."""
        shortenings, waits, adviser = 0, pauses(FIRST_PAUSE, LONGEST_PAUSE, lambda: 0.5), self.adviser
        while True:
            context = await self._context_tokens()
            question = self.question(max(0, self._room(context)))
            messages = [ChatMessage("system", self.rules), *question, *self._later]
            limit = self._budget.answer_tokens(context)
            if self._times > 1:
                limit = min(2 * limit, max(limit, context - estimate_tokens(*(message.content for message in messages))))
            key = cache_key(VERSION, *self.about)
            limits = AnswerLimits(limit, self._budget.answer_timeout, cache_key=key)
            try:
                answer = await self._calls.count(adviser.model.answer(messages, shape, limits))
            except PromptTooLongError as error:
                shortenings += 1
                if shortenings == _MAX_SHORTENINGS:
                    raise
                self._context = error.context or self._context
            except UnavailableError as error:
                self._away = error
                adviser.failures += 1
                await self._wait(error, next(waits))
            else:
                self._away, adviser.failures = None, 0
                return answer, limit

    async def _context_tokens(self) -> int:
        """Return the tokens of the model's context, which an error can lower for this question."""
        known = await self.adviser.model.context_tokens()
        return known if self._context is None else min(known, self._context)

    def _room(self, context: int) -> int:
        """Return the tokens of a prompt that are left for the question."""
        return self._budget.prompt_tokens(context) - estimate_tokens(self.rules, *(message.content for message in self._later))

    async def _wait(self, error: UnavailableError, pause: float) -> None:
        """Wait before the model is asked again.

        Raises:
            UnavailableError: The given one, if the patience would be exceeded.
        """
        pause = max(pause, error.retry_after.total_seconds() if error.retry_after is not None else 0.0)
        if max(self._waited, asyncio.get_running_loop().time() - self._began) + pause > self._patience:
            raise error
        await self.adviser.sleep(pause)
        self._waited += pause


def cache_key(*about: str) -> str:
    """Return a SHA-256 digest, which hides the texts."""
    return hashlib.sha256("\n".join(about).encode()).hexdigest()
