"""Choosing the brain of the agents of a process, by its environment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict

import structlog
from pydantic import TypeAdapter, ValidationError

from ioa.agent.rules import RuleBrain
from ioa.errors import InvalidInputError
from ioa.ports.brain import Brain

BUDGET_VARIABLE = "IOA_LLM_BUDGET"

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def open_brain(environment: Mapping[str, str]) -> AsyncIterator[Brain]:
    """Open a model brain when a model is configured, else the rule brain, which is what the model brain falls back to.

    What only a model needs is imported only for one: it would be a fifth of the time in which an agent starts. At the end the
    log says how the model has served.

    Raises:
        InvalidInputError: A variable is malformed; the message names it.
    """
    rules = RuleBrain()
    if not any(name.startswith(("IOA_LLM_", "OPENAI_")) for name in environment):
        yield rules
        return
    from ioa.adapters.openai_chat import ModelSettings, open_openai_chat
    from ioa.agent.model import Budget, ModelBrain

    settings = ModelSettings.from_environment(environment)
    if settings is None:
        yield rules
        return
    try:
        budget = TypeAdapter(Budget).validate_json(environment.get(BUDGET_VARIABLE) or "{}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "JSON"
        raise InvalidInputError(f"{BUDGET_VARIABLE}: {where}: {first['msg']}.") from None
    async with open_openai_chat(settings) as chat:
        brain = ModelBrain(chat, rules, budget=budget)
        try:
            yield brain
        finally:
            tally = asdict(brain.tally)
            fallbacks = {f"{decision}:{cause}": count for (decision, cause), count in tally.pop("fallbacks").items()}
            _log.info("model_served", model=settings.model, fallbacks=fallbacks, **tally)
