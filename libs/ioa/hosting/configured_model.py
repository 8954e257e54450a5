"""The configured model of an agent, and a test of it. Modules that only a model needs are imported when one is configured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from pydantic import BaseModel

from ioa.errors import IoaError, ModelError

if TYPE_CHECKING:
    from ioa.adapters.openai.openai_chat import ModelSettings
    from ioa.agent.definition import AgentDefinition


def model_of(environment: Mapping[str, str], agent: AgentDefinition | None = None) -> ModelSettings | None:
    """Return the model settings of an agent, or without an agent of the environment; None if no model is configured.

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
    """Result of a test of the configured model.

    Attributes:
        seconds: Duration of the answer.
        failure: The error, if there is no usable answer.
        calls_tools: Whether it calls a tool on request; None if that was not tested.
    """

    model: str
    host: str
    seconds: float
    failure: IoaError | None = None
    calls_tools: bool | None = None


_WORD_TOKENS = 200
"""Enough for a word and some reasoning; longer reasoning counts as an answer too."""


class _Word(BaseModel):
    """The smallest answer."""

    word: str


async def ask_model(settings: ModelSettings, *, thoroughly: bool = False) -> ModelStanding:
    """Request a word by a schema within the model's timeout, and with `thoroughly` also a tool call."""
    from urllib.parse import urlsplit

    from ioa.adapters.openai.openai_chat import open_openai_chat
    from ioa.json_text import find_object
    from ioa.ports.chat_model import AnswerLimits, ChatMessage, Tool

    host = urlsplit(settings.base_url).netloc.rpartition("@")[2]
    asked, seconds, failure = monotonic(), 0.0, None
    calls_tools = None
    limits = AnswerLimits(max_tokens=_WORD_TOKENS, timeout=settings.timeout)
    async with open_openai_chat(settings) as chat:
        try:
            question = ChatMessage("user", 'Answer with {"word": "ready"}.')
            answer = await chat.answer([question], _Word, limits)
            seconds = monotonic() - asked
            if answer.finish != "length" and (find_object(answer.text) or {}).keys() != {"word"}:
                raise ModelError(
                    f"It was asked for a JSON object of one word and answered {answer.text[:100]!r}.",
                    hint="Use a model that follows a given form.",
                )
            if thoroughly:
                tool = Tool("ready", "Say that you are ready.", {"type": "object", "properties": {}})
                told = await chat.answer([ChatMessage("user", "Call the tool `ready`.")], None, limits, [tool])
                if told.finish != "length":  # otherwise it was still reasoning
                    calls_tools = any(call.name == tool.name for call in told.tool_calls)
        except IoaError as error:
            failure = error
    return ModelStanding(settings.model, host, seconds, failure, calls_tools)
