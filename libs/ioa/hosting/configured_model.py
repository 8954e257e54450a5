"""Which model is configured, and how it answers. What only a model needs is imported only for one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING

from pydantic import BaseModel

from ioa.errors import IoaError, ModelError

if TYPE_CHECKING:
    from ioa.adapters.openai.chat import ModelSettings
    from ioa.agent.definition import AgentDefinition

START_PATIENCE = timedelta(seconds=10)
"""How long whoever starts a system waits for a model to say a word, if its settings have no less patience."""


def model_of(environment: Mapping[str, str], agent: AgentDefinition | None = None) -> ModelSettings | None:
    """Read which model is configured, for one agent or for those of which nothing more is said; None if none is.

    Raises:
        InvalidInputError: A setting is malformed; the message names the variable, or the file with table and key.
    """
    own = None if agent is None else agent.model
    if own is None and not any(name.startswith(("IOA_LLM_", "OPENAI_")) for name in environment):
        return None
    from ioa.adapters.openai.settings import ModelSettings

    own = own if isinstance(own, ModelSettings) else None
    return ModelSettings.from_environment(environment, "" if agent is None else agent.agent_id, own)


@dataclass(frozen=True)
class ModelStanding:
    """How the configured model answers.

    Attributes:
        model: What it is called.
        host: Where it is.
        seconds: How long it took to say a word.
        failure: Why it did not.
        calls_tools: Whether it calls a tool when it is told to; None if that was not looked into.
    """

    model: str
    host: str
    seconds: float
    failure: IoaError | None = None
    calls_tools: bool | None = None


_WORD_TOKENS = 200
"""Room for a word, and for a model that reasons a little first; one that reasons longer has answered all the same."""


class _Word(BaseModel):
    """The least that can be asked for."""

    word: str


async def ask_model(settings: ModelSettings, *, thoroughly: bool = False) -> ModelStanding:
    """Ask the model for a word, as agents ask it, by a schema, and measure how long it takes.

    With `thoroughly` it has as much time for each answer as agents give it, and is asked to call a tool too.
    """
    from urllib.parse import urlsplit

    from ioa.adapters.openai.chat import open_openai_chat
    from ioa.json_text import find_object
    from ioa.ports.chat_model import AnswerLimits, ChatMessage, Tool

    host = urlsplit(settings.base_url).netloc.rpartition("@")[2]
    asked, seconds, failure = monotonic(), 0.0, None
    calls_tools = None
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
                    hint="Use a model that follows a given form.",
                )
            if thoroughly:
                tool = Tool("ready", "Say that you are ready.", {"type": "object", "properties": {}})
                told = await chat.answer([ChatMessage("user", "Call the tool `ready`.")], None, limits, [tool])
                if told.finish != "length":  # else it was still reasoning
                    calls_tools = any(call.name == tool.name for call in told.tool_calls)
        except IoaError as error:
            failure = error
    return ModelStanding(settings.model, host, seconds, failure, calls_tools)
