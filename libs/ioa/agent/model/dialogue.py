"""One decision asked of the model: question, check, and at most a few rounds of repair."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import structlog
from pydantic import BaseModel, ValidationError

from ioa.agent.model.budget import Budget
from ioa.agent.model.json_text import find_object
from ioa.agent.model.prompts import Prompts, clipped
from ioa.agent.model.tally import Cause, Tally
from ioa.errors import ModelError, UnavailableError
from ioa.ports.chat_model import AnswerLimits, ChatMessage, ChatModel
from ioa.ports.meter import Meter
from ioa.protocol.codec import in_words

log = structlog.get_logger(__name__)
_MAX_ECHO_CHARS = 600
_MAX_TOLD_ERRORS = 3


class NoUsableAnswer(Exception):  # noqa: N818 - an outcome that every caller handles, not an error
    """The model gave no answer that could be taken; `cause` says why."""

    def __init__(self, cause: Cause, why: str) -> None:
        super().__init__(why)
        self.cause = cause
        self.why = why


class Dialogue:
    """Ask one model for decisions and check its answers."""

    def __init__(self, model: ChatModel, prompts: Prompts, budget: Budget, tally: Tally) -> None:
        self._model = model
        self._prompts = prompts
        self._limits = AnswerLimits(budget.answer_tokens, budget.answer_timeout, budget.temperature)
        self._budget = budget
        self._tally = tally

    async def decide(
        self,
        system: str,
        user: str,
        shape: type[BaseModel],
        meter: Meter,
        *,
        within: timedelta | None = None,
    ) -> BaseModel:
        """Return the decision of the first answer that can be used; `meter` counts what all answers cost.

        Raises:
            NoUsableAnswer: No round brought one, the model cannot be reached, or it took too long.
        """
        timeout = min(self._budget.decision_timeout, within or self._budget.decision_timeout)
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                asked = [ChatMessage("system", system), ChatMessage("user", user)]
                return await self._rounds(asked, shape, meter)
        except TimeoutError:
            raise NoUsableAnswer(Cause.TOO_SLOW, f"no usable answer within {timeout.total_seconds():g} s") from None
        except UnavailableError as error:
            raise NoUsableAnswer(Cause.UNAVAILABLE, str(error)) from None
        except ModelError as error:
            raise NoUsableAnswer(Cause.REFUSED, str(error)) from None

    async def _rounds(self, asked: list[ChatMessage], shape: type[BaseModel], meter: Meter) -> BaseModel:
        problem, cause, limits = "", Cause.USELESS_ANSWER, self._limits
        for round_number in range(self._budget.repairs + 1):
            self._tally.repairs += round_number > 0
            answer = await self._model.answer(asked[:2] + asked[2:][-2:], shape, limits)
            meter.add(self._budget.usage_of(answer))
            self._tally.answers += 1
            self._tally.prompt_tokens += answer.prompt_tokens
            self._tally.answer_tokens += answer.answer_tokens
            if not answer.complete:
                # Half of an answer is none, however well its first half reads. To repair it would cut it again.
                problem, cause = f"the answer was cut at {limits.max_tokens:,} tokens", Cause.CUT
                limits = replace(limits, max_tokens=2 * limits.max_tokens)
                continue
            decision, problem = read_decision(answer.text, shape)
            if decision is not None:
                return decision
            cause = Cause.USELESS_ANSWER
            log.debug("model_answer_unusable", problem=problem, text=answer.text[:_MAX_ECHO_CHARS])
            echo = clipped(answer.text, _MAX_ECHO_CHARS) or "(nothing)"
            asked += [ChatMessage("assistant", echo), ChatMessage("user", self._prompts.fill("repair", problem=problem))]
        raise NoUsableAnswer(cause, problem)


def read_decision(text: str, shape: type[BaseModel]) -> tuple[BaseModel | None, str]:
    """Read the decision out of an answer, or say in a few words what is wrong with it."""
    found = find_object(text)
    if found is None:
        return None, "it holds no JSON object."
    try:
        answer = shape.model_validate(found)
    except ValidationError as error:
        return None, in_words(error, "the object", most=_MAX_TOLD_ERRORS)
    decision: BaseModel = getattr(answer, "decision")  # noqa: B009 - the class is built at run time
    return decision, ""
