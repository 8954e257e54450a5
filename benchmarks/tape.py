"""Answers of a model as a tape: recorded while somebody plays it, and played again without one.

Each agent has its own, with a line for each answer in the order in which the agent was asked for that purpose, so that agents that
think at once may be heard in any order. What is asked may be worded differently than it was: a tape holds what was answered. A
question that comes again word for word, such as that for a team whose members went away, is answered as before.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel

from ioa.agent.model.answers import Formation, Speech
from ioa.errors import ModelError
from ioa.json_text import find_object
from ioa.ports.chat_model import AnswerLimits, ChatMessage, ChatModel, Hear, ModelAnswer, Tool

PURPOSES = ("form", "speak", "read", "repair", "task")
_CONTEXT = 200_000
_LATER = {"That answer cannot be used": "repair", "<read>": "read", "There is no room": "read"}
"""Purposes of later questions of a decision, by their beginning."""
_PLAYERS_TIME = timedelta(minutes=10)
_SHAPES: dict[type[BaseModel], str] = {Formation: "form", Speech: "speak"}
"""Those of a speech under a policy are made of it."""


@dataclass(frozen=True)
class Line:
    """What one agent answered to one question."""

    agent: str
    purpose: str
    answer: str


@dataclass(frozen=True)
class Heard:
    """A question as it was asked this time, and the answer.

    Attributes:
        talk: The same for questions that begin alike: of one agent, in one group.
    """

    line: Line
    talk: str
    messages: tuple[ChatMessage, ...]

    @property
    def prompt(self) -> str:
        """All that the model was told, in one text."""
        return "\n".join(message.content for message in self.messages)

    @property
    def thought(self) -> str:
        """What the model said to itself alone; empty if nothing."""
        said = find_object(self.line.answer)
        return str((said or {}).get("known", ""))

    @property
    def tokens(self) -> float:
        """How large the prompt is, by characters."""
        return len(self.prompt) / 4

    @property
    def charged(self) -> int:
        """The same as the goal is charged with it, in whole tokens."""
        return round(self.tokens)


class Tape:
    """What one agent's model says, and what was heard. With a `player` it answers, and else the lines do.

    Args:
        heard: Gets what was asked and answered, of all agents of a goal in one order.
    """

    def __init__(self, agent: str, lines: Iterable[Line], heard: list[Heard], player: ChatModel | None = None) -> None:
        self._agent = agent
        self._heard = heard
        self._player = player
        self._said: dict[tuple[ChatMessage, ...], ModelAnswer] = {}
        self._left: dict[str, list[str]] = defaultdict(list)
        for line in lines:
            if line.agent == agent:
                self._left[line.purpose].append(line.answer)

    @property
    def unplayed(self) -> int:
        """How many lines nobody has asked for."""
        return sum(map(len, self._left.values()))

    async def context_tokens(self) -> int:
        """Say what the player takes, or a large model."""
        return _CONTEXT if self._player is None else await self._player.context_tokens()

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
        """Say the next line for what is asked, or have it played and keep it.

        Raises:
            ModelError: The tape has no line for this.
        """
        purpose, asked = _purpose(messages, shape), tuple(messages)
        if self._player is not None:
            slowly = replace(limits, timeout=_PLAYERS_TIME)
            answer = await self._player.answer(messages, shape, slowly, tools, may_call=may_call, hear=hear)
        elif (said := self._said.get(asked)) is not None:
            answer = said
        elif self._left[purpose]:
            answer = self._said[asked] = ModelAnswer(self._left[purpose].pop(0))
        else:
            raise ModelError(f"The tape of {self._agent} has no line left to {purpose}.")
        heard = Heard(Line(self._agent, purpose, answer.text), f"{self._agent} {limits.cache_key}", asked)
        self._heard.append(heard)
        return replace(answer, prompt_tokens=heard.charged, answer_tokens=0, cached_tokens=0)


def _purpose(messages: Sequence[ChatMessage], shape: type[BaseModel] | None) -> str:
    if shape is None:
        return "task"
    for beginning, purpose in _LATER.items():
        if messages[-1].content.startswith(beginning):
            return purpose
    return next(purpose for base, purpose in _SHAPES.items() if issubclass(shape, base))


def read_tape(file: Path) -> list[Line]:
    """Read a goal's answers; those in JSON are kept as such, so that people can read them."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [
        Line(one["agent"], one["purpose"], one["answer"] if isinstance(one["answer"], str) else json.dumps(one["answer"]))
        for one in lines
    ]


def write_tape(file: Path, heard: Iterable[Heard]) -> None:
    """Keep the answers to a goal's questions, with how large each prompt was."""
    lines = []
    for one in heard:
        try:
            answer = json.loads(one.line.answer)
        except ValueError:
            answer = one.line.answer
        said = {"agent": one.line.agent, "purpose": one.line.purpose, "prompt_tokens": one.charged, "answer": answer}
        lines.append(json.dumps(said, ensure_ascii=False) + "\n")
    file.write_text("".join(lines), encoding="utf-8")
