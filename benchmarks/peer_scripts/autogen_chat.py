"""AutoGen: a round robin of agents that answer at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken

from clock import Clock


class SilentAgent(BaseChatAgent):  # type: ignore[misc]  # installed only where this runs
    """Answer 200 bytes."""

    def __init__(self, name: str, clock: Clock) -> None:
        super().__init__(name, "Says something.")
        self._clock = clock

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """Text."""
        return (TextMessage,)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        """Answer at once."""
        return Response(chat_message=TextMessage(content=self._clock.reply(), source=self.name))

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Forget nothing: there is nothing to forget."""


async def main() -> None:
    """Let the team talk."""
    clock = Clock()
    team = RoundRobinGroupChat([SilentAgent(f"agent_{n}", clock) for n in range(clock.members)], max_turns=clock.turns)
    await team.run(task="Say something, in turns.")
    clock.report()


asyncio.run(main())
