"""What a model is told of a situation: a head that stays as it is for a group's life, the log, and a small tail that changes.

Nothing above the tail depends on the time, the turn or who is away, so that two prompts of one agent in one group begin alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from ioa.agent.conversation import board_lines
from ioa.agent.model.answer_to_message import open_words, talks
from ioa.agent.model.budget import Budget
from ioa.agent.model.prompts import Prompts, cut, excerpt, line_of
from ioa.agent.model.transcript import file_line
from ioa.agent.turn_view import TurnView
from ioa.fences import defused, fenced, in_one_line
from ioa.group.budget import cost_left, tokens_left
from ioa.group.forms import in_words
from ioa.group.policy.hearing import hides
from ioa.group.policy.offer import Offer
from ioa.group.state import Ask, Concluding, Gathering, Task, WaitingTask
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Artifact, Reason
from ioa.protocol.usage import MICROS

_MAX_EXAMPLES = 3
_MAX_EXAMPLE_BYTES = 300
_MAX_MEMORY_BYTES = 16_000
_MAX_BOARD_BYTES = 48_000
_MAX_SKILLS = 12
_LEAST_LINE_BYTES = 120
_LEAST_BYTES_WITH_EXAMPLES = 300
"""Where a team is large and the room small, what an agent does matters more than examples of it."""
_MAX_TASK_BYTES = 240
_MAX_OPEN_TASKS_BYTES = 24_000
_MAX_REFUSAL_BYTES = 900
_MAX_INSTRUCTIONS_BYTES = 48_000
_FEW_TURNS = 2
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FORCED = {
    Reason.MAX_TURNS: "The turns are used up, so the discussion was ended",
    Reason.BUDGET: "The budget is spent, so the discussion was ended",
}


def goal(text: str, most_tokens: int) -> str:
    """Quote the goal, whole if it fits."""
    return fenced("goal", excerpt(text, most_tokens * 3, "goal"))


def inputs(artifacts: Sequence[Artifact]) -> str:
    """Name the files that came with the goal, as READ calls them."""
    return fenced("inputs", "\n".join(file_line(f"input/{in_one_line(file.name)}", file) for file in artifacts))


def agent_line(card: AgentCard, most_bytes: int, matched: str = "", *roles: str) -> str:
    """Describe an agent in a line: its id, whether it is a program or a model, and up to three of its examples.

    Args:
        card: The agent's card.
        most_bytes: Maximum bytes of the description; examples are added.
        matched: The example that discovery matched, which comes first.
        roles: Its roles in the group, and its kind if it is a person.
    """
    roles = roles if "person" in roles else ("model" if card.uses_model else "program", *roles)
    skills = ", ".join(skill.name for skill in card.skills[:_MAX_SKILLS])
    about = f"{card.description}{f' Skills: {skills}.' if skills else ''}"
    first = [matched] if matched in card.examples else []
    examples = [*first, *(example for example in card.examples if example != matched)][:_MAX_EXAMPLES]
    if most_bytes < _LEAST_BYTES_WITH_EXAMPLES:
        examples = []
    line = f"{card.agent_id} ({', '.join(roles)}): {line_of(about, most_bytes)}"
    told = [f"“{line_of(example, min(most_bytes, _MAX_EXAMPLE_BYTES))}”" for example in examples]
    return f"{line}\n  e.g. {' · '.join(told)}" if told else line


def head(prompts: Prompts, view: TurnView, room: int) -> str:
    """Return what holds for the whole life of a group. `room` are the tokens that a prompt may have."""
    charter = view.charter
    share = max(_LEAST_LINE_BYTES, room // len(charter.team_members))
    lines = [_member(card, view, share) for card in charter.team_members]
    return prompts.fill(
        "head",
        me=view.me,
        leads=_leads(view),
        goal="\n".join(filter(None, (goal(charter.goal, room // 3), fenced("brief", excerpt(charter.brief, room // 4 * 3))))),
        inputs=inputs(charter.inputs),
        team=fenced("team", "\n".join(lines)),
    )


def rules(prompts: Prompts, view: TurnView) -> str:
    """Return the system message of a speaker: constant, and with the rules of discussions only where members discuss."""
    return prompts.fill("system", talk=prompts.fill("talk") if talks(view) else "")


def _instructions(prompts: Prompts, view: TurnView) -> str:
    """Return the author's private instructions; they may change in each turn, so they come after the log."""
    written = fenced("instructions", excerpt(view.instructions, _MAX_INSTRUCTIONS_BYTES))
    return prompts.fill("instructions", instructions=written) if written else ""


def _below(*parts: str) -> str:
    return "\n".join(filter(None, parts))


def _leads(view: TurnView) -> str:
    leader = "You lead the group" if view.me == view.charter.owner else f"{view.charter.owner} leads the group"
    if view.charter.parent is not None:
        whose = "your" if view.me == view.charter.owner else "its"
        return f"{leader}. It is a nested team: the goal is {whose} task {view.charter.parent.task_id} of another group."
    return f"{leader}, having taken the goal and formed the team."


def _member(card: AgentCard, view: TurnView, share: int) -> str:
    people = {member.agent_id for member in view.state.members if member.human}
    told = (("person", card.agent_id in people), ("you", card.agent_id == view.me), ("leads", card.agent_id == view.charter.owner))
    return agent_line(card, share, "", *(role for role, holds in told if holds))


def tail(prompts: Prompts, view: TurnView, budget: Budget, prompt_tokens: int) -> str:
    """Return the part that changes with each call. `prompt_tokens` are those of the parts above it."""
    return prompts.fill(
        "speak",
        standing=standing_and_memory(view, budget, prompt_tokens),
        instructions=_instructions(prompts, view),
        open_tasks=_open_tasks(view),
        away=_away(view),
        refusals=_refusals(view),
        notes=_below(_part(prompts, view), _votes(view)),
        possible=", ".join([*open_words(view), "READ"]),
        ask=_ask(prompts, view),
    )


def standing_and_memory(view: TurnView, budget: Budget, prompt_tokens: int) -> str:
    """Return the state of the group, its board, and the passages that the agent remembers."""
    remembered = fenced("memory", excerpt(view.memory, _MAX_MEMORY_BYTES))
    board = fenced("board", excerpt("\n".join(board_lines(view)), _MAX_BOARD_BYTES))
    return _below(standing(view, budget, prompt_tokens), remembered, board)


def standing(view: TurnView, budget: Budget, prompt_tokens: int) -> str:
    """Where the group stands: the time, the turn, what is left, and warnings."""
    now = budget.now or view.at
    time = [f"It is {written_time(now)}"] if now is not None else []
    return " ".join([*time, *_left_over(view), *_warning(view, prompt_tokens)])


def _left_over(view: TurnView) -> Iterator[str]:
    """Return what is left of the goal's limits; what nested teams were lent is not."""
    state = view.state
    yield f"{state.turns_left} of {state.limits.max_turns} turns are left."
    if state.loans:
        yield f"Nested groups hold {sum(loan.turns for loan in state.loans)} turns."
    tokens, limit = tokens_left(state), state.limits.max_tokens
    if tokens is not None:
        yield f"Tokens: {tokens:,} of {limit:,} left."
    cost = cost_left(state)
    if cost is not None and state.limits.max_cost_micros is not None:
        yield f"Cost: {cost / MICROS:g} of {state.limits.max_cost_micros / MICROS:g} left."
    if view.at is not None:
        minutes = (state.limits.deadline - view.at).total_seconds() / 60
        yield f"Time: {minutes:.0f} minutes left." if minutes >= 1 else "Time: less than a minute left."


def _warning(view: TurnView, prompt_tokens: int) -> Iterator[str]:
    """Say that the end is near: by a limit that was reached, two turns before it, or with tokens for less than two prompts more."""
    stage, tokens = view.state.stage, tokens_left(view.state)
    if isinstance(stage, Concluding):
        forced = _FORCED.get(stage.forced) if stage.forced else None
        yield f"{forced}: conclude with what there is." if forced else "The discussion has ended: state the conclusion."
    elif view.state.turns_left <= _FEW_TURNS or (tokens is not None and tokens < 2 * prompt_tokens):
        yield "Little is left: finish with what is sure to fit, or conclude with what there is. The conclusion takes no turn."


def written_time(at: datetime) -> str:
    """Return a time with its day of the week."""
    return f"{_DAYS[at.weekday()]}, {at:%Y-%m-%d %H:%M} UTC."


def _open_tasks(view: TurnView) -> str:
    tasks = [task for task in view.tasks if task.outcome is None]
    lines, left = list[str](), _MAX_OPEN_TASKS_BYTES
    for task in tasks:
        waits = _waits(view.state.task(task.spec.task_id))
        line = f"{task.spec.task_id} ({task.spec.assignee}{waits}): {line_of(task.spec.task_desc, _MAX_TASK_BYTES)}"
        left -= len(line.encode("utf-8", "replace"))
        if left < 0:
            break
        lines.append(line)
    more = [f"[… and {len(tasks) - len(lines):,} more …]"] if len(tasks) > len(lines) else []
    return fenced("open_tasks", "\n".join([*lines, *more]))


def _waits(task: Task | None) -> str:
    return f", waits for {' '.join(task.after)}" if isinstance(task, WaitingTask) else ""


def _away(view: TurnView) -> str:
    living = view.state.living()
    members = [card.agent_id for card in view.charter.team_members]
    away = [agent for agent in members if agent not in living and agent in view.reachable]
    gone = [agent for agent in members if agent not in living and agent not in view.reachable]
    told = [f"Away for a moment, may be given tasks: {', '.join(away)}."] if away else []
    return " ".join([*told, *([f"Out of reach: {', '.join(gone)}."] if gone else [])])


def _refusals(view: TurnView) -> str:
    """Repeat what the router said of this turn's earlier attempts."""
    return fenced("refusals", "\n".join(line_of(refusal, _MAX_REFUSAL_BYTES) for refusal in view.refusals[-3:]))


def _part(prompts: Prompts, view: TurnView) -> str:
    """Tell what a policy has the agent play, and what it may choose."""
    part, offered = view.part, view.offer
    if part is None:
        return ""
    choices = []
    if offered is not None:
        choices.append("DISCUSSION is what you contribute in this turn: put all of it into `content`.")
        choices.append(_heard_by(view, offered))
        choices += [f"`next_speaker` is one of {', '.join(offered.next_speakers)}, or empty." if offered.next_speakers else ""]
        choices += [f"`go` leads the group on to one of {', '.join(offered.go)}; empty: it stays." if offered.go else ""]
        if offered.most_named > 1:
            asked = ", with a `question`" if offered.may_ask else ""
            choices.append(f"`next_speakers` names up to {offered.most_named} of them at once instead{asked}.")
        choices += [f"`writes` puts {', '.join(offered.writes)} on the board." if offered.writes else ""]
        choices += ["ASK asks the user of the goal, and gives you the floor again with the answer." if offered.asks else ""]
        if offered.tasks:
            choices.append("ASSIGN gives out tasks, and PAUSE waits for open ones; then you have the floor again.")
        if offered.invites:
            choices.append(f"INVITE has somebody join for a `need`, as `role`: {', '.join(offered.invites)}; then you speak.")
        choices += ["It is a draft: others hear it once it is passed." if offered.reviewed else ""]
        form = fenced("answer", "\n".join(filter(None, (_fields(offered), _guarded(offered)))))
        choices += [f"What you say has to be so:\n{form}"] if form else []
    return _part_section(prompts, view, " ".join(filter(None, choices)))


def _part_section(prompts: Prompts, view: TurnView, choices: str) -> str:
    part = view.part
    assert part is not None
    return prompts.fill(
        "part",
        tasks="where tasks are given out" if _gives_tasks(view) else "nobody gives out tasks",
        roles=", ".join(part.roles) or "nothing, and listen",
        place=f"The discussion is at: {part.node}." if part.node else "",
        told=fenced("part", "\n".join(map(defused, part.prompts))),
        choices=choices,
    )


def _heard_by(view: TurnView, offered: Offer) -> str:
    """Tell who hears what is said now, as far as the speaker knows; what does not fit into one line of names is cut."""
    others = {one.agent_id for one in view.state.members if not one.removed and one.agent_id != view.me}
    if not hides(view.charter.policy) or others <= {*offered.addressees}:
        return "All members hear it."
    heard = ", ".join(offered.addressees)
    return (
        f"It is heard by {cut(heard, _MAX_TASK_BYTES)}, and by nobody else you know of."
        if heard
        else "Nobody you know of hears it."
    )


def _choice_audience(view: TurnView, offered: Offer) -> str:
    """Tell who is told what is chosen and why, which is fewer than hear what is said."""
    if not hides(view.charter.policy):
        return "All members are told what you choose, and why."
    also = {"review": "its author and who reviews, besides who hears all", "watch": "who hears all, and of a hint whom it names"}
    return f"What you choose, and why, is told to {also.get(offered.about or 'exit', 'nobody but who hears all')}."


def _gives_tasks(view: TurnView) -> bool:
    return view.charter.policy is not None and any(node.tasks for node in view.charter.policy.nodes)


def _fields(offered: Offer) -> str:
    """Tell what is to be filled in."""
    told = [f"`{one.name}`: {in_one_line(in_words(one))}{'' if one.required else ' (it may lack)'}" for one in offered.form]
    return f"`fields` holds {'; '.join(told)}." if told else ""


def _guarded(offered: Offer) -> str:
    """Tell what the words have to be like."""
    told = [f"has at most {guard.most:,} characters" for guard in offered.guards if guard.most is not None]
    told += [f"does without {', '.join(map(in_one_line, guard.words))}" for guard in offered.guards if guard.words]
    return f"`content` {' and '.join(told)}." if told else ""


def _ask(prompts: Prompts, view: TurnView) -> str:
    """Return the question: the next move, or the answer of one of several members that answer in parallel."""
    if not isinstance(view.state.stage, Gathering):
        return f"You are {view.me}. Choose your next move."
    asked = view.offer if view.part is None else None
    return prompts.fill("seat", me=view.me, fields=fenced("answer", _fields(asked)) if asked is not None else "")


def _votes(view: TurnView) -> str:
    """Return the count of the answers to the member that has asked several at once for the fields of a question."""
    votes = view.state.tally
    if votes is None or votes.by != view.me or votes.turn != view.state.turn - 1 or not (votes.fields or votes.silent):
        return ""
    told = [f"{votes.answered} answered", *([f"silent: {', '.join(votes.silent)}"] if votes.silent else [])]
    for one in votes.fields:
        counts = ", ".join(f"{in_one_line(name)} {count}" for name, count in one.counts)
        numbers = f", from {one.lowest} to {one.highest}, {one.total} in all" if one.lowest is not None else ""
        told.append(f"{one.name}: {counts or f'{one.count} filled in{numbers}'}")
    return fenced("votes", "\n".join(told))


def ruling(prompts: Prompts, view: TurnView, budget: Budget, prompt_tokens: int) -> str:
    """Return what is asked of whoever a policy has decide; see `tail`."""
    offered = view.offer
    assert offered is not None
    return prompts.fill(
        "decide",
        me=view.me,
        standing=standing_and_memory(view, budget, prompt_tokens),
        instructions=_instructions(prompts, view),
        refusals=_refusals(view),
        part=_part_section(prompts, view, _choice_audience(view, offered)),
        question=_QUESTIONS[offered.about or "exit"] + (f"; {_ADDING}: {', '.join(offered.invites)}" if offered.invites else ""),
        options=", ".join(f"`{one}`" for one in offered.options),
        default=offered.default,
    )


_ADDING = "`add` has somebody join for a `need`, in a sentence, as `role`"

_QUESTIONS: Mapping[Ask, str] = {
    "speaker": "who speaks next",
    "exit": "where the discussion goes on",
    "watch": "whether to step in: `remove` takes `members` out, `hint` tells `members` your `content`, a node is begun anew",
    "review": "whether others may hear the last message, a draft; say to its author why, if you reject it",
}
