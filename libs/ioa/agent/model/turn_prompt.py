"""Prompts of a member's turn: a head that is constant for the group's life, the log, and a short tail that changes.

Nothing above the tail depends on the time, the turn or absent members, so that the prompts of an agent in a group begin alike.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

from ioa.agent.model.answer_to_message import open_words, talks
from ioa.agent.model.metered_calls import estimate_tokens
from ioa.agent.model.prompt_templates import below, cut, excerpt, fill, line_of
from ioa.agent.model.prompt_transcript import file_line, joined, transcript
from ioa.agent.turn_view import TurnView
from ioa.agent.view_text import board_lines
from ioa.foreign_text import defused, fenced, in_one_line
from ioa.group.budget import cost_left, tokens_left
from ioa.group.policy.hearing import hides
from ioa.group.state import Ask, Concluding, Gathering, WaitingTask
from ioa.ports.chat_model import ChatMessage
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Artifact, Reason
from ioa.protocol.usage import MICROS

_MAX_EXAMPLES = 3
_MAX_EXAMPLE_BYTES = 300
_MAX_MEMORY_BYTES = 16_000
_MAX_BOARD_BYTES = 48_000
_MAX_SKILLS = 12
_LEAST_LINE_BYTES, _MOST_LINE_BYTES = 120, 3_000
_LEAST_BYTES_WITH_EXAMPLES = 300
"""In the prompt of a large team, the descriptions matter more than examples."""
_MAX_TASK_BYTES = 240
_MAX_OPEN_TASKS_BYTES = 24_000
_MAX_REFUSAL_BYTES = 900
_FEW_TURNS, _FEW_TOKENS = 2, 10
_FORCED = {
    Reason.MAX_TURNS: "The turns are used up, so the discussion was ended",
    Reason.BUDGET: "The budget is spent, so the discussion was ended",
}


def goal(text: str, most_tokens: int) -> str:
    """Quote a goal, whole if it fits."""
    return fenced("goal", excerpt(text, most_tokens * 3, "goal"))


def inputs(artifacts: Sequence[Artifact]) -> str:
    """List the files of a goal by the names that READ uses."""
    return fenced("inputs", "\n".join(file_line(f"input/{in_one_line(file.name)}", file) for file in artifacts))


def bytes_per_agent(room: int, agents: int) -> int:
    """Return the maximum bytes of each agent's description in a prompt of `room` tokens."""
    return min(_MOST_LINE_BYTES, max(_LEAST_LINE_BYTES, room // max(1, agents)))


def agent_line(card: AgentCard, most_bytes: int = _MOST_LINE_BYTES, *roles: str) -> str:
    """Describe an agent in a line: its id, whether it is a program or a model, and up to three of its examples.

    Args:
        card: The agent's card.
        most_bytes: Maximum bytes of the description; examples are added.
        roles: Its roles in the group, and its kind if it is a person.
    """
    roles = roles if "person" in roles else ("model" if card.uses_model else "program", *roles)
    skills = ", ".join(skill.name for skill in card.skills[:_MAX_SKILLS])
    about = line_of(f"{card.description}{f' Skills: {skills}.' if skills else ''}", most_bytes)
    line = f"{card.agent_id} ({', '.join(roles)}): {about}"
    examples = card.examples[:_MAX_EXAMPLES]
    if not examples or most_bytes < _LEAST_BYTES_WITH_EXAMPLES:
        return line
    quoted = [f"“{line_of(example, _MAX_EXAMPLE_BYTES)}”" for example in examples]
    return f"{line}\n  e.g. {' · '.join(quoted)}"


def chat(view: TurnView, tail: str) -> Callable[[int], list[ChatMessage]]:
    """Return a function that writes head, log and tail in at most about `room` tokens.

    The room of the tail is rounded up, so that it does not change the log.
    """

    def messages(room: int) -> list[ChatMessage]:
        head, step = _head(view, room), max(50, min(1_000, room // 8))
        log = transcript(view, room - estimate_tokens(head) - -(-estimate_tokens(tail) // step) * step)
        return joined([ChatMessage("user", head), *log, ChatMessage("user", tail)])

    return messages


def rules(view: TurnView) -> str:
    """Return the system message of a speaker: constant, and with the rules of discussions only where members discuss."""
    talk = [fill(name) for name, is_needed in (("talk", talks(view)), ("policy", view.part is not None)) if is_needed]
    return fill("system", talk="\n\n".join(talk))


def turn_tail(view: TurnView) -> str:
    """Ask for a message, or for a decision that a policy requests."""
    above, offered = below(_standing(view), _instructions(view)), view.offer
    refusals = fenced("refusals", "\n".join(line_of(refusal, _MAX_REFUSAL_BYTES) for refusal in view.refusals))
    if offered is None or not offered.options:
        notes = _part(view, _offered(view)), _votes(view), f"Possible now: {', '.join(open_words(view))}."
        return below(above, _open_tasks(view), _away(view), refusals, *notes, _ask(view))
    question = fill(
        "decide",
        me=view.me,
        question=_QUESTIONS[offered.about or "exit"] + (f"; {_ADDING}: {', '.join(offered.invites)}" if offered.invites else ""),
        options=", ".join(f"`{one}`" for one in offered.options),
        default=offered.default,
    )
    return below(above, refusals, _part(view), question)


def written_time(at: datetime) -> str:
    """Return a time with its day of the week."""
    return f"{at:%A, %Y-%m-%d %H:%M} UTC."


_CHOICES = ("next_speakers", "may_ask", "go", "writes", "invites", "asks", "tasks", "reviewed")
_ADDING = "`add` has somebody join for a `need`, in a sentence, as `role`"

_QUESTIONS: Mapping[Ask, str] = {
    "speaker": "who speaks next",
    "exit": "where the discussion goes on",
    "watch": "whether to step in: `remove` takes `members` out, `hint` tells `members` your `content`, a node is begun anew",
    "review": "whether others may hear the last message, a draft; say to its author why, if you reject it",
}


def _head(view: TurnView, room: int) -> str:
    charter = view.charter
    share = bytes_per_agent(room, len(charter.team_members))
    people = {member.agent_id for member in view.state.members if member.human}
    lines = []
    for card in charter.team_members:
        known = {"person": card.agent_id in people, "you": card.agent_id == view.me, "leads": card.agent_id == charter.owner}
        lines.append(agent_line(card, share, *(role for role, holds in known.items() if holds)))
    leader, whose = ("You lead", "your") if view.me == charter.owner else (f"{charter.owner} leads", "its")
    leads = f"{leader} the group, having taken the goal and formed the team."
    if charter.parent is not None:
        leads = f"{leader} the group. It is a nested team: the goal is {whose} task {charter.parent.task_id} of another group."
    brief = fenced("brief", excerpt(charter.brief, room // 4 * 3))
    team = fenced("team", "\n".join(lines))
    return below(f"You are {view.me}. {leads}", goal(charter.goal, room // 3), brief, inputs(charter.inputs), team)


def _instructions(view: TurnView) -> str:
    """Return the author's private instructions; they can change in each turn, so they come after the log."""
    written = fenced("instructions", defused(view.instructions))
    return below("Private instructions of your author:", written) if written else ""


def _standing(view: TurnView) -> str:
    """Return the state of the group, the passages that the agent remembers, and the board."""
    remembered = fenced("memory", excerpt(view.memory, _MAX_MEMORY_BYTES))
    board = fenced("board", excerpt("\n".join(board_lines(view)), _MAX_BOARD_BYTES))
    return below(" ".join(_limits(view)), remembered, board)


def _limits(view: TurnView) -> Iterator[str]:
    """Return the time, the rest of the goal's limits, and a warning shortly before one is reached."""
    state = view.state
    if view.at is not None:
        yield f"It is {written_time(view.at)}"
    yield f"{state.turns_left} of {state.limits.max_turns} turns are left."
    tokens, limit = tokens_left(state), state.limits.max_tokens
    if tokens is not None:
        yield f"Tokens: {tokens:,} of {limit:,} left."
    cost = cost_left(state)
    if cost is not None and state.limits.max_cost_micros is not None:
        yield f"Cost: {cost / MICROS:g} of {state.limits.max_cost_micros / MICROS:g} left."
    if view.at is not None:
        minutes = (state.limits.deadline - view.at).total_seconds() / 60
        yield f"Time: {minutes:.0f} minutes left." if minutes >= 1 else "Time: less than a minute left."
    if isinstance(state.stage, Concluding):
        forced = _FORCED.get(state.stage.forced) if state.stage.forced else None
        yield f"{forced}: conclude with what there is." if forced else "The discussion has ended: state the conclusion."
    elif state.turns_left <= _FEW_TURNS or (tokens is not None and limit is not None and tokens < limit // _FEW_TOKENS):
        yield "Little is left: finish with parts that surely fit, or conclude with the results. The conclusion takes no turn."


def _open_tasks(view: TurnView) -> str:
    lines = []
    for task in view.tasks:
        if task.outcome is None:
            status = view.state.task(task.spec.task_id)
            waits = f", waits for {' '.join(status.after)}" if isinstance(status, WaitingTask) else ""
            lines.append(f"{task.spec.task_id} ({task.spec.assignee}{waits}): {line_of(task.spec.task_desc, _MAX_TASK_BYTES)}")
    return fenced("open_tasks", cut("\n".join(lines), _MAX_OPEN_TASKS_BYTES))


def _away(view: TurnView) -> str:
    away = [card.agent_id for card in view.charter.team_members if card.agent_id not in view.reachable]
    return f"Out of reach now: {', '.join(away)}." if away else ""


def _part(view: TurnView, offered: str = "") -> str:
    """Describe the agent's role under a policy, and the choices that it offers."""
    part = view.part
    if part is None:
        return ""
    return fill(
        "part",
        roles=", ".join(part.roles) or "nothing, and listen",
        place=f"The discussion is at: {part.node}." if part.node else "",
        prompts=fenced("part", "\n".join(map(defused, part.prompts))),
        offered=offered,
    )


def _offered(view: TurnView) -> str:
    """List what a policy or a question offers in this turn, by the names that the rules explain."""
    offered = view.offer
    if offered is None:
        return ""
    choices = {
        **{name: value for name, value in offered._asdict().items() if name in _CHOICES and value},
        "most_named": offered.most_named if offered.most_named > 1 else None,
        "fields": {blank.name: f"{blank.description}{'' if blank.required else ' (optional)'}" for blank in offered.form},
        "content": [guard.model_dump(exclude_defaults=True) for guard in offered.guards],
        "heard_by": offered.addressees if hides(view.charter.policy) else None,
    }
    given = {name: json.dumps(value, ensure_ascii=False) for name, value in choices.items() if value not in (None, {}, [])}
    lines = [f"{name}: {in_one_line(value)}" for name, value in given.items()]
    return fenced("offer", "\n".join(lines))


def _ask(view: TurnView) -> str:
    """Return the question: the next move, or an answer in parallel with other members."""
    if not isinstance(view.state.stage, Gathering):
        return f"You are {view.me}. Choose your next move."
    return fill("seat", me=view.me, fields=_offered(view) if view.part is None else "")


def _votes(view: TurnView) -> str:
    """Return the counts of the votes as a part of the prompt; empty unless this member asked for them in the turn before."""
    votes = view.state.tally
    if votes is None or votes.by != view.me or votes.turn != view.state.turn - 1 or not (votes.fields or votes.silent):
        return ""
    lines = [f"{votes.answered} answered", *([f"silent: {', '.join(votes.silent)}"] if votes.silent else [])]
    for one in votes.fields:
        counts = ", ".join(f"{in_one_line(name)} {count}" for name, count in one.counts)
        numbers = f", from {one.lowest} to {one.highest}, {one.total} in all" if one.lowest is not None else ""
        lines.append(f"{one.name}: {counts or f'{one.count} filled in{numbers}'}")
    return fenced("votes", "\n".join(lines))
