"""Choosing what the agents of a process think with: a brain, and a language model for their tasks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING

import structlog
from pydantic import BaseModel

from ioa.agent.definition import AgentDefinition
from ioa.agent.rules import RuleBrain
from ioa.agent.task_runner import no_model
from ioa.errors import IoaError, ModelError
from ioa.ports.brain import Brain

if TYPE_CHECKING:
    from ioa.adapters.openai.chat import ModelSettings
    from ioa.agent.model import Budget, ModelTally
    from ioa.agent.model.chat import ModelChat
    from ioa.ports.chat_model import ChatModel

START_PATIENCE = timedelta(seconds=10)
"""How long whoever starts a system waits for a model to say a word, if its settings have no less patience."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Mind:
    """What an agent thinks with: what it says is decided by the brain; its tasks ask the model, if there is one."""

    brain: Brain
    chat: ModelChat | None = None


@asynccontextmanager
async def open_minds(
    agents: Sequence[AgentDefinition], environment: Mapping[str, str], shared: Mind | None = None
) -> AsyncIterator[list[Mind]]:
    """Open what each of these agents thinks with: a model where one is configured, else rules; its author's brain, if there is one.

    Agents with the same model have one client of it together. What only a model needs is imported only for one: it would be a
    fifth of the time in which an agent starts. At the end the log says how each model has served.

    Args:
        agents: Whose minds are returned, in this order.
        environment: Where models are configured.
        shared: What agents think with whose authors gave them no model, in the place of what is configured.

    Raises:
        InvalidInputError: A setting is malformed; the message names it.
    """
    opened: list[tuple[ModelSettings | None, Mind]] = [(None, Mind(RuleBrain()))]
    minds: list[Mind] = []
    async with AsyncExitStack() as stack:
        for agent in agents:
            if shared is not None and (agent.model is None or isinstance(agent.model, str)):
                mind = shared
            elif (own := _own_model(agent)) is not None:
                mind = mind_of(own, settings=_configured(environment, agent))
            else:
                settings = model_of(environment, agent)
                found = next((mind for known, mind in opened if known == settings), None)
                if settings is not None and found is None:
                    found = await stack.enter_async_context(_open_model(settings))
                    opened.append((settings, found))
                assert found is not None
                mind = found
            minds.append(mind if agent.brain is None else replace(mind, brain=agent.brain))
        yield minds


@asynccontextmanager
async def _open_model(settings: ModelSettings) -> AsyncIterator[Mind]:
    from ioa.adapters.openai.chat import open_openai_chat
    from ioa.agent.model import ModelTally

    tally = ModelTally()
    async with open_openai_chat(settings) as chat:
        try:
            yield mind_of(chat, name=settings.model, settings=settings, tally=tally)
        finally:
            _log.info("model_served", model=settings.model, **tally.summary())


def _own_model(agent: AgentDefinition) -> ChatModel | None:
    """Return the model that an agent's author has made, and not only described."""
    if agent.model is None or isinstance(agent.model, str):
        return None
    from ioa.adapters.openai.settings import ModelSettings

    return None if isinstance(agent.model, ModelSettings) else agent.model


def _configured(environment: Mapping[str, str], agent: AgentDefinition) -> ModelSettings:
    from ioa.adapters.openai.settings import ModelSettings

    return ModelSettings.layered(environment, agent.agent_id)


def mind_of(
    model: ChatModel,
    *,
    name: str = "model",
    settings: ModelSettings | None = None,
    budget: Budget | None = None,
    tally: ModelTally | None = None,
) -> Mind:
    """Think with one language model, in turns as in tasks. Where it fails nobody decides, unless its settings name a fallback."""
    from ioa.agent.model import Budget, ModelBrain
    from ioa.agent.model.chat import ModelChat

    budget = budget or (Budget() if settings is None else budget_of(settings))
    fallback = RuleBrain() if settings is not None and settings.fallback == "rules" else None
    return Mind(ModelBrain(model, fallback, name=name, budget=budget, tally=tally), ModelChat(model, budget))


def check_models(agents: Sequence[AgentDefinition], environment: Mapping[str, str]) -> None:
    """Check that each agent has a model which can do nothing without one.

    Raises:
        InvalidInputError: One has none, or a setting is malformed; the message names the variable, or the file with table and key.
    """
    for agent in agents:
        if _own_model(agent) is None and model_of(environment, agent) is None and agent.needs_model:
            raise no_model(agent.agent_id)


def budget_of(settings: ModelSettings) -> Budget:
    """Return what a decision by a model may take."""
    from ioa.agent.model import Budget

    return Budget(
        max_prompt=settings.max_prompt,
        max_answer=settings.max_answer,
        answer_timeout=settings.timeout,
        decision_timeout=settings.patience,
        temperature=settings.temperature,
        prompt_price=settings.price_in,
        cached_price=settings.price_cached,
        answer_price=settings.price_out,
        now=settings.now,
    )


def model_of(environment: Mapping[str, str], agent: AgentDefinition | None = None) -> ModelSettings | None:
    """Read which model is configured, for one agent or for those of which nothing more is said; None if none is.

    Raises:
        InvalidInputError: A setting is malformed; the message names the variable, or the file with table and key.
    """
    own = None if agent is None else agent.model
    if own is None and not any(name.startswith(("IOA_LLM_", "OPENAI_")) for name in environment):
        return None
    from ioa.adapters.openai.settings import ModelSettings

    own = own if isinstance(own, ModelSettings | str) else None
    return ModelSettings.from_environment(environment, "" if agent is None else agent.agent_id, own)


@dataclass(frozen=True)
class ModelStanding:
    """How the configured model answers.

    Attributes:
        model: What it is called.
        host: Where it is.
        seconds: How long it took to say a word.
        failure: Why it did not.
        context: Tokens that fit into a request with its answer, as far as is known; 0 if that was not looked into.
        calls_tools: Whether it calls a tool when it is told to; None if that was not looked into.
    """

    model: str
    host: str
    seconds: float
    failure: IoaError | None = None
    context: int = 0
    calls_tools: bool | None = None


_WORD_TOKENS = 200
"""Room for a word, and for a model that reasons a little first; one that reasons longer has answered all the same."""


class _Word(BaseModel):
    """The least that can be asked for."""

    word: str


async def ask_model(settings: ModelSettings, *, thoroughly: bool = False) -> ModelStanding:
    """Ask the model for a word, as agents ask it, by a schema, and measure how long it takes.

    With `thoroughly` it has as much time for each answer as agents give it, and is asked to call a tool too, and the server for the
    model's context.
    """
    from urllib.parse import urlsplit

    from ioa.adapters.openai.chat import open_openai_chat
    from ioa.json_text import find_object
    from ioa.ports.chat_model import AnswerLimits, ChatMessage, Tool

    host = urlsplit(settings.base_url).netloc.rpartition("@")[2]
    asked, seconds, failure = monotonic(), 0.0, None
    context, calls_tools = 0, None
    limits = AnswerLimits(
        max_tokens=_WORD_TOKENS, timeout=settings.timeout if thoroughly else min(START_PATIENCE, settings.timeout)
    )
    async with open_openai_chat(settings) as chat:
        try:
            question = ChatMessage("user", 'Answer with {"word": "ready"}.')
            answer = await chat.answer([question], _Word, limits)
            seconds = monotonic() - asked
            if answer.finish != "length" and (find_object(answer.text) or {}).keys() != {"word"}:
                raise ModelError(
                    f"It was asked for a JSON object of one word and said {answer.text[:100]!r}.",
                    hint="Take a model that answers in a given form, or see IOA_LLM_FORMAT.",
                )
            if thoroughly:
                context = await chat.context_tokens()
                tool = Tool("ready", "Say that you are ready.", {"type": "object", "properties": {}})
                told = await chat.answer([ChatMessage("user", "Call the tool `ready`.")], None, limits, [tool])
                if told.finish != "length":  # else it was still reasoning
                    calls_tools = any(call.name == tool.name for call in told.tool_calls)
        except IoaError as error:
            failure = error
    return ModelStanding(settings.model, host, seconds, failure, context, calls_tools)
