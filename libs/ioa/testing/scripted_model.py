"""A language model with scripted answers."""

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
    """A recorded request."""

    messages: tuple[ChatMessage, ...]
    shape: type[BaseModel] | None
    limits: AnswerLimits
    tools: tuple[Tool, ...] = ()
    may_call: bool = True

    @property
    def prompt(self) -> str:
        """All messages as one text."""
        return "\n".join(message.content for message in self.messages)


def wants(tool: str, /, **arguments: object) -> ModelAnswer:
    """Return an answer that calls a tool, as a line of a script."""
    return ModelAnswer("", "tools", tool_calls=(ToolCall("", tool, json.dumps(arguments)),))


class ScriptedModel:
    """Answer with the lines of a script, in order.

    Args:
        script: The answers, or a function that returns each answer. An error is raised. `wants` makes a call of a tool.
        context: The context in tokens; a test can change it.
    """

    def __init__(self, script: Iterable[Line] | Callable[[ScriptedCall], Line], context: int = 128_000) -> None:
        self.context = context
        self.asked: list[ScriptedCall] = []
        self._write = script if callable(script) else None
        self._lines = iter(() if callable(script) else script)

    async def context_tokens(self) -> int:
        """Return the context."""
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
        """Return the next line; `hear` receives its whole text.

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
