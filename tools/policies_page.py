"""Print what a team file may hold: `python -m tools.policies_page docs/policies.md` writes it off the classes and the rules.

Fields, defaults and limits come from `ioa.protocol.policy`; only what the code cannot say stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args, get_origin

from pydantic import BaseModel

from ioa.group.floor import ROUNDS_OF_SILENCE
from ioa.group.policy.deciding import MAX_STRUCK
from ioa.protocol.policy import (
    MAX_NODES,
    MAX_PROMPT_CHARS,
    MAX_ROLES,
    Condition,
    Exit,
    FormField,
    Guard,
    Memory,
    Mode,
    Node,
    Opening,
    Policy,
    Removal,
    Review,
    Role,
    Turns,
    Watcher,
)
from ioa.protocol.policy_check import MAX_POLICY_BYTES
from ioa.protocol.team import MAX_TURNS, MAX_VALUES
from tools.generated import write_or_check
from tools.protocol_page import meanings_of

MODES: Mapping[Mode, str] = {
    "order": "the next in the cast after the last speaker, round and round",
    "nominate": "whom the speaker names (`next_speaker`, `view.say(…, to=)`), else the next in order",
    "random": "one of those present but the last speaker, by a hash of `seed`, the group, the node, its visit and turn; the same "
    "each time the log is read",
    "hub": "the first holder of `by`, then whom it names, one or several side by side (`next_speakers`), as many as turns of `max` "
    "and of the group are left once it has spoken, then the hub again; if it names nobody, the next in order",
    "together": "all who are present, side by side, once each under one turn number; as far as `max` reaches",
    "ask": "whom the first holder of `by` chooses among those present but the last speaker; if it does not, the next in order",
}

_PARTS: Mapping[str, tuple[type[BaseModel], str]] = {
    "The team": (
        Policy,
        f"At the top of a file, beside `team` (its name), `goal` and `max_turns` (of the group, {MAX_TURNS} by default).",
    ),
    "A role": (
        Role,
        """\
Under `[roles]`, by its name. `agent` names an agent or a pool, `agents` several, `need` says in words whom discovery is to find;
`count` is how many of a pool or for a need, each another one; the leader is not found for a need that reviews, judges or watches a
role of its own. A role that is only a text is the name of its agent. `human = true` is the person `NAME` that is called as the
role, `human = "anna"` another one.""",
    ),
    "`memory`": (
        Memory,
        """\
Of a role, such as `memory = { window = 20, summary = 10 }`. It is kept by the member's own client, of what it was shown, and
changes nothing that others see. A summary needs a language model; without one, or where it is away, the turn goes on without.""",
    ),
    "A watcher": (Watcher, "Each under `[[watchers]]`. A text for `may` or `go` is a list of one."),
    "A node": (
        Node,
        """\
Each under `[[nodes]]`. `then = "x"` or a list is short for exits without a condition; without `then` and `exits` the node leads to
`end`.""",
    ),
    "`turns`": (Turns, "A text is short for `{ mode = … }`."),
    "`opens`": (Opening, "Words are said by the member's client; no model is asked, and nothing else is taken."),
    "`form`": (
        FormField,
        """\
By the name of the field, as a table or in short: `text`, `number`, `1..10`, `yes/no`, `accept|revise`, `member`, or the name of a
role, of which the member is; with `?` behind it the field may be left out. Prose is never read: what an exit depends on is a field.
Under `form = { vote = "player", score = "1..10", done = "yes/no?" }` each message of the node carries these values.""",
    ),
    "`guards`": (
        Guard,
        """\
A list such as `["not_empty", { longest = 500 }, { without = ["apple"] }]`. What is refused is told to who has said it, as
`guarded`, and to nobody else; after the third refusal in a turn its client passes.""",
    ),
    "`review`": (Review, "A text is short for `{ by = … }`."),
    "An exit": (
        Exit,
        """\
With `by` a role is asked, the judge: its first holder chooses one of its exits that are open and whose `when` holds, or to
stay.""",
    ),
    "`remove`": (
        Removal,
        """\
From the next entry of the log on a removed member hears nothing and has no part; the entry that removes it still reaches it. The
owner of the group stays: a vote for it removes nobody. The owner is the first agent that plays the `leader`, else the first
role that agents hold. There is no way to leave; a member that is to go is named in a field.""",
    ),
    "`when`": (
        Condition,
        """\
At least one of them; all that are given must hold. Whether all have filled in the same is said by an exit for each option, with
`by = "all"`. None says otherwise that values are equal, how many have filled something in, what
answer is the most frequent, or what was filled in elsewhere: let a member count and fill in what it finds, or let one judge.""",
    ),
}

_INTRO = f"""\
# Policies

<!-- Generated by `python -m tools.policies_page docs/policies.md` from the classes in the code. Do not edit. -->

A policy says who speaks when in a group, and what leads on. It is data in the group's charter; routers hold each message to it.
[Lead a team by a policy](teams.md) shows how to write one, `ioa team check` tells what is wrong with one, `ioa team try` plays it.
Names are 1 to 32 of `a-z 0-9 _ -` and begin with a letter; there are at most {MAX_ROLES} roles and {MAX_NODES} nodes, a prompt has
{MAX_PROMPT_CHARS:,} characters, the whole policy {MAX_POLICY_BYTES:,} bytes, and a team file {MAX_VALUES:,} values."""

_RULES = f"""\
## What happens, in this order

1. **A node is entered.** Its cast are the holders of its roles, in the order of the roles, then of joining. Where roles are
   secret, members join in the order of their ids, and holders of secret roles alone have the place of the first secret role.
   *Present* are the members of the cast that live and have a turn left by `at_most`. If no member is present, the group takes the
   first open exit of a rule, otherwise the first open exit, otherwise it ends. An exit is *open* while its node has a visit left
   by `visits`, and *closed* afterwards; the end is always open.
2. **The first floor** goes to the role in `opens`, otherwise to the first member by `turns`.
3. **After each turn** the node's count rises. A turn is silent if the floor times out, the member passes, or it repeats itself
   twice. A silent turn counts for `max` and `at_most`, but is no message and uses none of `max_turns`. The group waits for a
   member whose model is unavailable, for `IOA_MODEL_PATIENCE`.
4. **Exits** are checked in this order: the exit that the speaker chose (`go`) · exits of rules whose `when` holds, in the order
   of the file · at `max` the first *bare* exit, which is a rule without `when`, otherwise the first exit whether its `when` holds
   or not, otherwise the end. Closed exits are skipped. Without `max`, a node whose exits are all bare lasts one round; if one
   exit has a condition, give the others `when = {{ rounds = 1 }}`. In a hub only the hub chooses an exit, in parallel turns no
   member does.
5. **The judge is asked** if no exit was taken, and one of its exits is open and its `when` holds: with `asked = "turn"` after
   each turn; with `"round"` after a parallel turn, and after each turn at which the node's count is a multiple of the number of
   present members. If the judge does not choose, the node goes on: a bare exit beside its own is taken at `max`. Exits come
   first, so a node with `max` needs more turns than a round for its judge to be asked. To ask a role once, with a default, give
   it a node of its own with a `form`.
6. **Otherwise the next member speaks**, as `turns` says. A member that is lost while it has the floor is passed over and not
   counted; if no other member is present, it keeps the floor until its time is over. If no member has a turn left, the node is
   left as at `max`. In a hub the hub has the floor again, also if no member that it named is present any more.

**The board.** With `writes` a message writes texts that the node names (`writes`, `view.say(…, writes=)`): a separate text for
each name, or the words of the message. The state contains the number of versions and the author of the last one; the words are in
the message. A member reads the last version that it has heard, and counts the versions that it has heard; drafts and struck
messages are not on the board. Opening words write nothing.

**Invitations.** In a node with `invites` the member with the floor can invite an agent, in one of the node's roles that is neither
secret nor held by a person, and keeps the floor; this uses no turn. All members are told which agent joins, which member invited
it, and why; so all members must hear such a node. The role of the new member hears at most what the inviting member hears, drafts
and decisions included. The new member hears all later messages, and speaks as the turns of the node say. It reads the earlier
messages that every member was told, members included that had been removed. Groups without a policy permit invitations at any
time. An agent does not join if it is offline, if its card does not accept teams of the inviter's pool, if the group has 64
members, or if the policy could add more than 16,000 bytes to the state (`too_many_members`).

**Tasks.** In a node with `tasks` the member with the floor can assign tasks to any members except people, itself included
(`view.assign`), and wait for tasks that it knows (`view.pause`). Then it has the floor again, as in [any group](group.md); if it
is not present, its turn is silent. Neither is a turn of the node, and both use one turn of the group. Results are rejected in
such a node, or with the conclusion, and nowhere else (`off_course`). Guards check the words of tasks, not the results; watchers
are not asked. Reports arrive in any node. A speaker cannot end the discussion while it knows of open tasks (`tasks_open`); an end
by a rule, a judge or a watcher cancels them. Tasks of a removed member are cancelled too, and tasks that were assigned since a
node was entered that is restarted. A task that names a stored team (`view.assign(…, team=…)`) is completed by the conclusion of
that team in a nested group; its assignee can only fail it (`bad_team`).

**In parallel** all members have the same turn number and send one message each, in any order. A member whose time is up, or that
passes, is silent; the seat of a lost member is closed and does not count. After the last seat is closed, the group goes on as
after one turn. With `peers = "after"` routers show a member the other messages after its own seat is closed; a member that is
asked again, because its model was unavailable, waits for its own message. With `"never"` no other member of the node hears it,
except the hub that asked. Open seats count as used turns of the group until they are closed in silence. If fewer turns are left
than there are seats, the leader concludes.

**A decision** is one of the options. Any other answer is rejected with the options (`bad_decision`), recorded in the log as
`message_refused`, and uses one of `tries`. The default counts after the last try, after the timeout, and if the member passes. A
decision has a turn number, and uses none of `max_turns`. If there is only one option, no member is asked.

**A person** holds a role that is `human`. No model is asked: messages come from `ioa answer`, or from a program that speaks as the
agent `human-NAME`. The group waits for the `timeout` of the role, by default until the group's deadline. A person counts as present
and is never lost; after the timeout the turn is silent, or the default counts. An agent must hold another role and opens the group.

**Watchers** are asked after each message that they watch, in the order of the file, before exits, the judge and the next speaker;
parallel messages are completed first. Drafts, silent turns, and an end without a message are not watched. A watcher chooses
`nothing`, which is the default, or one of `may`: `remove` members, except the owner; `add` an agent by an invitation, in any role
that is neither secret nor held by a person and hears at most what the watcher hears; `hint` a text to members, which only they and
members that hear all read; `end` the discussion, which the leader concludes; or a node of `go` that was entered before and has a
visit left. That node is entered again, and clients strike the messages and hints since it was entered last: these are in no prompt
and no view of an agent, and stay in the log. After {MAX_STRUCK} separate struck parts no node is restarted any more. Members that a
message named, and that were removed meanwhile, are left out.

**Guards** reject a message before it has any effect. Words of a pass, a note or an invitation that they reject are removed.
**A review** makes each message a draft first, which its author, the holders of the reviewing role, and members that hear all
read. The first living reviewer is asked to `pass` or `reject` it, with a reason for the author; without a decision it is rejected.
After `pass` the author's client sends the draft again, unchanged and without a model, to all members; any other message is
rejected. After `reject` the author sends another draft, as long as it has `tries` left. Each draft and the message use one turn of
the group; only the message, or the dropped turn, counts in the node. The opening words of a node are not reviewed. A reviewed
speaker names at most one next speaker, and ends the group by `go`.

After {ROUNDS_OF_SILENCE} silent turns in a row for each member the group ends with `no_speaker`, with `silent = "end"` after the
first one. At `end` the first living holder of `leader`, otherwise the owner, states the conclusion. With `ends = "last"` the
message of the last turn is the result, unless that turn is silent or a decision follows it. `max_turns`, budgets and the deadline
hold as in [any group](limits.md).

**Not part of the language**: a fork and join of nodes, because parallel work is a node with `turns = "together"` or with `tasks`;
conditions on the words of a message, because a field of a `form` is exact; text for a silent turn; an order by role, because a
node with one role does the same; and turn counts that continue when a node is entered again.

## Who hears what

**A message** in a node is sent to its speaker, to the holders of `heard_by`, and to members with `hears_all`; with a table, to
the roles that it lists for any role of the speaker. For a role that the table does not list, and a node without `heard_by`, the
policy's `heard_by` counts: `all`, the speakers of the `node`, or the `leader`, whom all hear. A speaker can narrow a message to
some of the members that it knows to hear it (`to`, `view.say(…, only_to=)`); other names are rejected (`bad_addressee`). A task
is known to the members that heard its assignment, and to its assignee; only they learn of reports, questions, answers and nested
teams. Its files are part of the answer, which all hear, only if the answer names them. A task cannot use a task that its assignee
does not know (`bad_addressee`), and a member that does not know a task is answered as if the task did not exist. All members hear
the launch, timers, members that are lost or return, and the conclusion. Where something is hidden, a decision and its rejection
are sent to the asked member and to members that hear all; the decision about a draft to the members that heard the draft, and a
hint to the members that it names. The entry that removes a member is the last one that it sees.

**A member that does not hear an event** sees that something happened (`unheard`), and when. It sees the place of the group only
in nodes that it hears: elsewhere the floor is `elsewhere`, without a course. It sees no votes, choices and secret roles of
other members. Its charter lacks the holders and prompts of secret roles, and the words of nodes that it neither speaks in nor
hears. Rejections tell it nothing more.

**Who holds a secret role** is in nothing that other members are shown: not in the list of members, which is in the order of their
ids, not in the order in which holders of several secret roles speak in one node, and not in tasks. Timing and costs are not hidden:
an agent's patience, and what messages and tasks cost, are shown to each member that hears them, and the group's total to all. A
file itself may show it, for example with a secret role that alone speaks where all hear it. What players say, how soon they
answer, and what their agents are called is theirs.

**Nobody hides** that something happened, when, and how many turns it took; who is in the group, lost or removed; and which nodes,
forms and exits the policy has. So a group shows what somebody played that was removed, where a node is passed over once nobody is
left who speaks in it: the next night is shorter by the seer's turns. Whoever opens the group, its `leader` or else the first role,
reads the whole file. Users with the right to read logs, and operators, see everything: `ioa replay` and transcripts are theirs."""


def render() -> str:
    """Write the page."""
    parts = [_INTRO, _RULES, "## Who speaks next", _modes()]
    parts += ["\n\n".join(filter(None, (f"## {title}", about, _fields(kind)))) for title, (kind, about) in _PARTS.items()]
    return "\n\n".join(parts) + "\n"


def _modes() -> str:
    assert set(MODES) == set(get_args(Mode)), "each mode is explained"
    return "\n".join(["| `turns` | who speaks next |", "|---|---|", *(f"| `{mode}` | {told} |" for mode, told in MODES.items())])


def _fields(kind: type[BaseModel]) -> str:
    meanings = meanings_of(kind)
    rows = []
    for name, field in kind.model_fields.items():
        if kind is Policy and name in ("roles", "nodes", "watchers"):
            continue
        default = "required" if field.is_required() else _shown(field.default)
        values = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
        choice = f" One of {', '.join(f'`{value}`' for value in values)}." if len(values) > 1 else ""
        rows.append(f"| `{name}` | {default} | {meanings.get(name, '')}{choice} |")
    return "\n".join(["| field | default | meaning |", "|---|---|---|", *rows])


def _shown(default: object) -> str:
    return f"`{default}`" if isinstance(default, str | bool | int) and default != "" else ""


def main(arguments: list[str] | None = None) -> None:
    """Write the page, or check that it is current."""
    write_or_check("tools.policies_page", "Write what a team file may hold.", "docs/policies.md", render, arguments)


if __name__ == "__main__":
    main()
