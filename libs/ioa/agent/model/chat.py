"""A task's own questions to its language model, as opposed to what a brain asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from ioa.agent.chat_question import ChatAnswer, ChatQuestion, Left
from ioa.agent.model.budget import Budget, tokens_of
from ioa.agent.model.dialogue import cache_key, read_answer
from ioa.agent.model.prompts import VERSION, Prompts
from ioa.agent.model.tally import Cause
from ioa.errors import ModelError
from ioa.ports.chat_model import AnswerLimits, ChatMessage, ChatModel, Hear, ModelAnswer, PromptTooLongError
from ioa.ports.meter import Meter
from ioa.protocol.model_calls import TAKEN, ModelCall
from ioa.protocol.trace import CHAT, OPERATION, usage_attributes
from ioa.telemetry import live_spans

_LEAST_ANSWER_TOKENS = 64
_BEGINNING_CHARS = 200
"""Prompts of a task that begin alike up to here share a key of the provider's cache: rules, then the goal."""


class ModelChat:
    """Ask one model the questions of tasks, each within what its goal has left."""

    def __init__(self, model: ChatModel, budget: Budget) -> None:
        self._model = model
        self._budget = budget
        self._prompts = Prompts()

    async def ask(
        self, question: ChatQuestion, meter: Meter, left: Callable[[], Left], hear: Hear | None = None, *, purpose: str = "task"
    ) -> ChatAnswer:
        """Ask once, or until the answer has the shape that is wanted, which is repaired at most twice.

        `hear` is told of an answer while it is written, if the question says so.

        An answer that was cut is never repaired: it is asked for once more, with twice the room.

        Raises:
            BudgetSpentError: Nothing is left of the goal's budget; nothing was sent.
            UnavailableError: The model cannot be reached, is overloaded or too slow.
            ModelError: The server refuses the question, or no answer had the shape.
        """
        own, messages = Meter(), list(question.messages)
        schema, is_doubled, repairs = question.schema, False, 0
        while True:
            asked, began = replace(question, messages=tuple(messages)), asyncio.get_running_loop().time()
            answer = await self._answer(asked, left, hear if question.stream else None, times=2 if is_doubled else 1)
            usage = self._budget.usage_of(answer)
            meter.add(usage)
            own.add(usage)
            parsed, problem = None, "it was cut off at its limit."
            if schema is not None and answer.finish != "length" and not answer.tool_calls:
                parsed, problem = read_answer(answer.text, schema)
            is_complete = answer.finish not in ("length", "filter")
            is_taken = parsed is not None or (is_complete if schema is None else bool(answer.tool_calls))
            came_to = TAKEN if is_taken else Cause.CUT if answer.finish == "length" else Cause.USELESS_ANSWER
            took = round((asyncio.get_running_loop().time() - began) * 1_000)
            meter.note(ModelCall(purpose=purpose, came_to=came_to, milliseconds=took, usage=usage, live=live_spans.is_traced()))
            if schema is None or answer.tool_calls:
                return ChatAnswer(answer.text, None, answer.tool_calls, is_complete, own.total)
            if parsed is not None:
                return ChatAnswer(answer.text, parsed, usage=own.total)
            if is_doubled if answer.finish == "length" else repairs == self._budget.repairs:
                raise ModelError(f"The model gave no {schema.__name__}: {problem}")
            if answer.finish == "length":
                is_doubled = True
                continue
            repairs += 1
            told = self._prompts.fill("repair", problem=problem)
            messages += [ChatMessage("assistant", answer.text or "(nothing)"), ChatMessage("user", told)]

    async def _answer(self, question: ChatQuestion, left: Callable[[], Left], hear: Hear | None, *, times: int) -> ModelAnswer:
        """Ask once; again with less room for the answer where the server turns out to have a smaller context."""
        room: int | None = None
        while True:
            free = left()
            free.check()
            context = await self._model.context_tokens()
            wanted = (question.max_tokens or self._budget.answer_tokens(context)) * times
            wanted = min(wanted, room or wanted, self._affordable(free, wanted))
            beginning = cache_key(VERSION, *(message.content[:_BEGINNING_CHARS] for message in question.messages[:2]))
            limits = AnswerLimits(max(1, wanted), self._budget.answer_timeout, self._budget.temperature, cache_key=beginning)
            try:
                with live_spans.span(CHAT, {OPERATION: CHAT}) as live:
                    answer = await self._model.answer(
                        question.messages, question.schema, limits, question.tools, may_call=question.may_call, hear=hear
                    )
                    live.note(usage_attributes(self._budget.usage_of(answer)))
                    return answer
            except PromptTooLongError as error:
                known = error.context or await self._model.context_tokens()
                room = min(limits.max_tokens // 2, known - _tokens(question.messages))
                if room < _LEAST_ANSWER_TOKENS:
                    raise

    def _affordable(self, left: Left, wanted: int) -> int:
        """How many tokens an answer may have by what is left; a price for a million tokens is that of one in millionths."""
        by_cost = wanted
        if left.cost_micros is not None and self._budget.answer_price > 0:
            by_cost = int(left.cost_micros / self._budget.answer_price)
        return min(by_cost, wanted if left.tokens is None else left.tokens)


def _tokens(messages: Sequence[ChatMessage]) -> int:
    return sum(tokens_of(message.content) for message in messages)
