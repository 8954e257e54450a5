"""Questions of a task to the agent's language model, as opposed to the decisions of its brain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ioa.agent.model.answers import parse_answer
from ioa.agent.model.dialogue import cache_key
from ioa.agent.model.metered_calls import MAX_REPAIRS, Budget, Cause, MeteredCalls, estimate_tokens
from ioa.agent.model.prompt_templates import VERSION, fill
from ioa.agent.tasks.chat_question import ChatAnswer, ChatQuestion, Left
from ioa.errors import InvalidInputError, ModelError
from ioa.ports.chat_model import AnswerLimits, ChatMessage, ChatModel, Hear, ModelAnswer, PromptTooLongError
from ioa.ports.meter import Meter
from ioa.protocol.decisions import TAKEN
from ioa.protocol.usage import NOTHING

_LEAST_ANSWER_TOKENS = 64
_BEGINNING_CHARS = 200
"""Prompts of a task with the same beginning share a key of the provider's cache: rules, then the goal."""


@dataclass
class ModelChat:
    """Asks one model the questions of tasks, within the rest of each goal's budget."""

    model: ChatModel
    budget: Budget

    async def ask(
        self, question: ChatQuestion, meter: Meter, left: Callable[[], Left], hear: Hear | None = None, *, purpose: str = "task"
    ) -> ChatAnswer:
        """Ask once, or until the answer has the requested form: at most two repairs, and once twice the limit for a cut answer.

        Args:
            question: The question.
            meter: Counts the cost.
            left: Returns the rest of the budget.
            hear: Called with the partial answer, if the question requests it.
            purpose: The purpose of the calls in the log.

        Raises:
            BudgetSpentError: Nothing is left of the goal's budget; nothing was sent.
            UnavailableError: The model cannot be reached, is overloaded or too slow.
            ModelError: The server rejects the question, or no answer had the form.
        """
        calls, schema, total = MeteredCalls(self.budget, meter, purpose), question.schema, NOTHING
        hear = hear if question.stream else None
        times, repairs = 1, 0
        while True:
            answer = await self._answer(calls, question, left, hear, times=times)
            is_cut, parsed, problem = answer.finish == "length", None, "it was cut off at its limit."
            if schema is not None and not is_cut and not answer.tool_calls:
                try:
                    parsed = parse_answer(answer.text, schema)
                except InvalidInputError as error:
                    problem = error.message
            is_free = schema is None or bool(answer.tool_calls)
            is_complete = not is_cut and answer.finish != "filter"
            is_taken = is_complete if is_free else parsed is not None
            total = total.plus(calls.note(TAKEN if is_taken else Cause.CUT if is_cut else Cause.USELESS_ANSWER))
            if is_free or parsed is not None:
                return ChatAnswer(answer.text, parsed, answer.tool_calls, is_complete, total)
            if times == 2 if is_cut else repairs == MAX_REPAIRS:
                assert schema is not None
                raise ModelError(f"The model gave no {schema.__name__}: {problem}")
            if is_cut:
                times = 2
                continue
            repairs += 1
            said = ChatMessage("assistant", answer.text or "(nothing)"), ChatMessage("user", fill("repair", problem=problem))
            question = replace(question, messages=(*question.messages, *said))

    async def _answer(
        self, calls: MeteredCalls, question: ChatQuestion, left: Callable[[], Left], hear: Hear | None, *, times: int
    ) -> ModelAnswer:
        """Ask once; again with a lower limit of the answer if the model's context is too small."""
        room: int | None = None
        key = cache_key(VERSION, *(message.content[:_BEGINNING_CHARS] for message in question.messages[:2]))
        while True:
            free = left()
            free.check()
            wanted = times * (question.max_tokens or self.budget.answer_tokens(await self.model.context_tokens()))
            limit = max(1, min(wanted, room or wanted, self._affordable(free, wanted)))
            limits = AnswerLimits(limit, self.budget.answer_timeout, cache_key=key)
            try:
                answering = self.model.answer(
                    question.messages, question.schema, limits, question.tools, may_call=question.may_call, hear=hear
                )
                return await calls.count(answering)
            except PromptTooLongError as error:
                context = error.context or await self.model.context_tokens()
                room = min(limit // 2, context - estimate_tokens(*(message.content for message in question.messages)))
                if room < _LEAST_ANSWER_TOKENS:
                    raise

    def _affordable(self, left: Left, wanted: int) -> int:
        """Return the tokens that an answer may have; prices are for a million tokens, so a token costs as many millionths."""
        by_cost = wanted
        if left.cost_micros is not None and self.budget.answer_price > 0:
            by_cost = int(left.cost_micros / self.budget.answer_price)
        return min(by_cost, wanted if left.tokens is None else left.tokens)
