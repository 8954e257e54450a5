"""Memory of an agent under a policy: a window of the conversation, a summary of earlier messages, and recalled passages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from ioa.adapters.agent_memory import Passage, StoredSummary
from ioa.agent.conversation import Heard, heard_in, name_of_entry, said_last, without
from ioa.agent.tasks.chat_question import ChatQuestion, Left
from ioa.agent.turn_view import TurnView
from ioa.cancellation import fail_after
from ioa.errors import IoaError, ModelError, reason_of
from ioa.fences import defused, fenced
from ioa.group.budget import cost_left, tokens_left
from ioa.group.state import Charter
from ioa.ports.brain import TaskRecord
from ioa.ports.chat_model import ChatMessage
from ioa.protocol.labels import CONVERSATIONS
from ioa.protocol.messages import Decision, Message
from ioa.protocol.policy import Memory
from ioa.protocol.texts import shortened

if TYPE_CHECKING:
    from ioa.adapters.sqlite_store import SqliteStore
    from ioa.agent.agent_ports import AgentPorts
    from ioa.agent.model.chat import ModelChat

SUMMARY_TIMEOUT = timedelta(seconds=30)
"""Timeout of a summary; a third of the floor's time if that is less."""
RECALL_TIMEOUT = timedelta(seconds=2)
_MAX_SUMMARY_TOKENS = 1_000
_MAX_PASSAGE_BYTES = 1_000
_MAX_SAID_BYTES = 60_000

Item = Message | TaskRecord

_log = structlog.get_logger(__name__)


@dataclass
class _Stored:
    """Stored data of a group: the names of its passages, and the omitted messages at the last failed summary."""

    names: set[str] = field(default_factory=set)
    failed_at: int = 0


class Memories:
    """Memory of one agent in its groups.

    Args:
        ports: The store, the clock, and the model that writes summaries.
    """

    def __init__(self, ports: AgentPorts) -> None:
        self._store: SqliteStore = ports.store
        self._clock = ports.clock
        self._chat: ModelChat | None = ports.chat

    async def remembered(self, view: TurnView) -> TurnView:
        """Return a view without messages that the agent's part hides, and with the agent's memory of them."""
        memory = None if view.part is None else view.part.memory
        if memory is None:
            return view
        heard = heard_in(view)
        shown, hidden = _split(view, memory, heard)
        unsaid = [item for item in hidden if not _is_decision(item)]
        parts = [await self._summary(view, memory, unsaid, heard), await self._recalled(view, memory, heard, shown)]
        return replace(without(view, set(map(name_of_entry, hidden))), memory="\n\n".join(filter(None, parts)))

    async def _summary(self, view: TurnView, memory: Memory, hidden: Sequence[Item], heard: Mapping[str, Sequence[Heard]]) -> str:
        """Return the summary of hidden messages; extend it first if `memory.summary` messages are not covered."""
        if memory.summary is None:
            return ""
        comm_id, known = view.charter.comm_id, None
        stored: _Stored = view.kept.setdefault(_Stored, _Stored())
        try:
            async with fail_after(RECALL_TIMEOUT.total_seconds()):
                known = await self._store.summary(comm_id)
            covered = frozenset[str]() if known is None else known.covers
            new = [item for item in hidden if name_of_entry(item) not in covered]
            if min(len(new), len(hidden) - stored.failed_at) >= memory.summary:
                stored.failed_at = len(hidden)
                lines = said_last([one for item in new for one in heard[name_of_entry(item)]], _MAX_SAID_BYTES)
                known = StoredSummary(covered.union(map(name_of_entry, new)), await self._summarise(view, known, lines))
                await self._store.put_summary(comm_id, known)
                stored.failed_at = 0
        except (IoaError, TimeoutError) as error:
            _log.warning("not_summed_up", agent_id=view.me, comm_id=comm_id, turn=view.state.turn, error=reason_of(error))
        return "" if known is None else f"What was said before, in short:\n{known.text}"

    async def _summarise(self, view: TurnView, before: StoredSummary | None, lines: str) -> str:
        """Ask the agent's model for a summary.

        Raises:
            ModelError: There is no model, or its answer is empty.
            TimeoutError: The model is too slow.
            IoaError: As `ModelChat.ask`.
        """
        if self._chat is None:
            raise ModelError("The agent has no language model that can write a summary.")
        from ioa.agent.model.prompts import fill  # needed with a model only

        text = fill(
            "summary",
            me=view.me,
            goal=fenced("goal", defused(shortened(view.charter.goal, _MAX_SAID_BYTES // 4))),
            before=fenced("memory", "" if before is None else defused(before.text)),
            said=defused(lines),
        )
        state, meter = view.state, view.meter

        def left() -> Left:
            return Left.after(tokens_left(state), cost_left(state), meter.total)

        question = ChatQuestion((ChatMessage("user", text),), max_tokens=_MAX_SUMMARY_TOKENS)
        async with fail_after(min(SUMMARY_TIMEOUT, _floor_time(view) / 3).total_seconds()):
            answer = await self._chat.ask(question, meter, left, purpose="remember")
        if not answer.text.strip():
            raise ModelError("The model gave an empty summary.")
        return answer.text.strip()

    async def _recalled(self, view: TurnView, memory: Memory, heard: Mapping[str, Sequence[Heard]], shown: frozenset[str]) -> str:
        """Store new passages, and return those that fit the last message and the goal."""
        if memory.relevant is None:
            return ""
        comm_id, owner = view.charter.comm_id, _passage_owner(view.charter)
        decided = set(map(name_of_entry, filter(_is_decision, view.log)))
        said = {name: parts for name, parts in heard.items() if parts and name not in decided}
        words = f"{said_last(next(reversed(said.values()), ()), _MAX_SAID_BYTES)}\n{view.charter.goal}"
        stored: _Stored = view.kept.setdefault(_Stored, _Stored())
        new = [
            Passage(comm_id, name, said_last(parts, _MAX_SAID_BYTES)) for name, parts in said.items() if name not in stored.names
        ]
        try:
            async with fail_after(RECALL_TIMEOUT.total_seconds()):
                if new:
                    await self._store.remember(owner, new, self._clock.now())
                    stored.names.update(said)
                found = await self._store.recall(owner, words, memory.relevant, {(comm_id, name) for name in shown})
        except (IoaError, TimeoutError) as error:
            _log.warning("not_recalled", agent_id=view.me, comm_id=comm_id, turn=view.state.turn, error=reason_of(error))
            return ""
        known = [one for one in found if one.comm_id != comm_id or one.name in heard]
        lines = [shortened(one.text, _MAX_PASSAGE_BYTES) for one in known]
        return "\n".join(["What was said earlier, here or in other groups, and may matter:", *lines]) if lines else ""


def in_sight(view: TurnView) -> TurnView:
    """Return a view without messages that the agent's part hides."""
    memory = None if view.part is None else view.part.memory
    if memory is None:
        return view
    _, hidden = _split(view, memory, heard_in(view))
    return without(view, set(map(name_of_entry, hidden)))


def _passage_owner(charter: Charter) -> str:
    """Return the key of the groups that share passages: groups of one user whose goals have the same labels.

    A key of HTTP can be restricted to labels; its holder must not read messages of other goals.
    """
    labels = sorted((name, value) for name, value in charter.labels.items() if name not in CONVERSATIONS)
    return f"{charter.user} {json.dumps(labels)}" if labels else charter.user


def _floor_time(view: TurnView) -> timedelta:
    """Return the shortest time that the agent can have the floor."""
    state, policy = view.state, view.charter.policy
    assert policy is not None and view.part is not None
    own = [policy.roles[policy.role_numbers[name]].timeout for name in view.part.roles]
    return min(filter(None, (state.limits.floor_timeout, state.patience_of(view.me), *own)))


def _split(view: TurnView, memory: Memory, heard: Mapping[str, Sequence[Heard]]) -> tuple[frozenset[str], Sequence[Item]]:
    """Return the names of the entries that the part shows, and the entries that it hides."""
    items = [item for item in view.log if heard.get(name_of_entry(item))]
    shown = _shown(items, memory, view)
    return shown, [item for item in items if name_of_entry(item) not in shown]


def _shown(items: Sequence[Item], memory: Memory, view: TurnView) -> frozenset[str]:
    """Return the names of the messages that the part shows, and of the decisions since the first of them."""
    if not memory.window and not memory.last:
        return frozenset(map(name_of_entry, items))
    said = [item for item in items if not _is_decision(item)]
    shown = {name_of_entry(item) for item in said[-memory.window :]} if memory.window else set[str]()
    policy = view.charter.policy
    assert policy is not None
    for role, most in memory.last.items():
        number = policy.role_numbers[role]
        holders = {member.agent_id for member in view.state.members if number in member.roles}
        shown.update([name_of_entry(item) for item in said if isinstance(item, Message) and item.header.sender in holders][-most:])
    first = next((at for at, item in enumerate(items) if name_of_entry(item) in shown), len(items))
    return frozenset(shown.union(map(name_of_entry, filter(_is_decision, items[first:]))))


def _is_decision(item: Item) -> bool:
    """Return True for a choice that a policy asked for."""
    return isinstance(item, Message) and isinstance(item.payload, Decision) and item.payload.task_id is None
