"""One decision asked of the model: question, reads, check, and at most a few rounds of repair, all of which stay in sight."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import structlog
from pydantic import BaseModel, ValidationError

from ioa.agent.model.answers import Read, ShapedAnswer
from ioa.agent.model.budget import Budget, tokens_of
from ioa.agent.model.prompts import VERSION, Prompts, cut
from ioa.agent.model.reading import Reader
from ioa.agent.model.tally import Cause, ModelTally
from ioa.cancellation import fail_after
from ioa.errors import ModelError, UnavailableError
from ioa.json_text import find_object
from ioa.ports.chat_model import AnswerLimits, ChatMessage, ChatModel, Effort, ModelAnswer, PromptTooLongError
from ioa.ports.meter import Meter
from ioa.protocol.model_calls import NOT_LEGAL, READ, TAKEN, ModelCall
from ioa.protocol.trace import CHAT, OPERATION, usage_attributes
from ioa.protocol.usage import NOTHING, Overhead
from ioa.protocol.validation_errors import in_words
from ioa.retry import pauses
from ioa.telemetry import live_spans

log = structlog.get_logger(__name__)
_MAX_ECHO_BYTES = 24_000
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before a model that is away is asked again: the first, and doubled each time up to the longest."""
_MAX_TOLD_ERRORS = 3
_MAX_LEARNED = 8
"""How often a decision may learn that the model's context is smaller; each time is at least a halving or a number told."""

A = TypeVar("A", bound=ShapedAnswer)
S = TypeVar("S", bound=BaseModel)


class NoUsableAnswer(Exception):  # noqa: N818 - an outcome that every caller handles, not an error
    """The model gave no answer that could be taken; `cause` says why."""

    def __init__(self, cause: Cause, why: str) -> None:
        super().__init__(why)
        self.cause = cause
        self.why = why


@dataclass(frozen=True)
class DecisionPrompt:
    """What a decision is asked by.

    Attributes:
        messages: Returns the question in at most about the given tokens.
        meter: Counts what all answers cost.
        rules: The system message.
        within: How long the decision may take, besides what the budget says.
        reader: Answers what the model wants to read first; None if there is nothing to read.
        sits_out: How long to ask again a model that is away; None: as long as the decision may take.
        about: What questions with the same beginning have in common, such as the agent and the group.
        purpose: What is decided, as it is told of the calls.
    """

    messages: Callable[[int], list[ChatMessage]]
    meter: Meter
    rules: str
    within: timedelta | None = None
    reader: Reader | None = None
    sits_out: timedelta | None = None
    about: tuple[str, ...] = ()
    purpose: str = "speak"


Sleep = Callable[[float], Awaitable[None]]


class Dialogue:
    """Ask one model for decisions and check its answers. `sleep` waits for seconds before one that is away is asked again."""

    def __init__(self, model: ChatModel, prompts: Prompts, budget: Budget, tally: ModelTally, sleep: Sleep = asyncio.sleep) -> None:
        self._sleep = sleep
        self._model = model
        self._prompts = prompts
        self._budget = budget
        self._tally = tally

    async def decide(self, question: DecisionPrompt, shape: type[A], objection: Callable[[A], str | None]) -> A:
        """Return the first answer that can be used.

        Args:
            question: What is asked, and in whose name it is counted.
            shape: The form of the answer.
            objection: Says why an answer is not legal, naming what is; None if it is.

        Raises:
            NoUsableAnswer: No round brought one, the model cannot be reached, or it took too long.
        """
        timeout = min(self._budget.decision_timeout, question.within or self._budget.decision_timeout)
        patience = min(timeout, question.sits_out or timeout)
        asking = _Asking(
            model=self._model,
            question=question,
            budget=self._budget,
            tally=self._tally,
            patience=patience,
            sleep=self._sleep,
        )
        try:
            async with fail_after(timeout.total_seconds()):
                return await self._rounds(asking, question, shape, objection)
        except TimeoutError:
            if asking.away is not None:
                asking.note(Cause.UNAVAILABLE)
                raise NoUsableAnswer(Cause.UNAVAILABLE, str(asking.away)) from None
            asking.note(Cause.TOO_SLOW)
            self._tally.missed()
            raise NoUsableAnswer(Cause.TOO_SLOW, f"no usable answer within {timeout.total_seconds():g} s") from None
        except UnavailableError as error:
            asking.note(Cause.UNAVAILABLE)
            raise NoUsableAnswer(Cause.UNAVAILABLE, str(error)) from None
        except ModelError as error:
            asking.note(Cause.REFUSED)
            self._tally.missed()
            raise NoUsableAnswer(Cause.REFUSED, str(error)) from None

    async def _rounds(self, asking: _Asking, question: DecisionPrompt, shape: type[A], objection: Callable[[A], str | None]) -> A:
        repairs = 0
        while True:
            answer = await asking.ask(shape)
            said, problem = _read(answer, shape)
            cause = Cause.CUT if answer.finish == "length" else Cause.USELESS_ANSWER
            came_to, about = str(cause), ""
            if answer.finish == "length":
                problem = self._prompts.fill("shorter", tokens=f"{asking.limit:,}")
            elif said is not None:
                reader = question.reader if isinstance(said.decision, Read) else None
                may_read = reader is not None and not reader.is_spent and not question.meter.is_exhausted()
                if isinstance(said.decision, Read) and reader is not None and may_read:
                    asking.set_apart(Overhead(read=asking.spent))
                    asking.note(READ)
                    asking.go_on(answer.text, await reader.read(said.decision, await asking.bytes_to_read()))
                    continue
                told = objection(said) if reader is None else reader.spent()
                if told is None:
                    asking.note(TAKEN)
                    return said
                problem, came_to, about = told, NOT_LEGAL, said.decision.type
            asking.set_apart(Overhead(repair=asking.spent))
            asking.note(came_to, about)
            if repairs == self._budget.repairs or question.meter.is_exhausted():
                raise NoUsableAnswer(cause, problem)
            repairs += 1
            self._tally.repairs += 1
            log.debug("model_answer_unusable", content=f"{problem} {answer.text}")
            asking.go_on(answer.text, self._prompts.fill("repair", problem=problem))


class _Asking:
    """The running conversation of one decision, which is never cut: what has to be shorter is the question at its beginning."""

    def __init__(
        self,
        model: ChatModel,
        question: DecisionPrompt,
        budget: Budget,
        tally: ModelTally,
        patience: timedelta,
        sleep: Sleep,
    ) -> None:
        self._patience = patience.total_seconds()
        self._sleep = sleep
        self._waited, self._began = 0.0, asyncio.get_running_loop().time()
        self.away: UnavailableError | None = None
        """Why the model is away; None while it answers."""
        self._model = model
        self._system = question.rules
        self._cache_key = cache_key(VERSION, *question.about)
        self._question = question
        self._budget = budget
        self._tally = tally
        self._later: list[ChatMessage] = []
        self._most: int | None = None
        """For how large a context this question is written, if that holds for it alone."""
        self._is_doubled = False
        self._is_hurried = False
        self.limit = budget.max_answer
        self.spent = NOTHING
        """What the last answer has cost."""
        self._noted = self._began

    def note(self, came_to: str, about: str = "") -> None:
        """Tell what the last call came to."""
        began, self._noted = self._noted, asyncio.get_running_loop().time()
        milliseconds, purpose = round((self._noted - began) * 1_000), self._question.purpose
        spent, self.spent = self.spent, NOTHING
        live = live_spans.is_traced()
        call = ModelCall(purpose=purpose, came_to=came_to, about=about, milliseconds=milliseconds, usage=spent, live=live)
        self._question.meter.note(call)

    def set_apart(self, overhead: Overhead) -> None:
        """Count what of the decision's cost came to nothing by itself."""
        self._question.meter.set_apart(overhead)

    def go_on(self, answer: str, reply: str) -> None:
        """Keep an answer, and what is said to it."""
        echo = cut(answer, _MAX_ECHO_BYTES) or "(nothing)"
        self._later += [ChatMessage("assistant", echo), ChatMessage("user", reply)]

    async def bytes_to_read(self) -> int:
        """How much may be read on: half of what a request holds is for the question, which is shortened where it has to be."""
        room = self._budget.prompt_tokens(await self._context()) - tokens_of(self._system)
        return 3 * max(0, room // 2 - sum(tokens_of(message.content) for message in self._later))

    async def ask(self, shape: type[BaseModel]) -> ModelAnswer:
        """Ask once more: again with twice the room if the answer was cut, and with less reasoning if that used all of it up.

        Either is done once for a decision. The answer may be cut all the same, and says so.
        """
        while True:
            answer = await self._answer(shape)
            self.spent = self._budget.usage_of(answer)
            self._question.meter.add(self.spent)
            self._tally.count(answer)
            if answer.finish != "length" or self._question.meter.is_exhausted():
                return answer
            if not self._is_doubled:
                self._is_doubled = True
            elif not answer.text.strip() and not self._is_hurried:
                self._is_hurried = True
            else:
                return answer
            self.set_apart(Overhead(repair=self.spent))
            self.note(Cause.CUT)

    async def _answer(self, shape: type[BaseModel]) -> ModelAnswer:
        learned, waits = 0, pauses(FIRST_PAUSE, LONGEST_PAUSE, lambda: 0.5)
        while True:
            context = await self._context()
            messages = self._messages(context)
            try:
                with live_spans.span(CHAT, {OPERATION: CHAT, "ioa.call_purpose": self._question.purpose}) as live:
                    answer = await self._model.answer(messages, shape, self._limits(messages, context))
                    live.note(usage_attributes(self._budget.usage_of(answer)))
                self.away = None
                return answer
            except PromptTooLongError as error:
                learned += 1
                if learned == _MAX_LEARNED:
                    raise
                self._most = error.context or self._most
            except UnavailableError as error:
                self.away = error
                self._tally.missed()
                await self._wait(error, next(waits))

    async def _context(self) -> int:
        known = await self._model.context_tokens()
        return known if self._most is None else min(known, self._most)

    async def _wait(self, error: UnavailableError, pause: float) -> None:
        """Wait before a model that is away is asked again, or give up if there is no patience for that.

        Raises:
            UnavailableError: The one that was given.
        """
        pause = max(pause, error.retry_after.total_seconds() if error.retry_after is not None else 0.0)
        if max(self._waited, asyncio.get_running_loop().time() - self._began) + pause > self._patience:
            raise error
        await self._sleep(pause)
        self._waited += pause

    def _messages(self, context: int) -> list[ChatMessage]:
        around = tokens_of(self._system) + sum(tokens_of(message.content) for message in self._later)
        room = self._budget.prompt_tokens(context) - around
        return [ChatMessage("system", self._system), *self._question.messages(max(0, room)), *self._later]

    def _limits(self, messages: Sequence[ChatMessage], context: int) -> AnswerLimits:
        self.limit = self._budget.answer_tokens(context)
        if self._is_doubled:
            free = context - sum(tokens_of(message.content) for message in messages)
            self.limit = min(2 * self.limit, max(self.limit, free))
        effort: Effort | None = "low" if self._is_hurried else None
        return AnswerLimits(self.limit, self._budget.answer_timeout, self._budget.temperature, effort, self._cache_key)


def cache_key(*about: str) -> str:
    """Return 64 hex digits that tell nobody what they are about, and are the same for the same."""
    return hashlib.sha256("\n".join(about).encode()).hexdigest()


def _read(answer: ModelAnswer, shape: type[A]) -> tuple[A | None, str]:
    """Read an answer, or say in a few words what is wrong with it."""
    if answer.finish == "filter":
        return None, "a filter of the provider held it back; say it in other words."
    return read_answer(answer.text, shape)


def read_answer(text: str, shape: type[S]) -> tuple[S | None, str]:
    """Read the answer out of a text, or say in a few words what is wrong with it."""
    found = find_object(text)
    if found is None:
        return None, "it holds no whole JSON object."
    try:
        return shape.model_validate(found), ""
    except ValidationError as error:
        return None, in_words(error, "the object", most=_MAX_TOLD_ERRORS)
