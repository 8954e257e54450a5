"""AutoGen: a round robin of three robots and their table, by the same policy and on the same worlds as IoA's.

Prints a line of JSON for each seed: whether the cubes were sorted, and how many messages the members said.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Literal

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken

from examples.robots.sort_hidden import GOAL, REACH, TABLE, World, turn_of
from ioa import Heard
from ioa.protocol.ids import AgentId


class Room:
    """What is so far, for those who are in one process: the world, and what was said."""

    def __init__(self, seed: int) -> None:
        self.world = World.reset(seed)
        self.heard: list[Heard] = []

    def say(self, kind: Literal["message", "result"], sender: str, content: str) -> str:
        """Keep what is said."""
        self.heard.append(Heard(len(self.heard), AgentId(sender), kind, content))
        return content

    def act(self) -> str:
        """Execute the joint action that was said last."""
        joint = {robot: (cube, panel) for robot, (cube, panel) in json.loads(self.heard.pop().content).items()}
        if why := self.world.objection(joint):
            return self.say("result", TABLE, f"REFUSED: {why}.")
        self.world = self.world.act(joint)
        return self.say("result", TABLE, f"EXECUTED{': the cubes are sorted' if self.world.done else ''}.")


class Member(BaseChatAgent):  # type: ignore[misc]  # installed only where this runs
    """A robot, or the table."""

    def __init__(self, name: str, room: Room) -> None:
        super().__init__(name, "Sorts cubes.")
        self._room = room

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """Text."""
        return (TextMessage,)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        """Say what the policy says."""
        room = self._room
        if self.name == TABLE:
            said = room.act()
        else:
            turn = turn_of(self.name, room.world.observe(self.name), room.heard)
            said = room.say("message", self.name, turn.text) + ("" if turn.to else " END")
        return Response(chat_message=TextMessage(content=said, source=self.name))

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Forget nothing: each seed has members of its own."""


async def main() -> None:
    """Sort the cubes of as many seeds as the command line says."""
    for seed in range(int(sys.argv[1])):
        room = Room(seed)
        members = [Member(name, room) for name in (*REACH, TABLE)]
        team = RoundRobinGroupChat(members, termination_condition=TextMentionTermination("END"), max_turns=200)
        said = (await team.run(task=GOAL)).messages[1:]  # the first is the goal
        print(json.dumps({"seed": seed, "sorted": room.world.done, "messages": len(said)}), flush=True)


asyncio.run(main())
