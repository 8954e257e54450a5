"""What a member remembers under a policy: how far back it is shown what was said, and what it is told of the rest.

All of it is made of what the agent was shown itself, so that it holds nothing that was kept from it. Views are made of entries
anew each time, never of views. What needs a model or the disk is bounded in time: without it a turn goes on with what is known.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from ioa.adapters.agent_memory import Passage, StoredSummary
from ioa.adapters.sqlite_store import SqliteStore
from ioa.agent.chatting import ChatQuestion, Left
from ioa.agent.conversation import Heard, heard_in, name_of_entry, said_last, without
from ioa.cancellation import fail_after
from ioa.errors import IoaError, ModelError, reason_of
from ioa.fences import defused, fenced
from ioa.group.budget import cost_left, tokens_left
from ioa.group.state import Charter
from ioa.ports.brain import GroupView, TaskRecord
from ioa.ports.chat_model import ChatMessage
from ioa.protocol.ids import CommId
from ioa.protocol.labels import CONVERSATIONS
from ioa.protocol.messages import Decision, Message
from ioa.protocol.policy import Memory
from ioa.protocol.texts import shortened

if TYPE_CHECKING:
    from ioa.agent.model.chat import ModelChat

SUMMED_UP_WITHIN = timedelta(seconds=30)
"""How long a summary may take, or a third of the floor's time if that is less."""
RECALLED_WITHIN = timedelta(seconds=2)
_MAX_SUMMARY_TOKENS = 1_000
_MAX_PASSAGE_BYTES = 1_000
_MAX_GROUPS = 1_000
_MAX_SAID_BYTES = 60_000
_AT_ONCE_BYTES = 250_000
"""How much of what was said is written and kept at a time: others have their turns between."""

Item = Message | TaskRecord

_log = structlog.get_logger(__name__)


class Memories:
    """What one agent remembers of its groups.

    Args:
        store: Keeps summaries and passages.
        chat: Sums up; None: nobody does.
    """

    def __init__(self, store: SqliteStore, chat: ModelChat | None) -> None:
        self._store = store
        self._chat = chat
        self._failed: OrderedDict[CommId, int] = OrderedDict()
        """How much was left out when a summary failed: it is tried again when as much more is, and not in each turn."""
        self._kept: dict[CommId, set[str]] = {}
        """What the store has passages of, by names, of the groups that are followed."""

    def forget(self, comm_id: CommId) -> None:
        """Take it that the store has no passages of a group, which is not followed any more: it may be forgotten there."""
        self._kept.pop(comm_id, None)

    async def remembered(self, view: GroupView) -> GroupView:
        """Leave out of a view what the agent's part has it not be shown, and tell what it remembers instead.

        Args:
            view: What its author has it be shown.
        """
        memory = None if view.part is None else view.part.memory
        if memory is None:
            return view
        told = heard_in(view)
        shown, left_out = _parted(view, memory, told)
        unsaid = [item for item in left_out if not _decides(item)]
        parts = [await self._summary(view, memory, unsaid, told), await self._recalled(view, memory, told, shown)]
        return replace(without(view, set(map(name_of_entry, left_out))), memory="\n\n".join(filter(None, parts)))

    async def _summary(self, view: GroupView, memory: Memory, left_out: Sequence[Item], told: Mapping[str, Sequence[Heard]]) -> str:
        if memory.summary is None:
            return ""
        comm_id, known = view.charter.comm_id, None
        try:
            async with fail_after(RECALLED_WITHIN.total_seconds()):
                known = await self._store.summary(comm_id)
            covered = frozenset[str]() if known is None else known.covers
            new = [item for item in left_out if name_of_entry(item) not in covered]
            if min(len(new), len(left_out) - self._failed.get(comm_id, 0)) >= memory.summary:
                self._failed[comm_id] = len(left_out)
                while len(self._failed) > _MAX_GROUPS:
                    self._failed.popitem(last=False)
                lines = said_last([one for item in new for one in told[name_of_entry(item)]], _MAX_SAID_BYTES)
                known = StoredSummary(covered.union(map(name_of_entry, new)), await self._summed_up(view, known, lines))
                await self._store.put_summary(comm_id, known)
                self._failed.pop(comm_id, None)
        except (IoaError, TimeoutError) as error:
            _log.warning("not_summed_up", agent_id=view.me, comm_id=comm_id, turn=view.state.turn, error=reason_of(error))
        return "" if known is None else f"What was said before, in short:\n{known.text}"

    async def _summed_up(self, view: GroupView, before: StoredSummary | None, lines: str) -> str:
        """Have the agent's model write a summary.

        Raises:
            ModelError: It wrote none, or there is no model.
            TimeoutError: It takes too long.
            IoaError: As `ModelChat.ask`.
        """
        if self._chat is None:
            raise ModelError("The agent has no language model that could sum up what was said.")
        from ioa.agent.model.prompts import Prompts  # what only a model needs

        text = Prompts().fill(
            "summary",
            me=view.me,
            goal=fenced("goal", defused(shortened(view.charter.goal, _MAX_SAID_BYTES // 4))),
            before=fenced("memory", "" if before is None else defused(before.text)),
            said=defused(lines),
        )
        state, meter = view.state, view.meter

        def left() -> Left:
            tokens, cost, spent = tokens_left(state), cost_left(state), meter.total
            return Left(None if tokens is None else tokens - spent.tokens, None if cost is None else cost - spent.cost_micros)

        within = min(SUMMED_UP_WITHIN, _floor(view) / 3)
        question = ChatQuestion((ChatMessage("user", text),), max_tokens=_MAX_SUMMARY_TOKENS)
        async with fail_after(within.total_seconds()):
            answer = await self._chat.ask(question, meter, left, purpose="remember")
        if not answer.text.strip():
            raise ModelError("The model gave an empty summary.")
        return answer.text.strip()

    async def _recalled(self, view: GroupView, memory: Memory, told: Mapping[str, Sequence[Heard]], shown: frozenset[str]) -> str:
        if memory.relevant is None:
            return ""
        comm_id, whose = view.charter.comm_id, _whose(view.charter)
        chosen = set(map(name_of_entry, filter(_decides, view.log)))
        said = {name: parts for name, parts in told.items() if parts and name not in chosen}
        words = f"{said_last(next(reversed(said.values()), ()), _MAX_SAID_BYTES)}\n{view.charter.goal}"
        try:
            async with fail_after(RECALLED_WITHIN.total_seconds()):
                await self._keep(whose, comm_id, said)
                found = await self._store.recall(whose, words, memory.relevant, {(comm_id, name) for name in shown})
        except (IoaError, TimeoutError) as error:
            _log.warning("not_recalled", agent_id=view.me, comm_id=comm_id, turn=view.state.turn, error=reason_of(error))
            return ""
        known = [one for one in found if one.comm_id != comm_id or one.name in told]  # and its author has it be shown
        lines = [shortened(one.text, _MAX_PASSAGE_BYTES) for one in known]
        return "\n".join(["What was said earlier, here or in other groups, and may matter:", *lines]) if lines else ""

    async def _keep(self, whose: str, comm_id: CommId, said: Mapping[str, Sequence[Heard]]) -> None:
        """Keep what is not kept yet, some of it at a time: after a restart that may be as much as there is room for."""
        kept = self._kept.setdefault(comm_id, set())
        for some in _passages(comm_id, {name: parts for name, parts in said.items() if name not in kept}):
            await self._store.remember(whose, comm_id, some)
            kept.update(one.name for one in some)


def in_sight(view: GroupView) -> GroupView:
    """Leave out of a view what the agent's part has it not be shown, and tell nothing instead."""
    memory = None if view.part is None else view.part.memory
    if memory is None:
        return view
    _, left_out = _parted(view, memory, heard_in(view))
    return without(view, set(map(name_of_entry, left_out)))


def _passages(comm_id: CommId, said: Mapping[str, Sequence[Heard]]) -> Iterator[Sequence[Passage]]:
    """Write passages of what was said, so much at a time."""
    some, size_bytes = list[Passage](), 0
    for name, parts in said.items():
        text = said_last(parts, _MAX_SAID_BYTES)
        some.append(Passage(comm_id, name, text))
        size_bytes += len(text.encode("utf-8", "replace"))
        if size_bytes >= _AT_ONCE_BYTES:
            yield some
            some, size_bytes = [], 0
    if some:
        yield some


def _whose(charter: Charter) -> str:
    """Say in which groups a passage may be recalled: those of the same user whose goals bear the same labels.

    A key of HTTP may be for goals with certain labels alone. Whoever holds it writes teams, which say who recalls, and reads what
    is said in them: so nothing may come there of goals that he does not see.
    """
    user = charter.user
    told = sorted((name, value) for name, value in charter.labels.items() if name not in CONVERSATIONS)
    return f"{user} {json.dumps(told)}" if told else user


def _floor(view: GroupView) -> timedelta:
    """Return how long the agent has the floor at the least."""
    state, policy = view.state, view.charter.policy
    assert policy is not None and view.part is not None
    own = [policy.roles[policy.role_numbers[name]].timeout for name in view.part.roles]
    return min(filter(None, (state.limits.floor_timeout, state.patience_of(view.me), *own)))


def _parted(view: GroupView, memory: Memory, told: Mapping[str, Sequence[Heard]]) -> tuple[frozenset[str], Sequence[Item]]:
    """Return by names what stays in sight of what was said, and what is left out."""
    items = [item for item in view.log if told.get(name_of_entry(item))]
    shown = _shown(items, memory, view)
    return shown, [item for item in items if name_of_entry(item) not in shown]


def _shown(items: Sequence[Item], memory: Memory, view: GroupView) -> frozenset[str]:
    """Return what of that which was said stays in sight, with what was decided since the first of it."""
    if not memory.window and not memory.last:
        return frozenset(map(name_of_entry, items))
    said = [item for item in items if not _decides(item)]
    shown = {name_of_entry(item) for item in said[-memory.window :]} if memory.window else set[str]()
    policy = view.charter.policy
    assert policy is not None
    for role, most in memory.last.items():
        number = policy.role_numbers[role]
        holders = {member.agent_id for member in view.state.members if number in member.roles}
        shown.update([name_of_entry(item) for item in said if isinstance(item, Message) and item.header.sender in holders][-most:])
    first = next((at for at, item in enumerate(items) if name_of_entry(item) in shown), len(items))
    return frozenset(shown.union(map(name_of_entry, filter(_decides, items[first:]))))


def _decides(item: Item) -> bool:
    """Whether somebody chose among what a policy asks of it, and said nothing."""
    return isinstance(item, Message) and isinstance(item.payload, Decision) and item.payload.task_id is None
