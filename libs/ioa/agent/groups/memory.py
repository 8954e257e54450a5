"""Memory of an agent under a policy: a window of the conversation, a summary of earlier messages, and recalled passages."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from ioa.adapters.sqlite_store import Passage
from ioa.agent.conversation import Heard, name_of_entry
from ioa.agent.tasks.chat_question import ChatQuestion, Left
from ioa.agent.turn_view import TurnView
from ioa.agent.view_text import heard_in, said_last, without
from ioa.concurrency import fail_after
from ioa.errors import IoaError, ModelError, reason_of
from ioa.foreign_text import defused, fenced
from ioa.group.budget import cost_left, tokens_left
from ioa.group.state import Ended
from ioa.ports.brain_types import TaskRecord
from ioa.ports.chat_model import ChatMessage
from ioa.protocol.goals import CONVERSATIONS
from ioa.protocol.messages import Decision, Message
from ioa.protocol.policy_parts import Memory
from ioa.protocol.setup.charter import Charter
from ioa.protocol.texts import shortened

if TYPE_CHECKING:
    from ioa.agent.agent_ports import AgentPorts

SUMMARY_TIMEOUT = timedelta(seconds=30)
"""Timeout of a summary; a third of the floor's time if that is less."""
RECALL_TIMEOUT = timedelta(seconds=2)
_MAX_SUMMARY_TOKENS = 1_000
_MAX_PASSAGE_BYTES = 1_000
_MAX_SAID_BYTES = 60_000

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _Item:
    """An entry that can be shown, hidden, summarised and recalled."""

    name: str
    entry: Message | TaskRecord
    heard: Sequence[Heard]

    @property
    def is_decision(self) -> bool:
        """True for a choice that a policy asked for."""
        payload = self.entry.payload if isinstance(self.entry, Message) else None
        return isinstance(payload, Decision) and payload.task_id is None

    @property
    def text(self) -> str:
        """The entry with its speakers."""
        return said_last(self.heard, _MAX_SAID_BYTES)


@dataclass
class _Kept:
    """Memory of a single group.

    Attributes:
        summary: The summary of the messages whose names `covers` contains.
        failed_at: Number of omitted messages at the last failed summary; 0 after a success.
    """

    summary: str = ""
    covers: frozenset[str] = frozenset()
    failed_at: int = 0


@dataclass(frozen=True)
class Memories:
    """Memory of an agent in its groups; `ports` has the store, the clock, and the model that writes summaries."""

    ports: AgentPorts

    async def remembered(self, view: TurnView) -> TurnView:
        """Return a view without messages that the agent's part hides, and with the agent's memory of them."""
        memory = None if view.part is None else view.part.memory
        if memory is None:
            return view
        items = _items(view)
        shown = _shown(view, memory, items)
        hidden = [item for item in items if item.name not in shown]
        kept: _Kept = view.kept.setdefault(_Kept, _Kept())
        parts: list[str] = []
        if memory.summary is not None:
            parts.append(await self._summary(view, kept, memory.summary, [item for item in hidden if not item.is_decision]))
        if memory.relevant is not None:
            said = [item for item in items if not item.is_decision]
            try:
                parts.append(await self._recalled(view, memory.relevant, said, shown))
            except (IoaError, TimeoutError) as error:
                _log.warning("not_recalled", turn=view.turn, error=reason_of(error))
        return replace(without(view, {item.name for item in hidden}), memory="\n\n".join(filter(None, parts)))

    async def _summary(self, view: TurnView, kept: _Kept, after: int, hidden: Sequence[_Item]) -> str:
        """Return the summary of hidden messages; extend it first if `after` messages are not covered."""
        names = frozenset([item.name for item in hidden])
        if not kept.covers <= names:  # a message was struck
            kept.summary, kept.covers = "", frozenset()
        new = [item for item in hidden if item.name not in kept.covers]
        if min(len(new), len(hidden) - kept.failed_at) >= after:
            kept.failed_at = len(hidden)
            try:
                lines = said_last([one for item in new for one in item.heard], _MAX_SAID_BYTES)
                kept.summary = await self._summarise(view, kept.summary, lines)
                kept.covers, kept.failed_at = names, 0
            except (IoaError, TimeoutError) as error:
                _log.warning("not_summed_up", turn=view.turn, error=reason_of(error))
        return f"What was said before, in short:\n{kept.summary}" if kept.summary else ""

    async def _summarise(self, view: TurnView, before: str, lines: str) -> str:
        """Ask the agent's model for a summary.

        Raises:
            ModelError: There is no model, or its answer is empty.
            TimeoutError: The model is too slow.
            IoaError: As `ModelChat.ask`.
        """
        if self.ports.chat is None:
            raise ModelError("The agent has no language model that can write a summary.")
        from ioa.agent.model.prompt_templates import fill  # needed with a model only

        text = fill(
            "summary",
            me=view.me,
            goal=fenced("goal", defused(shortened(view.charter.goal, _MAX_SAID_BYTES // 4))),
            before=fenced("memory", defused(before)),
            said=defused(lines),
        )
        state, meter = view.state, view.meter

        def left() -> Left:
            return Left.after(tokens_left(state), cost_left(state), meter.total)

        question = ChatQuestion((ChatMessage("user", text),), max_tokens=_MAX_SUMMARY_TOKENS)
        stage, timeout = view.state.stage, SUMMARY_TIMEOUT
        if not isinstance(stage, Ended) and stage.until is not None and view.at is not None:
            timeout = min(timeout, (stage.until - view.at) / 3)
        async with fail_after(timeout.total_seconds()):
            answer = await self.ports.chat.ask(question, meter, left, purpose="remember")
        if not answer.text.strip():
            raise ModelError("The model gave an empty summary.")
        return answer.text.strip()

    async def _recalled(self, view: TurnView, most: int, said: Sequence[_Item], shown: Collection[str]) -> str:
        """Store new passages, and return those that fit the last message and the goal."""
        comm_id, owner = view.comm_id, _passage_owner(view.charter)
        words = f"{said[-1].text if said else ''}\n{view.goal}"
        passages, names = [Passage(comm_id, item.name, item.text) for item in said], {item.name for item in said}
        async with fail_after(RECALL_TIMEOUT.total_seconds()):
            await self.ports.store.remember(owner, passages, self.ports.clock.now())
            found = await self.ports.store.recall(owner, words, most, {(comm_id, name) for name in shown})
        lines = [shortened(one.text, _MAX_PASSAGE_BYTES) for one in found if one.comm_id != comm_id or one.name in names]
        return "\n".join(["What was said earlier, here or in other groups, and may matter:", *lines]) if lines else ""


def in_sight(view: TurnView) -> TurnView:
    """Return a view without messages that the agent's part hides."""
    memory = None if view.part is None else view.part.memory
    if memory is None:
        return view
    items = _items(view)
    return without(view, {item.name for item in items} - _shown(view, memory, items))


def _items(view: TurnView) -> list[_Item]:
    """Return the entries that say something, in order."""
    heard = heard_in(view)
    named = [(name_of_entry(entry), entry) for entry in view.log]
    return [_Item(name, entry, heard[name]) for name, entry in named if heard[name]]


def _shown(view: TurnView, memory: Memory, items: Sequence[_Item]) -> set[str]:
    """Return the names of the messages that the part shows, and of the decisions since the first of them."""
    policy = view.charter.policy
    if not memory.window and not memory.last:
        return {item.name for item in items}
    said = [item for item in items if not item.is_decision]
    shown = {item.name for item in said[-memory.window :]} if memory.window else set[str]()
    assert policy is not None
    for role, most in memory.last.items():
        number = policy.role_numbers[role]
        holders = {member.agent_id for member in view.state.members if number in member.roles}
        by_role = [item.name for item in said if isinstance(item.entry, Message) and item.entry.header.sender in holders]
        shown.update(by_role[-most:])
    first = next((at for at, item in enumerate(items) if item.name in shown), len(items))
    return shown.union(item.name for item in items[first:] if item.is_decision)


def _passage_owner(charter: Charter) -> str:
    """Return the key of the groups that share passages: groups of one user whose goals have the same labels.

    A key of HTTP can be restricted to labels; its holder must not read messages of other goals.
    """
    labels = sorted((name, value) for name, value in charter.labels.items() if name not in CONVERSATIONS)
    return f"{charter.user} {json.dumps(labels)}" if labels else charter.user
