"""A language model that says what a test tells it to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from ioa.errors import IoaError, ModelError
from ioa.ports.chat_model import AnswerLimits, ChatMessage, Hear, ModelAnswer, Tool, ToolCall, check_calls, with_own_ids

Line = str | IoaError | ModelAnswer


@dataclass(frozen=True)
class ScriptedCall:
    """One call the model was asked to answer."""

    messages: tuple[ChatMessage, ...]
    shape: type[BaseModel] | None
    limits: AnswerLimits
    tools: tuple[Tool, ...] = ()
    may_call: bool = True

    @property
    def prompt(self) -> str:
        """All that the model was told, in one text."""
        return "\n".join(message.content for message in self.messages)


def wants(tool: str, /, **arguments: object) -> ModelAnswer:
    """Return the answer of a model that asks for a tool, as a line of a script."""
    return ModelAnswer("", "tools", tool_calls=(ToolCall("", tool, json.dumps(arguments)),))


class ScriptedModel:
    """Answer with the lines of a script, in order. False in that it reads nothing of what it is asked.

    Args:
        script: The answers; an error is raised instead of said. A function is called for every answer, without an end.
            `wants` makes an answer that asks for a tool.
        context: How many tokens it says that it takes; whoever plays a model that learns may set it anew.
    """

    def __init__(self, script: Iterable[Line] | Callable[[ScriptedCall], Line], context: int = 128_000) -> None:
        self.context = context
        self.asked: list[ScriptedCall] = []
        self._write = script if callable(script) else None
        self._lines = iter(() if callable(script) else script)

    async def context_tokens(self) -> int:
        """Say what it was told to."""
        return self.context

    async def answer(
        self,
        messages: Sequence[ChatMessage],
        shape: type[BaseModel] | None,
        limits: AnswerLimits,
        tools: Sequence[Tool] = (),
        *,
        may_call: bool = True,
        hear: Hear | None = None,
    ) -> ModelAnswer:
        """Say the next line; `hear` is told a text of it at once.

        Raises:
            InvalidInputError: A call of a tool has no answer.
            IoaError: The next line is an error, or the script is at its end (ModelError).
        """
        check_calls(messages)
        await asyncio.sleep(0)
        asked = ScriptedCall(tuple(messages), shape, limits, tuple(tools), may_call)
        self.asked.append(asked)
        line = self._write(asked) if self._write else next(self._lines, ModelError("The script has no further line."))
        if isinstance(line, IoaError):
            raise line
        answer = ModelAnswer(line) if isinstance(line, str) else with_own_ids(line, messages)
        if hear is not None and shape is None and answer.text:
            hear(answer.text)
        return answer
