"""Where a policy leads: entering a node, going on after a turn, the end. Under a policy only this says who speaks or decides."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from ioa.group import floor, gathering, lacks, tasks
from ioa.group.policy.casting import Scene, scene_of
from ioa.group.policy.conditions import removed_by
from ioa.group.policy.turns import choices, next_speaker, opener, seats
from ioa.group.policy.ways_out import is_judged, judged, past, way_out
from ioa.group.state import Ask, Asking, Course, GroupState, Version, Votes
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.policy import END, STAY, Exit, FieldValue, FormField, Policy


def begin(state: GroupState, policy: Policy, at: datetime) -> GroupState:
    """Enter the first node of a group that was just launched."""
    course = Course(
        policy=policy.digest,
        leader=None if policy.leader is None else policy.role_numbers[policy.leader],
        node=0,
        visits=(0,) * len(policy.nodes),
        total=(0,) * len(state.members) if policy.counts_totals else (),
        entered=(0,) * len(policy.nodes) if policy.rewinds else (),
    )
    return _enter(state, policy, course, policy.nodes[0].name, at, {}, None)


def proceed(
    state: GroupState,
    scene: Scene,
    at: datetime,
    changed: Mapping[str, object],
    *,
    go: str | None = None,
    named: int | None = None,
    words: str | None = None,
    gathered: bool = False,
) -> GroupState:
    """Go on after a turn: by a way out that is open, else as the judge says, else to the next speaker.

    Args:
        state: The group before the turn.
        scene: Its node after the turn was counted.
        at: When.
        changed: Further fields of the state that the turn has changed; all are set in one copy, which is expensive.
        go: The way out that the speaker chose.
        named: The next speaker that the speaker named.
        words: What was said; None if the turn was silent.
        gathered: Whether several have spoken side by side.
    """
    way = way_out(scene, go)
    if way is not None:
        return leave(state, scene, way, at, changed, words)
    if scene.node.judge is not None and is_judged(scene, gathered=gathered):
        options = [way.to for way in judged(scene)]
        noted = scene if named is None else scene._replace(course=scene.course.model_copy(update={"nominated": named}))
        asked = options and ask(state, noted, at, changed, "exit", (*options, STAY), STAY)
        if asked:
            return asked
    return go_on(state, scene, at, changed, named=named, words=words)


def go_on(
    state: GroupState,
    scene: Scene,
    at: datetime,
    changed: Mapping[str, object],
    *,
    named: int | None = None,
    words: str | None = None,
) -> GroupState:
    """Give the floor to who is next in a node; if nobody is present, leave it."""
    after = _next_floor(state, scene, at, changed, named)
    return leave(state, scene, past(scene), at, changed, words) if after is None else after


def let_speak(state: GroupState, scene: Scene, chosen: int, at: datetime) -> GroupState:
    """Give the floor to whom a role has chosen; to who is next in order if that member is not present any more."""
    speaker = chosen if chosen in scene.present else next_speaker(scene)
    if speaker is None:
        return leave(state, scene, past(scene), at, {})
    return _grant(state, scene, speaker, at, {})


def let_answer(state: GroupState, scene: Scene, at: datetime, changed: Mapping[str, object]) -> GroupState:
    """Give the floor back to whose draft was reviewed; who is not present any more is passed over, uncounted."""
    draft = scene.course.draft
    assert draft is not None
    if draft.by in scene.present:
        return _grant(state, scene, draft.by, at, changed)
    scene = without_draft(scene)
    return go_on(state, scene, at, changed, named=back_to_hub(scene))


def let_go_on(state: GroupState, scene: Scene, number: int, at: datetime) -> GroupState | None:
    """Give the floor back to who has asked out of the group; None if that member is not present any more, and another one is."""
    return _grant(state, scene, number, at, {}) if number in scene.present or not scene.present else None


def without_draft(scene: Scene) -> Scene:
    """See a node without what was said in it and is not passed."""
    return scene if scene.course.draft is None else scene._replace(course=scene.course.model_copy(update={"draft": None}))


def pass_over(state: GroupState, policy: Policy, at: datetime) -> GroupState:
    """Give the floor of a lost holder to who is next, uncounted; if nobody is present it stays, since the holder may come back."""
    assert state.course is not None
    scene = without_draft(scene_of(policy, state, state.course))
    return _next_floor(state, scene, at, {}, back_to_hub(scene)) or state


def back_to_hub(scene: Scene) -> int | None:
    """Return who has the floor again when whom it has named is not present any more; None where there is no hub."""
    turns = scene.node.turns
    if turns.mode != "hub" or turns.by is None:
        return None
    return next(iter(scene.holders(turns.by)), None)


def ask(
    state: GroupState,
    scene: Scene,
    at: datetime,
    changed: Mapping[str, object],
    about: Ask,
    options: tuple[str, ...],
    default: str,
    tries: int | None = None,
) -> GroupState | None:
    """Have the judge choose, or the role that chooses who speaks, that reviews or that watches; None if nobody is there who could.

    Args:
        state: The group.
        scene: The node.
        at: When.
        changed: Further fields of the state to set in the same copy.
        about: What is asked.
        options: What may be chosen.
        default: What stands if nothing is.
        tries: How many wrong choices may be made; None: as the node says.
    """
    name = _who_is_asked(scene, about)
    role = scene.policy.role_numbers[name]
    asked = next((member for member in scene.members if role in member.roles and member.takes_part), None)
    if asked is None:
        return None
    changed = {**changed, "course": scene.course}
    if state.turns_left <= 1 or floor.cannot_pay(state):
        after = state.model_copy(update=changed)
        if floor.NO_TURN_LEFT.when(after):
            return floor.NO_TURN_LEFT.apply(after, at)
        if floor.cannot_pay(after):
            return floor.BUDGET_SPENT.apply(after, at)
    stage = Asking(
        asked=asked.agent_id,
        about=about,
        options=options,
        default=default,
        tries=scene.node.turns.tries if tries is None else tries,
        until=floor.until(state, asked.agent_id, at, scene.policy.roles[role].timeout),
        since=at,
    )
    return state.model_copy(update={**changed, "stage": stage, "turn": state.turn + 1})


def _who_is_asked(scene: Scene, about: Ask) -> str:
    review, watch = scene.node.review, scene.course.watch
    names: Mapping[Ask, str | None] = {
        "exit": scene.node.judge,
        "speaker": scene.node.turns.by,
        "review": None if review is None else review.by,
        "watch": None if watch is None else scene.policy.watchers[watch.due[0]].role,
    }
    name = names[about]
    assert name is not None, "who is not named is not asked"
    return name


def gather(
    state: GroupState,
    scene: Scene,
    numbers: Iterable[int],
    at: datetime,
    changed: Mapping[str, object],
    *,
    votes: Votes | None = None,
    form: tuple[FormField, ...] = (),
) -> GroupState:
    """Give members of the cast a seat each."""
    agents = {scene.agent(number): _floor_time(scene, number) for number in numbers}
    return gathering.gather(state, agents, at, {**changed, "course": scene.course}, votes=votes, form=form)


def grant_again(state: GroupState, policy: Policy, at: datetime) -> GroupState:
    """Give the floor once more to who has it."""
    assert state.course is not None and state.floor_holder is not None
    holder = state.number_of(state.floor_holder)
    within = _floor_time(scene_of(policy, state, state.course), holder)
    return floor.grant(state, state.floor_holder, at, within)


def counted(
    state: GroupState,
    policy: Policy,
    agent_id: AgentId,
    fields: Mapping[str, FieldValue] | None = None,
    writes: Iterable[str] = (),
) -> Course:
    """Count a turn of a member, spoken or silent, and note the fields that it filled in and the texts that it wrote."""
    course = state.course
    assert course is not None
    number = state.number_of(agent_id)
    changed: dict[str, Any] = {
        "turns": course.turns + 1,
        "taken": _one_more(course.taken, number),
        "last": number,
        "opening": False,
    }
    if course.draft is not None:
        changed["draft"] = None
    if policy.counts_totals:
        changed["total"] = _one_more(course.total, number)
    if fields and (tested := policy.nodes[course.node].tested):
        told = course.told or ((),) * len(tested)
        changed["told"] = tuple([_told(state, one, before, number, fields) for one, before in zip(tested, told, strict=True)])
    for name in writes:
        known = {one.name: one for one in changed.get("board", course.board)}
        version = known[name].version + 1 if name in known else 1
        changed["board"] = tuple({**known, name: Version(name, version, number)}.values())
    return course.model_copy(update=changed)


def leave(
    state: GroupState,
    scene: Scene,
    way: Exit,
    at: datetime,
    changed: Mapping[str, object],
    words: str | None = None,
) -> GroupState:
    """Take an exit: remove the member that it removes, and enter its target."""
    gone = None if way.remove is None else removed_by(way.remove, scene)
    if gone is not None and scene.agent(gone) != state.owner:
        state = removed(state, (gone,))
    return _enter(state, scene.policy, scene.course, way.to, at, changed, words)


def removed(state: GroupState, numbers: Collection[int]) -> GroupState:
    """Take members out of a group, and their tasks from them."""
    gone = [one.agent_id for number, one in enumerate(state.members) if number in numbers]
    members = [one.model_copy(update={"removed": True}) if one.agent_id in gone else one for one in state.members]
    after = state.model_copy(update={"members": tuple(members)})
    return tasks.cancel(after, "its assignee was removed", lambda task: task.assignee in gone) if state.tasks else after


def finish(state: GroupState, scene: Scene, at: datetime) -> GroupState:
    """End the discussion, since somebody has chosen so."""
    return _enter(state, scene.policy, scene.course, END, at, {}, None)


def begin_anew(state: GroupState, scene: Scene, to: str, at: datetime) -> GroupState:
    """Enter a node once more, and strike what was said since it was entered."""
    course, number = scene.course, scene.policy.node_numbers[to]
    first, last = course.entered[number], state.turn - 1
    kept = [one for one in course.struck if one[0] < first]
    if kept and kept[-1][1] >= first - 2:  # between them is the turn of the watcher that struck the former
        first = kept.pop()[0]
    if state.tasks:
        state = tasks.cancel(state, f"{to} is begun anew", lambda task: task.turn >= first)
    return _enter(state, scene.policy, course.model_copy(update={"struck": (*kept, (first, last))}), to, at, {}, None)


def _enter(
    state: GroupState,
    policy: Policy,
    course: Course,
    to: str,
    at: datetime,
    changed: Mapping[str, object],
    words: str | None,
) -> GroupState:
    """Enter a node, or the first one behind it in which somebody is present, or end the discussion."""
    for _ in range(len(policy.nodes) + 1):
        if to == END:
            return _end(state.model_copy(update={**changed, "course": course}), policy, at, words)
        course = _entered(policy, course, to, len(state.members), state.turn + 1)
        scene = scene_of(policy, state, course)
        after = _next_floor(state, scene, at, changed, None)
        if after is not None:
            return after
        to = past(scene).to
    why = "Nobody is present who could speak in any node that is open."
    return floor.end(state.model_copy(update={**changed, "course": course}), Reason.NO_SPEAKER, why, at)


def _entered(policy: Policy, course: Course, to: str, members: int, turn: int) -> Course:
    number = policy.node_numbers[to]
    return course.model_copy(
        update={
            "node": number,
            "visits": _one_more(course.visits, number),
            "turns": 0,
            "taken": (0,) * members,
            "last": None,
            "opening": False,
            "told": (),
            "nominated": None,
            "watch": None,
            **({"entered": (*course.entered[:number], turn, *course.entered[number + 1 :])} if course.entered else {}),
        }
    )


def _next_floor(
    state: GroupState, scene: Scene, at: datetime, changed: Mapping[str, object], named: int | None
) -> GroupState | None:
    """Let those speak who are next by the turns of a node, or ask who is to; None if nobody is present."""
    first = opener(scene)
    if first is not None:
        return _grant(state, scene, first, at, changed)
    mode = scene.node.turns.mode
    if mode == "together":
        return gather(state, scene, seats(scene), at, changed) if scene.present else None
    speaker = next_speaker(scene, named)
    if mode == "ask" and speaker is not None and len(could := choices(scene)) > 1:
        asked = ask(state, scene, at, changed, "speaker", tuple(map(scene.agent, could)), scene.agent(speaker))
        if asked is not None:
            return asked
    return None if speaker is None else _grant(state, scene, speaker, at, changed)


def _grant(state: GroupState, scene: Scene, speaker: int, at: datetime, changed: Mapping[str, object]) -> GroupState:
    opens = scene.node.opens
    opening = opens is not None and bool(opens.say) and speaker == opener(scene)
    course = scene.course if scene.course.opening is opening else scene.course.model_copy(update={"opening": opening})
    return floor.change_and_grant(state, scene.agent(speaker), at, _floor_time(scene, speaker), {**changed, "course": course})


def _floor_time(scene: Scene, speaker: int) -> timedelta | None:
    """How long a speaker has the floor by its roles here: the longest; None if they do not say."""
    if not scene.policy.times_floors:
        return None
    held = scene.members[speaker].roles
    roles = [scene.policy.roles[scene.policy.role_numbers[name]] for name in scene.node.roles]
    times = [role.timeout for role in roles if role.timeout is not None and scene.policy.role_numbers[role.name] in held]
    return max(times, default=None)


def conclude(state: GroupState, at: datetime) -> GroupState:
    """Have the leader state the conclusion; what is still open by then is cancelled."""
    rest = tasks.cancel(state, "the discussion has ended", lambda _: True) if state.tasks else state
    return floor.open_conclusion(rest, floor.concluder(rest), at, forced=None)


def _end(state: GroupState, policy: Policy, at: datetime, words: str | None) -> GroupState:
    """End the discussion: the last message is the result, or the leader states it."""
    if policy.ends == "last" and words is not None:
        return floor.end(state, Reason.CONCLUDED, words, at, (), lacks.of_conclusion(state))
    return conclude(state, at)


def _told(
    state: GroupState, field: FormField, before: tuple[tuple[int, FieldValue], ...], number: int, fields: Mapping[str, FieldValue]
) -> tuple[tuple[int, FieldValue], ...]:
    """Put what a member has filled in now behind all else; what it has filled in before goes."""
    if field.name not in fields:
        return before
    value = fields[field.name]
    if field.kind == "member":
        value = state.number_of(AgentId(str(value)))
    elif field.kind == "option":
        value = field.options.index(str(value))
    return (*(one for one in before if one[0] != number), (number, value))


def _one_more(counts: tuple[int, ...], number: int) -> tuple[int, ...]:
    return (*counts[:number], counts[number] + 1, *counts[number + 1 :])
