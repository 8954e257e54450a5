"""Order for a rerun: a new goal whose text contains an earlier goal's conversation with one message replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.client.history import conversation
from ioa.client.transcript import Line, Transcript
from ioa.errors import InvalidInputError, NotFoundError, PayloadTooLargeError
from ioa.foreign_text import continued
from ioa.group.events import QuestionAnswered, Said
from ioa.ports.group_log import StoredEntry
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import MAX_GOAL_CHARS, RERUN_OF, RESERVED, Goal
from ioa.protocol.ids import GoalName
from ioa.protocol.usage import MICROS

_INTRODUCTION = (
    "An earlier run of this goal had the conversation below. Continue after its last message, which the user has changed."
)
_EQUAL_FIELDS = ("agent", "as_task", "inputs", "team", "repetition", "max_turns", "max_tokens")


async def order_rerun(system: NatsSystemClient, name: GoalName, at: int, message: str) -> GoalOrder:
    """Return the order for a new goal with the text, files, team and limits of an earlier goal and its conversation.

    The label `rerun-of` of the order names the earlier goal.

    Args:
        system: Access to the earlier goal, with the rights of the caller.
        name: The earlier goal.
        at: Sequence of the entry whose message is replaced. The conversation ends with this message.
        message: New text of the message.

    Raises:
        NotFoundError: The goal or the entry does not exist.
        InvalidInputError: The entry is no message, or the new text is empty.
        PayloadTooLargeError: The text of the new goal exceeds the limit.
    """
    if not message.strip():
        raise InvalidInputError("The new message is empty.")
    goal = (await system.goal(name)).record.goal
    entries = [stored for stored in await conversation(system, name.comm_id) if stored.seq <= at]
    if not entries or entries[-1].seq != at:
        raise NotFoundError(
            f"The goal {name} has no entry {at}.", hint="`ioa groups ID --json` lists the entries with their `seq`."
        )
    transcript = Transcript()
    *earlier, last = [transcript.read(stored) for stored in entries]
    lines = [*chain.from_iterable(earlier), replace(_message_line(entries[-1], last), text=message)]
    text = "\n".join([goal.goal, "", _INTRODUCTION, "", *map(_shown, lines)])
    if len(text) > MAX_GOAL_CHARS:
        raise PayloadTooLargeError(
            f"The goal with its conversation up to entry {at} exceeds {MAX_GOAL_CHARS:,} characters.",
            hint="Choose an earlier entry.",
        )
    return _order_like(goal, text)


def _message_line(stored: StoredEntry, lines: Sequence[Line]) -> Line:
    if not isinstance(stored.entry.event, Said | QuestionAnswered) or not lines:
        raise InvalidInputError(f"Entry {stored.seq} is no message.", hint="Choose an entry in which a member or a person speaks.")
    return lines[0]


def _shown(line: Line) -> str:
    return f"{'  ' * line.depth}{line.speaker} ({line.act}): {continued(line.text)}"


def _order_like(goal: Goal, text: str) -> GoalOrder:
    fields = {name: getattr(goal, name) for name in _EQUAL_FIELDS} | {
        "goal": text,
        "max_cost": None if goal.max_cost_micros is None else goal.max_cost_micros / MICROS,
        "timeout": goal.timeout.total_seconds(),
        "labels": {key: value for key, value in goal.labels.items() if key not in RESERVED} | {RERUN_OF: str(goal.name)},
    }
    return GoalOrder.model_validate({key: value for key, value in fields.items() if value is not None})
