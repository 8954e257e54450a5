"""The course of a group through its policy: it enters nodes, grants floors and asks for decisions until the discussion ends.

Under a policy only this module decides who speaks or decides next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from ioa.group import floor, tasks
from ioa.group.policy.casting import Scene, current_scene
from ioa.group.policy.exits import judged, last_exit, left_by, removed_by, way_out
from ioa.group.policy.forms import no_votes
from ioa.group.policy.position import Course, Next, Version
from ioa.group.state import Ask, Asking, GroupState, Votes
from ioa.protocol.goals import Reason
from ioa.protocol.policy import Policy
from ioa.protocol.policy_parts import END, STAY, Exit, FieldValue, Form

NO_CHOICE = Next()
"""The choices of a silent turn, and of a message that names no member and no exit."""


def begin(state: GroupState, policy: Policy, at: datetime) -> GroupState:
    """Enter the first node of a new group."""
    course = Course(
        policy=policy.digest,
        leader=None if policy.leader is None else policy.role_numbers[policy.leader],
        node=0,
        visits=(0,) * len(policy.nodes),
        total=(0,) * len(state.members) if policy.counts_totals else (),
        entered=(0,) * len(policy.nodes) if any(watcher.go for watcher in policy.watchers) else (),
        kept=(0,) * len(policy.nodes) if any(node.again == "continue" for node in policy.nodes) else (),
    )
    return enter(current_scene(policy, state.model_copy(update={"course": course}), at), policy.nodes[0].name)


def proceed(scene: Scene, then: Next = NO_CHOICE, words: str | None = None) -> GroupState:
    """Go on after a counted turn: take an open exit, otherwise ask the judge, otherwise grant the next floors.

    `then` are the choices of the speaker: members that are no longer present are left out. A silent turn has no `words`.
    """
    if (way := way_out(scene, then.go)) is not None:
        return leave(scene, way, words, chosen=then.go is not None)
    named = None
    if then.named:
        able, last = [number for number in then.named if number in scene.present], scene.course.last
        if then.several and able and last is not None:
            votes = no_votes(scene.state.turn + 1, scene.agent(last), then.question)
            return gather(scene, able, votes=votes, form=then.question)
        named = (able or then.named)[0]
    if scene.node.judge is not None and (open_ways := judged(scene, gathered=then.gathered)):
        noted = scene if named is None else scene.with_course(nominated=named)
        if asked := ask(noted, "exit", (*(way.to for way in open_ways), STAY), STAY):
            return asked
    return go_on(scene, named, words)


def go_on(scene: Scene, named: int | None = None, words: str | None = None) -> GroupState:
    """Grant the next floor in a node; if no member is present, leave it."""
    return _next_floor(scene, named) or leave(scene, last_exit(scene), words)


def pass_over(scene: Scene, holder: int) -> GroupState:
    """Grant the floor of a lost holder to the next member, uncounted; if none is present, the holder keeps it."""
    without_draft = scene if scene.course.draft is None else scene.with_course(draft=None)
    return _next_floor(without_draft, holder) or scene.state


def ask(scene: Scene, about: Ask, options: tuple[str, ...], default: str, tries: int | None = None) -> GroupState | None:
    """Ask the role that judges, chooses the speaker, reviews or watches for a decision; None if no holder is present.

    By default the node limits the number of invalid decisions; see `Asking`.
    """
    role = scene.policy.role_numbers[_asked_role(scene, about)]
    asked = next((member for member in scene.state.members if role in member.roles and member.takes_part), None)
    if asked is None:
        return None
    state, at = scene.state, scene.at
    if (concluding := floor.cut_short(state, at, 1)) is not None:
        return concluding
    stage = Asking.of_valid(
        asked=asked.agent_id,
        about=about,
        options=options,
        default=default,
        tries=scene.node.turns.tries if tries is None else tries,
        until=floor.until(state, at, scene.policy.roles[role].timeout or asked.patience),
        since=at,
    )
    return state.model_copy(update={"stage": stage, "turn": state.turn + 1})


def _asked_role(scene: Scene, about: Ask) -> str:
    review, watch = scene.node.review, scene.course.watch
    names: Mapping[Ask, str | None] = {
        "exit": scene.node.judge,
        "speaker": scene.node.turns.by,
        "review": None if review is None else review.by,
        "watch": None if watch is None else scene.policy.watchers[watch.due[0]].role,
    }
    name = names[about]
    assert name is not None, "a role without a name is not asked"
    return name


def gather(scene: Scene, numbers: Iterable[int], *, votes: Votes | None = None, form: Form = ()) -> GroupState:
    """Let several members speak in parallel, or force the conclusion if too few turns or too little budget is left.

    Args:
        scene: The group.
        numbers: The members; each gets a seat.
        votes: The count of the answers, if a member asks a question.
        form: The fields that each answer fills in.
    """
    agents = {scene.agent(number): scene.cast.times[number] for number in numbers}
    return floor.gather(scene.state, agents, scene.at, votes=votes, form=form)


def count_turn(
    state: GroupState,
    policy: Policy,
    number: int,
    fields: Mapping[str, FieldValue] | None = None,
    writes: Collection[str] = (),
    **more: object,
) -> GroupState:
    """Count a turn of a member, spoken or silent, and note the fields and texts that it wrote; `more` changes the state too."""
    course = state.course
    assert course is not None
    changed: dict[str, Any] = {
        "turns": course.turns + 1,
        "taken": _one_more(course.taken, number),
        "last": number,
        "opening": False,
        "draft": None,
    }
    if policy.counts_totals:
        changed["total"] = _one_more(course.total, number)
    if fields and (tested := policy.nodes[course.node].tested):
        told = course.told or ((),) * len(tested)
        changed["told"] = tuple(
            [_replace_value(before, number, fields.get(one.name)) for one, before in zip(tested, told, strict=True)]
        )
    if writes:
        board = {one.name: one for one in course.board}
        for name in writes:
            board[name] = Version(name, board[name].version + 1 if name in board else 1, number)
        changed["board"] = tuple(board.values())
    return state.model_copy(update={"course": course.model_copy(update=changed), **more})


def leave(scene: Scene, way: Exit, words: str | None = None, *, chosen: bool = False) -> GroupState:
    """Take an exit: remove the member that it removes, and enter the next node."""
    scene, to = left_by(scene, way, chosen=chosen)
    gone = None if way.remove is None else removed_by(way.remove, scene)
    if gone is not None and scene.agent(gone) != scene.state.owner:
        scene = scene._replace(state=removed(scene.state, (gone,)))
    return enter(scene, to, words)


def removed(state: GroupState, numbers: Collection[int]) -> GroupState:
    """Remove members from a group, and cancel their tasks."""
    gone = [state.members[number].agent_id for number in numbers]
    after = floor.change_members(state, gone, removed=True)
    return floor.cancel_tasks(after, "its assignee was removed", lambda task: task.assignee in gone)


def enter(scene: Scene, to: str | None, words: str | None = None) -> GroupState:
    """Enter a node, or the first one after it in which a member is present, or end the discussion."""
    policy, at = scene.policy, scene.at
    for _ in range(len(policy.nodes) + 1):
        if to is None:
            why = "All nodes that remain wait for nodes to which no exit leads any more."
            return floor.end(scene.state, Reason.NO_SPEAKER, why, at)
        if to == END:
            if policy.ends == "last" and words is not None:
                return floor.end(scene.state, Reason.CONCLUDED, words, at, (), tasks.lacks_of_conclusion(scene.state))
            return end_discussion(scene.state, at)
        scene = current_scene(policy, _entered(policy, scene.state, scene.course, policy.node_numbers[to]), at)
        if after := _next_floor(scene, None):
            return after
        scene, to = left_by(scene, last_exit(scene))
    return floor.end(scene.state, Reason.NO_SPEAKER, "Nobody is present who could speak in any node that is open.", at)


def _entered(policy: Policy, state: GroupState, course: Course, number: int) -> GroupState:
    changed: dict[str, Any] = {
        "node": number,
        "visits": _one_more(course.visits, number),
        "turns": 0,
        "taken": (0,) * len(state.members),
        "last": None,
        "opening": False,
        "told": (),
        "nominated": None,
        "watch": None,
    }
    if course.kept:
        changed["kept"] = kept = (*course.kept[: course.node], course.turns, *course.kept[course.node + 1 :])
        changed["turns"] = kept[number] if policy.nodes[number].again == "continue" else 0
    if course.agenda or course.done:
        changed["agenda"] = tuple([one for one in course.agenda if one != number])
        changed["done"] = tuple([one for one in course.done if one != number])
    if course.entered:
        changed["entered"] = (*course.entered[:number], state.turn + 1, *course.entered[number + 1 :])
    return state.model_copy(update={"course": course.model_copy(update=changed)})


def _next_floor(scene: Scene, named: int | None) -> GroupState | None:
    """Grant floors by the turns of a node, or ask for the next speaker; None if no member is present."""
    node, present = scene.node, scene.present
    if node.opens is not None and (first := scene.opener) is not None:
        return grant(scene, first)
    if node.turns.mode == "together":
        seats = present if node.max is None else present[: max(1, node.max - scene.course.turns)]
        return gather(scene, seats) if present else None
    speaker = scene.next_speaker(named)
    if node.turns.mode == "ask" and speaker is not None and named not in present and len(able := scene.candidates) > 1:
        if asked := ask(scene, "speaker", tuple(map(scene.agent, able)), scene.agent(speaker)):
            return asked
    return None if speaker is None else grant(scene, speaker)


def grant(scene: Scene, speaker: int) -> GroupState:
    """Grant the floor to a member of the cast."""
    opens = scene.node.opens
    opening = opens is not None and opens.say != "" and speaker == scene.opener
    state, course = scene.state, scene.course
    if course.opening is not opening:
        state = state.model_copy(update={"course": course.model_copy(update={"opening": opening})})
    return floor.grant(state, scene.agent(speaker), scene.at, scene.cast.times[speaker], speakers=1)


def end_discussion(state: GroupState, at: datetime) -> GroupState:
    """Ask the leader for the conclusion, and cancel open tasks."""
    rest = floor.cancel_tasks(state, "the discussion has ended")
    return floor.open_conclusion(rest, floor.concluder(rest), at)


def _replace_value(
    before: tuple[tuple[int, FieldValue], ...], number: int, value: FieldValue | None
) -> tuple[tuple[int, FieldValue], ...]:
    """Append a member's value of a field, and remove its older one."""
    return before if value is None else (*(one for one in before if one[0] != number), (number, value))


def _one_more(counts: tuple[int, ...], number: int) -> tuple[int, ...]:
    return (*counts[:number], counts[number] + 1, *counts[number + 1 :])
