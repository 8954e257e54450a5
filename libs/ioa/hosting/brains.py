"""Choosing what the agents of a process think with: a brain, and a language model for their tasks."""

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
from ioa.runtime.known_settings import variable

if TYPE_CHECKING:
    from ioa.adapters.openai.chat import ModelSettings
    from ioa.agent.model import Budget
    from ioa.agent.model.chat import ModelChat
    from ioa.ports.chat_model import ChatModel


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
    fifth of the time in which an agent starts.

    Args:
        agents: Whose minds are returned, in this order.
        environment: Where models are configured.
        shared: What agents think with whose authors gave them no model, in the place of what is configured.

    Raises:
        InvalidInputError: A setting is malformed; the message names it.
    """
    rules = RuleBrain(left_out=environment.get(variable("left_out"), ""))
    opened: list[tuple[ModelSettings | None, Mind]] = [(None, Mind(rules))]
    minds: list[Mind] = []
    async with AsyncExitStack() as stack:
        for agent in agents:
            if shared is not None and agent.model is None:
                mind = shared
            elif (own := _own_model(agent)) is not None:
                mind = mind_of(own, settings=_configured(environment, agent))
            else:
                settings = model_of(environment, agent)
                found = next((mind for known, mind in opened if known == settings), None)
                if settings is not None and found is None:
                    from ioa.adapters.openai.chat import open_openai_chat

                    chat = await stack.enter_async_context(open_openai_chat(settings))
                    found = mind_of(chat, name=settings.model, settings=settings)
                    opened.append((settings, found))
                assert found is not None
                mind = found
            minds.append(mind if agent.brain is None else replace(mind, brain=agent.brain))
        yield minds


def _own_model(agent: AgentDefinition) -> ChatModel | None:
    """Return the model that an agent's author has made, and not only described."""
    if agent.model is None:
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
) -> Mind:
    """Return a mind that uses one language model for turns and tasks."""
    from ioa.agent.model import Budget, ModelBrain
    from ioa.agent.model.chat import ModelChat

    budget = budget or (Budget() if settings is None else budget_of(settings))
    return Mind(ModelBrain(model, name=name, budget=budget), ModelChat(model, budget))


def check_models(agents: Sequence[AgentDefinition], environment: Mapping[str, str]) -> None:
    """Check that each agent has a model which can do nothing without one.

    Raises:
        InvalidInputError: One has none, or a setting is malformed; the message names the variable, or the file with table and key.
    """
    for agent in agents:
        if _own_model(agent) is None and model_of(environment, agent) is None and agent.needs_model:
            raise no_model(agent.agent_id)


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
    )
