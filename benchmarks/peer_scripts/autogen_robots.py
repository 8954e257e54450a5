"""AutoGen: group chats of three robots and their table, by the same policy and on the same worlds as IoA's.

In a round robin everybody is asked in turn, and has to say something. A selector is a function that its author writes: this one
picks whom the last message names, and after an answer whoever asked, which is what IoA's messages do by themselves.

Prints a line of JSON for each chat and seed: whether the cubes were sorted, and how many messages the members said.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat, SelectorGroupChat
from autogen_core import CancellationToken
from autogen_ext.models.replay import ReplayChatCompletionClient

from examples.robots.sort_hidden import GOAL, REACH, TABLE, Turn, World, turn_of
from ioa import Heard
from ioa.protocol.ids import AgentId, TaskId


class Room:
    """What is so far, for those who are in one process: the world, what was said, and what the table is to execute."""

    def __init__(self, seed: int) -> None:
        self.world = World.reset(seed)
        self.heard: list[Heard] = []
        self._asked: Heard | None = None

    def turn_of(self, robot: str) -> Turn:
        """Say what the policy says. While the table has yet to act there is nothing to add."""
        if self._asked:
            return Turn("I have nothing to add.", TABLE)
        turn, number = turn_of(robot, self.world.observe(robot), self.heard), len(self.heard)
        if turn.to == TABLE:
            self._asked = Heard(number, AgentId(robot), "task", turn.text, TaskId(f"t{number}"), AgentId(TABLE))
        self.heard.append(self._asked or Heard(number, AgentId(robot), "message", turn.text))
        return turn

    def act(self) -> Turn:
        """Execute the joint action that the table was asked for, if it was, and answer whoever asked."""
        if self._asked is None:
            return Turn("I have nothing to add.")
        asked, self._asked = self._asked, None
        joint = {robot: (cube, panel) for robot, (cube, panel) in json.loads(asked.content).items()}
        if why := self.world.objection(joint):
            text = f"REFUSED: {why}."
        else:
            self.world = self.world.act(joint)
            text = f"EXECUTED{': the cubes are sorted' if self.world.done else ''}."
        self.heard.append(Heard(asked.turn, AgentId(TABLE), "result", text, asked.task_id, AgentId(TABLE)))
        return Turn(text, asked.sender)


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
        """Say what the policy says; what names nobody is the end."""
        turn = self._room.act() if self.name == TABLE else self._room.turn_of(self.name)
        said = turn.text if turn.to or self.name == TABLE else f"{turn.text} END"
        return Response(chat_message=TextMessage(content=said, source=self.name, metadata={"to": turn.to}))

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Forget nothing: each seed has members of its own."""


def named(messages: Sequence[BaseAgentEvent | BaseChatMessage]) -> str:
    """Return whom the last message names; the goal names nobody, and the first robot begins."""
    return messages[-1].metadata.get("to") or next(iter(REACH))


async def main() -> None:
    """Sort the cubes of as many seeds as the command line says, in either chat."""
    for seed in range(int(sys.argv[1])):
        for chat in ("round robin", "selector"):
            room = Room(seed)
            members = [Member(name, room) for name in (*REACH, TABLE)]
            until = {"termination_condition": TextMentionTermination("END"), "max_turns": 200}
            team = (
                RoundRobinGroupChat(members, **until)
                if chat == "round robin"
                else SelectorGroupChat(members, ReplayChatCompletionClient([]), selector_func=named, **until)
            )
            said = (await team.run(task=GOAL)).messages[1:]  # the first is the goal
            print(json.dumps({"chat": chat, "seed": seed, "sorted": room.world.done, "messages": len(said)}), flush=True)


asyncio.run(main())
