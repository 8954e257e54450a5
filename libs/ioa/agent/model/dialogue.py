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
from ioa.agent.model.budget import Budget, tokens_of
from ioa.agent.model.metered_calls import MAX_REPAIRS, Cause, MeteredCalls
from ioa.agent.model.prompts import VERSION, fill
from ioa.agent.model.reading import Reader
from ioa.cancellation import fail_after
from ioa.errors import InvalidInputError, IoaError, ModelError, UnavailableError
from ioa.ports.chat_model import AnswerLimits, ChatMessage, ChatModel, Effort, ModelAnswer, PromptTooLongError
from ioa.ports.meter import Meter
from ioa.protocol.model_calls import NOT_LEGAL, READ, TAKEN
from ioa.protocol.usage import Overhead
from ioa.retry import pauses

log = structlog.get_logger(__name__)
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before an unavailable model is asked again: the first pause, doubled each time up to the longest."""
_MAX_SHORTENINGS = 8
"""Maximum times that a decision learns that the model's context is smaller; each time it at least halves, or is stated."""

A = TypeVar("A", bound=ShapedAnswer)
T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


class NoUsableAnswer(Exception):  # noqa: N818 - an outcome that every caller handles, not an error
    """The model gave no usable answer, for the reason in `cause` and `why`."""

    def __init__(self, cause: Cause, why: str) -> None:
        super().__init__(why)
        self.cause, self.why = cause, why


@dataclass(frozen=True)
class DecisionPrompt:
    """The question of a decision.

    Attributes:
        purpose: The kind of decision, as the log of calls names it.
        rules: The system message.
        messages: Returns the question in at most about the given tokens.
        meter: Counts the cost.
        about: Parts of the cache key, such as the agent and the group: equal for questions with the same beginning.
        timeout: Timeout of the decision; None: `Budget.decision_timeout`.
        patience: Maximum time in which an unavailable model is asked again; None: the timeout.
        reader: Answers reads; None if there is nothing to read.
    """

    purpose: str
    rules: str
    messages: Callable[[int], Sequence[ChatMessage]]
    meter: Meter
    about: tuple[str, ...]
    timeout: timedelta | None = None
    patience: timedelta | None = None
    reader: Reader | None = None


@dataclass
class Dialogue:
    """Asks one model for decisions.

    Attributes:
        sleep: Waits for seconds before an unavailable model is asked again.
        answers: Number of the model's answers.
        failures: Number of failures since its last answer.
    """

    model: ChatModel
    budget: Budget
    sleep: Sleep = asyncio.sleep
    answers: int = 0
    failures: int = 0

    async def decide(self, question: DecisionPrompt, shape: type[A], build: Callable[[A], Awaitable[T]]) -> T:
        """Ask until an answer is usable, and return what `build` makes of it.

        Args:
            question: The question.
            shape: The form of the answer.
            build: Makes the decision of an answer, or raises the reason why it is not legal, with the legal alternatives.

        Raises:
            NoUsableAnswer: No answer was usable, the model is unavailable, or it took too long.
        """
        longest = self.budget.decision_timeout
        timeout = min(longest, question.timeout or longest).total_seconds()
        talk = _Talk(self, question, min(timeout, (question.patience or longest).total_seconds()))
        try:
            async with fail_after(timeout):
                return await talk.decide(shape, build)
        except TimeoutError:
            cause, why = Cause.TOO_SLOW, f"no usable answer within {timeout:g} s"
            if talk.away is not None:
                cause, why = Cause.UNAVAILABLE, str(talk.away)
        except UnavailableError as error:
            cause, why = Cause.UNAVAILABLE, str(error)
        except ModelError as error:
            cause, why = Cause.REFUSED, str(error)
        talk.note(cause)
        self.failures += cause is not Cause.UNAVAILABLE  # each failed call is counted already
        raise NoUsableAnswer(cause, why)


class _Talk:
    """The conversation of a decision. Only the question at its beginning can become shorter.

    Attributes:
        away: The last error of an unavailable model; None while it answers.
    """

    def __init__(self, dialogue: Dialogue, question: DecisionPrompt, patience: float) -> None:
        self.away: UnavailableError | None = None
        self._dialogue, self._question, self._patience = dialogue, question, patience
        self._budget, self._meter = dialogue.budget, question.meter
        self._metered = MeteredCalls(dialogue.budget, question.meter, question.purpose)
        self._later: list[ChatMessage] = []
        self._began, self._waited = asyncio.get_running_loop().time(), 0.0
        self._context: int | None = None
        self._times = 1
        self._effort: Effort | None = None

    async def decide(self, shape: type[A], build: Callable[[A], Awaitable[T]]) -> T:
        """See `Dialogue.decide`.

        A cut answer is asked for again: once with twice the limit, and once with less reasoning if there is no text.
        """
        repairs, reader = 0, self._question.reader
        while True:
            answer, limit = await self._call(shape)
            is_cut, is_exhausted = answer.finish == "length", self._meter.is_exhausted()
            if is_cut and not is_exhausted and (self._times == 1 or (self._effort is None and not answer.text.strip())):
                self._times, self._effort = 2, None if self._times == 1 else "low"
                self.note(Cause.CUT)
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
                if reader is not None and isinstance(said.decision, Read):
                    reader.check_left(is_exhausted=is_exhausted)
                    self.note(READ)
                    self._go_on(answer, await reader.read(said.decision, await self._bytes_to_read()))
                    continue
                built = await build(said)
            except IoaError as error:
                problem = error.message
            else:
                self.note(TAKEN)
                return built
            self.note(outcome, about)
            if repairs == MAX_REPAIRS or is_exhausted:
                raise NoUsableAnswer(cause, problem)
            repairs += 1
            log.debug("model_answer_unusable", content=f"{problem} {answer.text}")
            self._go_on(answer, fill("repair", problem=problem))

    def note(self, outcome: str, about: str = "") -> None:
        """Record the outcome of the last call; the cost of reads and of useless answers is overhead."""
        spent = self._metered.note(outcome, about)
        if outcome != TAKEN:
            self._meter.set_apart(Overhead(read=spent) if outcome == READ else Overhead(repair=spent))

    def _go_on(self, answer: ModelAnswer, reply: str) -> None:
        self._later += [ChatMessage("assistant", answer.text or "(nothing)"), ChatMessage("user", reply)]

    async def _bytes_to_read(self) -> int:
        """Return the bytes that can be read: half of a prompt is for the question."""
        return 3 * max(0, await self._room() - self._budget.prompt_tokens(await self._context_tokens()) // 2)

    async def _call(self, shape: type[BaseModel]) -> tuple[ModelAnswer, int]:
        """Call the model: again with a shorter question if it was too long, and later if the model is unavailable."""
        shortenings, waits = 0, pauses(FIRST_PAUSE, LONGEST_PAUSE, lambda: 0.5)
        key = cache_key(VERSION, *self._question.about)
        while True:
            context = await self._context_tokens()
            question = self._question.messages(max(0, await self._room()))
            messages = [ChatMessage("system", self._question.rules), *question, *self._later]
            limit = self._budget.answer_tokens(context)
            if self._times > 1:
                limit = min(2 * limit, max(limit, context - tokens_of(*(message.content for message in messages))))
            limits = AnswerLimits(limit, self._budget.answer_timeout, effort=self._effort, cache_key=key)
            try:
                answer = await self._metered.count(self._dialogue.model.answer(messages, shape, limits))
            except PromptTooLongError as error:
                shortenings += 1
                if shortenings == _MAX_SHORTENINGS:
                    raise
                self._context = error.context or self._context
            except UnavailableError as error:
                self.away = error
                self._dialogue.failures += 1
                await self._wait(error, next(waits))
            else:
                self.away, self._dialogue.failures = None, 0
                self._dialogue.answers += 1
                return answer, limit

    async def _context_tokens(self) -> int:
        """Return the tokens of the model's context, which an error can lower for this question."""
        known = await self._dialogue.model.context_tokens()
        return known if self._context is None else min(known, self._context)

    async def _room(self) -> int:
        """Return the tokens of a prompt that are left for the question."""
        others = tokens_of(self._question.rules, *(message.content for message in self._later))
        return self._budget.prompt_tokens(await self._context_tokens()) - others

    async def _wait(self, error: UnavailableError, pause: float) -> None:
        """Wait before the model is asked again.

        Raises:
            UnavailableError: The given one, if the patience would be exceeded.
        """
        pause = max(pause, error.retry_after.total_seconds() if error.retry_after is not None else 0.0)
        if max(self._waited, asyncio.get_running_loop().time() - self._began) + pause > self._patience:
            raise error
        await self._dialogue.sleep(pause)
        self._waited += pause


def cache_key(*about: str) -> str:
    """Return a SHA-256 digest, which hides the texts."""
    return hashlib.sha256("\n".join(about).encode()).hexdigest()
