"""Where a policy leads: entering a node, going on after a turn, and the end. Under a policy only this grants a floor to discuss."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from ioa.group import floor, lacks
from ioa.group.policy.casting import Scene, scene_of
from ioa.group.policy.turns import first_speaker, next_speaker
from ioa.group.policy.ways_out import past, way_out
from ioa.group.state import Course, GroupState
from ioa.protocol.goals import Reason
from ioa.protocol.policy import END, Policy


def begin(state: GroupState, policy: Policy, at: datetime) -> GroupState:
    """Enter the first node of a group that was just launched."""
    course = Course(
        policy=policy.digest,
        leader=None if policy.leader is None else policy.role_numbers[policy.leader],
        node=0,
        visits=(0,) * len(policy.nodes),
        total=(0,) * len(state.members) if policy.counts_totals else (),
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
) -> GroupState:
    """Go on after a turn: by a way out that is open, else to the next speaker.

    Args:
        state: The group before the turn.
        scene: Its node after the turn was counted.
        at: When.
        changed: What else in the state is another by the turn, since copies take time.
        go: The way out that the speaker chose.
        named: The next speaker that the speaker named.
        words: What was said; None if the turn was silent.
    """
    to = way_out(scene, go)
    if to is None:
        speaker = next_speaker(scene, named)
        if speaker is not None:
            return _grant(state, scene, speaker, at, changed)
        to = past(scene)
    return _enter(state, scene.policy, scene.course, to, at, changed, words)


def pass_over(state: GroupState, policy: Policy, at: datetime) -> GroupState:
    """Give the floor of a lost holder to who is next, uncounted; if nobody is present it stays, since the holder may come back."""
    assert state.course is not None
    scene = scene_of(policy, state, state.course)
    speaker = next_speaker(scene)
    return state if speaker is None else _grant(state, scene, speaker, at, {})


def grant_again(state: GroupState, policy: Policy, at: datetime) -> GroupState:
    """Give the floor once more to who has it."""
    assert state.course is not None and state.floor_holder is not None
    holder = state.number_of(state.floor_holder)
    within = _floor_time(scene_of(policy, state, state.course), holder)
    return floor.grant(state, state.floor_holder, at, within)


def counted(state: GroupState, policy: Policy) -> Course:
    """Count a turn of the floor holder, spoken or silent."""
    course, holder = state.course, state.floor_holder
    assert course is not None and holder is not None
    number = state.number_of(holder)
    changed: dict[str, object] = {
        "turns": course.turns + 1,
        "taken": _one_more(course.taken, number),
        "last": number,
        "opening": False,
    }
    if policy.counts_totals:
        changed["total"] = _one_more(course.total, number)
    return course.model_copy(update=changed)


def _enter(
    state: GroupState, policy: Policy, course: Course, to: str, at: datetime, changed: Mapping[str, object], words: str | None
) -> GroupState:
    """Enter a node, or the first one behind it in which somebody is present, or end the discussion."""
    for _ in range(len(policy.nodes) + 1):
        if to == END:
            return _end(state.model_copy(update={**changed, "course": course}), policy, at, words)
        course = _entered(policy, course, to, len(state.members))
        scene = scene_of(policy, state, course)
        speaker = first_speaker(scene)
        if speaker is not None:
            return _grant(state, scene, speaker, at, changed)
        to = past(scene)
    why = "Nobody is present who could speak in any node that is open."
    return floor.end(state.model_copy(update={**changed, "course": course}), Reason.NO_SPEAKER, why, at)


def _entered(policy: Policy, course: Course, to: str, members: int) -> Course:
    number = policy.node_numbers[to]
    before = course.visits[number]
    goes_on = policy.nodes[number].again == "continue" and before > 0
    kept = dict(course.kept)
    if policy.nodes[course.node].again == "continue":
        kept[course.node] = course.turns
    return course.model_copy(
        update={
            "node": number,
            "visits": _one_more(course.visits, number),
            "turns": kept.get(number, 0) if goes_on else 0,
            "taken": (0,) * members,
            "last": None,
            "opening": False,
            "kept": tuple(sorted(kept.items())),
        }
    )


def _grant(state: GroupState, scene: Scene, speaker: int, at: datetime, changed: Mapping[str, object]) -> GroupState:
    opens = scene.node.opens
    opening = scene.course.last is None and opens is not None and bool(opens.say) and speaker in scene.holders(opens.role)[:1]
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


def _end(state: GroupState, policy: Policy, at: datetime, words: str | None) -> GroupState:
    """End the discussion: the last message is the result, or the leader states it."""
    if policy.ends == "last" and words is not None:
        return floor.end(state, Reason.CONCLUDED, words, at, (), lacks.of_conclusion(state))
    return floor.open_conclusion(state, floor.concluder(state), at, forced=None)


def _one_more(counts: tuple[int, ...], number: int) -> tuple[int, ...]:
    return (*counts[:number], counts[number] + 1, *counts[number + 1 :])
