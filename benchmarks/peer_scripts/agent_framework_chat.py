"""Agent Framework: a group chat in which the next in line speaks, with a checkpoint file after every step."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from agent_framework import AgentResponse, BaseAgent, Content, FileCheckpointStorage, Message
from agent_framework.orchestrations import GroupChatBuilder, GroupChatState

from clock import Clock


class SilentAgent(BaseAgent):  # type: ignore[misc]  # installed only where this runs
    """Answer 200 bytes."""

    def __init__(self, name: str, clock: Clock) -> None:
        super().__init__(name=name, description="Says something.")
        self._clock = clock

    def run(self, messages: Any = None, *, stream: bool = False, **_: Any) -> Awaitable[AgentResponse]:
        """Answer at once. Nobody asks for a stream here."""
        assert not stream
        return self._answer()

    async def _answer(self) -> AgentResponse:
        content = Content.from_text(self._clock.reply())
        return AgentResponse(messages=[Message(role="assistant", contents=[content], author_name=self.name)])


async def main() -> None:
    """Let the team talk."""
    clock = Clock()
    names = [f"agent_{number}" for number in range(clock.members)]

    def next_in_line(state: GroupChatState) -> str:
        rounds: int = state.current_round
        return names[rounds % len(names)]

    chat = GroupChatBuilder(
        participants=[SilentAgent(name, clock) for name in names],
        selection_func=next_in_line,
        max_rounds=clock.turns,
        checkpoint_storage=FileCheckpointStorage(clock.folder),
    ).build()
    chat._runner._max_iterations = 10 * clock.turns  # 100 otherwise; the builder has no setting for it
    await chat.run("Say something, in turns.")
    clock.report()


asyncio.run(main())
