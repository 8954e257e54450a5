"""The brains of the agents of a process, and the language models for their tasks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ioa.agent.brain_port import Brain
from ioa.agent.definition import AgentDefinition
from ioa.agent.rules import RuleBrain
from ioa.agent.tasks.running_task import no_model
from ioa.hosting.configured_model import model_of

if TYPE_CHECKING:
    from ioa.adapters.openai.openai_chat import ModelSettings
    from ioa.agent.model import Budget
    from ioa.agent.model.chat import ModelChat
    from ioa.ports.chat_model import ChatModel


@dataclass(frozen=True)
class Mind:
    """The brain of an agent, which decides its messages, and the model for its tasks, if there is one."""

    brain: Brain
    chat: ModelChat | None = None


@asynccontextmanager
async def open_minds(agents: Sequence[AgentDefinition], environment: Mapping[str, str]) -> AsyncIterator[list[Mind]]:
    """Open the mind of each of these agents: its author's brain, otherwise the configured model, otherwise rules.

    Agents with the same model share one client. Modules that only a model needs are imported when there is a model: they take a
    fifth of the time in which an agent starts.

    Args:
        agents: The agents, in the order of the minds.
        environment: The configuration of models.

    Raises:
        InvalidInputError: An agent that needs a model has none, or a setting is malformed; the message names it.
    """
    opened: list[tuple[ModelSettings | None, Mind]] = [(None, Mind(RuleBrain()))]
    minds: list[Mind] = []
    async with AsyncExitStack() as stack:
        for agent in agents:
            if (own := _own_model(agent)) is not None:
                from ioa.adapters.openai.settings import ModelSettings

                mind = _create_mind(own, replace(budget_of(ModelSettings.layered(environment, agent.agent_id)), model="model"))
            else:
                settings = model_of(environment, agent)
                found = [mind for known, mind in opened if known == settings]
                if settings is not None and not found:
                    from ioa.adapters.openai.openai_chat import open_openai_chat

                    chat = await stack.enter_async_context(open_openai_chat(settings))
                    found = [_create_mind(chat, budget_of(settings))]
                    opened.append((settings, found[0]))
                mind = found[0]
            if mind.chat is None and agent.needs_model:
                raise no_model(agent.agent_id)
            minds.append(mind if agent.brain is None else replace(mind, brain=agent.brain))
        yield minds


def _own_model(agent: AgentDefinition) -> ChatModel | None:
    """Return the model that an agent's author has created, not only described."""
    if agent.model is None:
        return None
    from ioa.adapters.openai.settings import ModelSettings

    return None if isinstance(agent.model, ModelSettings) else agent.model


def _create_mind(model: ChatModel, budget: Budget) -> Mind:
    """Return a mind that uses one language model for turns and tasks."""
    from ioa.agent.model import ModelBrain
    from ioa.agent.model.chat import ModelChat

    return Mind(ModelBrain(model, budget=budget), ModelChat(model, budget))


def budget_of(settings: ModelSettings) -> Budget:
    """Return the limits of a decision by a model."""
    from ioa.agent.model import Budget

    prompt, answer, cached = (*settings.prices, None, None, None)[:3]
    return Budget(
        max_answer=settings.max_answer,
        answer_timeout=settings.timeout,
        decision_timeout=settings.patience,
        prompt_price=prompt or 0.0,
        cached_price=cached,
        answer_price=answer or 0.0,
        model=settings.model,
    )
