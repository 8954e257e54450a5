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
    from ioa.agent.model import Budget, Tally
    from ioa.agent.model.chat import ModelChat
    from ioa.ports.chat_model import ChatModel

MODEL_PATIENCE = timedelta(seconds=10)
"""How long a model may take to say a word before it is told that it does not answer."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Mind:
    """What an agent thinks with: what it says is decided by the brain; its tasks ask the model, if there is one."""

    brain: Brain
    chat: ModelChat | None = None


@asynccontextmanager
async def open_mind(environment: Mapping[str, str]) -> AsyncIterator[Mind]:
    """Open a model brain when a model is configured, else the rule brain, to which the other falls back if that is asked for.

    What only a model needs is imported only for one: it would be a fifth of the time in which an agent starts. At the end the
    log says how the model has served.

    Raises:
        InvalidInputError: A variable is malformed; the message names it.
    """
    settings = model_of(environment)
    if settings is None:
        yield Mind(RuleBrain())
        return
    async with _open_model(settings, environment) as mind:
        yield mind


@asynccontextmanager
async def open_own_mind(agent: AgentDefinition, shared: Mind, environment: Mapping[str, str]) -> AsyncIterator[Mind]:
    """Open what one agent thinks with: what its author gave it, and for the rest what all agents of the process share."""
    async with AsyncExitStack() as stack:
        mind = shared
        if agent.model is not None:
            mind = await stack.enter_async_context(_open_own_model(agent.model, environment))
        yield mind if agent.brain is None else replace(mind, brain=agent.brain)


@asynccontextmanager
async def _open_own_model(model: ModelSettings | ChatModel, environment: Mapping[str, str]) -> AsyncIterator[Mind]:
    from ioa.adapters.openai.settings import ModelSettings

    if not isinstance(model, ModelSettings):
        yield mind_of(model, budget=budget_of(environment), fallback=_fallback_of(environment))
        return
    async with _open_model(model, environment) as mind:
        yield mind


@asynccontextmanager
async def _open_model(settings: ModelSettings, environment: Mapping[str, str]) -> AsyncIterator[Mind]:
    from ioa.adapters.openai.chat import open_openai_chat
    from ioa.agent.model import Tally

    tally, fallback = Tally(), _fallback_of(environment)
    async with open_openai_chat(settings) as chat:
        try:
            yield mind_of(chat, name=settings.model, budget=budget_of(environment), tally=tally, fallback=fallback)
        finally:
            _log.info("model_served", model=settings.model, **tally.summary())


def mind_of(
    model: ChatModel,
    *,
    name: str = "model",
    budget: Budget | None = None,
    tally: Tally | None = None,
    fallback: RuleBrain | None = None,
) -> Mind:
    """Think with one language model, in turns as in tasks. Where it fails nobody decides, unless there is a `fallback`."""
    from ioa.agent.model import Budget, ModelBrain
    from ioa.agent.model.chat import ModelChat

    budget = budget or Budget()
    return Mind(ModelBrain(model, fallback, name=name, budget=budget, tally=tally), ModelChat(model, budget))


def _fallback_of(environment: Mapping[str, str]) -> RuleBrain | None:
    from ioa.adapters.openai.settings import ModelVariables

    return RuleBrain() if ModelVariables.read(environment).llm_fallback == "rules" else None


def check_models(agents: Sequence[AgentDefinition], environment: Mapping[str, str]) -> None:
    """Check that each agent has a model which can do nothing without one.

    Raises:
        InvalidInputError: One has none; the message names the variable that gives it one.
    """
    lacking = [agent for agent in agents if agent.needs_model and agent.model is None]
    if lacking and model_of(environment) is None:
        raise no_model(lacking[0].agent_id)


def budget_of(environment: Mapping[str, str]) -> Budget:
    """Read what a decision by a model may take.

    Raises:
        InvalidInputError: A variable is malformed; the message names it.
    """
    from ioa.adapters.openai.settings import ModelVariables
    from ioa.agent.model import Budget

    own = ModelVariables.read(environment)
    return Budget(
        max_prompt=own.llm_max_prompt,
        max_answer=own.llm_max_answer,
        answer_timeout=own.llm_timeout,
        decision_timeout=own.llm_patience,
        temperature=own.llm_temperature,
        prompt_price=own.llm_price_in,
        cached_price=own.llm_price_cached,
        answer_price=own.llm_price_out,
        now=own.llm_now,
    )


def model_of(environment: Mapping[str, str]) -> ModelSettings | None:
    """Read which model is configured; None if none is.

    Raises:
        InvalidInputError: A variable is malformed; the message names it.
    """
    if not any(name.startswith(("IOA_LLM_", "OPENAI_")) for name in environment):
        return None
    from ioa.adapters.openai.chat import ModelSettings

    return ModelSettings.from_environment(environment)


@dataclass(frozen=True)
class ModelStanding:
    """How the configured model answers.

    Attributes:
        model: What it is called.
        host: Where it is.
        seconds: How long it took to say a word.
        failure: Why it did not.
    """

    model: str
    host: str
    seconds: float
    failure: IoaError | None = None


_WORD_TOKENS = 200
"""Room for a word, and for a model that reasons a little first; one that reasons longer has answered all the same."""


class _Word(BaseModel):
    """The least that can be asked for."""

    word: str


async def ask_model(settings: ModelSettings) -> ModelStanding:
    """Ask the model for a word, as agents ask it, by a schema, and measure how long it takes."""
    from urllib.parse import urlsplit

    from ioa.adapters.openai.chat import open_openai_chat
    from ioa.json_text import find_object
    from ioa.ports.chat_model import AnswerLimits, ChatMessage

    host = urlsplit(settings.base_url).netloc.rpartition("@")[2]
    asked, failure = monotonic(), None
    async with open_openai_chat(settings) as chat:
        try:
            question = ChatMessage("user", 'Answer with {"word": "ready"}.')
            answer = await chat.answer([question], _Word, AnswerLimits(max_tokens=_WORD_TOKENS, timeout=MODEL_PATIENCE))
            if answer.finish != "length" and (find_object(answer.text) or {}).keys() != {"word"}:
                raise ModelError(
                    f"It was asked for a JSON object of one word and said {answer.text[:100]!r}.",
                    hint="Take a model that answers in a given form, or see IOA_LLM_FORMAT.",
                )
        except IoaError as error:
            failure = error
    return ModelStanding(settings.model, host, monotonic() - asked, failure)
