"""Decisions of a member that is asked: the exit of a judged node, the next speaker, the review of a draft, and watchers.

A reviewed message is a draft first. After it has passed, its author sends it again unchanged, so that the log contains each message
as its author wrote it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

from ioa.group import floor
from ioa.group.events import MessageRefused, Said
from ioa.group.policy.casting import Scene, scene_of
from ioa.group.policy.course import (
    ask,
    begin_anew,
    count_turn,
    enter,
    gather,
    go_on,
    leave,
    proceed,
    removed,
    return_draft,
)
from ioa.group.policy.exits import chosen_exit, has_visit, way_out
from ioa.group.policy.forms import no_votes
from ioa.group.policy.turns import next_speaker
from ioa.group.state import MAX_MEMBERS, Asking, Course, Draft, GroupState, Member, Next, Watch
from ioa.protocol.codec import encode_value
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Decision, Discussion
from ioa.protocol.policy import END, NOTHING, STAY, Policy, Watcher

PASS, REJECT = "pass", "reject"
"""Options of a reviewer."""
ADD = "add"
"""The option of a watcher that invites an agent."""
NAMING = ("remove", "hint")
"""Options of a watcher that name members."""
MAX_STRUCK = 128
"""Maximum separate struck parts of a discussion: each entry of the group contains all of them."""


def take_decision(state: GroupState, said: Said, payload: Decision, policy: Policy) -> GroupState:
    """Apply the choice of the member that is asked."""
    return decide(state, payload.choice, policy, said.at, payload.members)


def decide(state: GroupState, choice: str, policy: Policy, at: datetime, members: Sequence[AgentId] = ()) -> GroupState:
    """Apply a choice, or the default."""
    stage, scene = state.stage, scene_of(policy, state)
    assert isinstance(stage, Asking)
    named = scene.course.nominated
    if named is not None:
        scene = scene.with_course(nominated=None)
    match stage.about:
        case "watch":
            return _step_in(scene, choice, members, at)
        case "review":
            return _review(scene, choice, at)
        case "speaker":
            chosen = state.number_of(AgentId(choice))
            return go_on(scene, at, named=chosen if chosen in scene.present else next_speaker(scene))
        case "exit" if choice == STAY:
            return go_on(scene, at, named=named)
        case "exit":
            way = chosen_exit(scene, choice, [way for way in scene.node.exits if way.judge is not None])
            return leave(scene, way, at, chosen=True)


def refuse_decision(state: GroupState, refused: MessageRefused, policy: Policy) -> GroupState:
    """Count an invalid decision; after the last one the default counts."""
    stage = state.stage
    assert isinstance(stage, Asking)
    if stage.refused == refused.message_id:
        return state
    if stage.tries <= 1:
        return decide(state, stage.default, policy, refused.at)
    left = stage.model_copy(update={"tries": stage.tries - 1, "refused": refused.message_id})
    return state.model_copy(update={"stage": left})


def ask_again(state: GroupState, policy: Policy, at: datetime) -> GroupState:
    """Ask a present holder of the role again; without one the default counts."""
    stage = state.stage
    assert isinstance(stage, Asking)
    asked = ask(scene_of(policy, state), at, stage.about, stage.options, stage.default, stage.tries)
    return decide(state, stage.default, policy, at) if asked is None else asked


def digest_of(said: Discussion) -> str:
    """Return the digest of a message with all its fields."""
    return hashlib.sha256(encode_value(said.model_dump(mode="json"))).hexdigest()[:32]


def ask_reviewer(scene: Scene, author: int, said: Discussion, at: datetime) -> GroupState:
    """Count the turn of a draft, and ask its reviewer; without a present reviewer it is rejected."""
    review, before = scene.node.review, scene.course.draft
    assert review is not None
    draft = Draft.of_valid(by=author, digest=digest_of(said), tries=review.tries if before is None else before.tries)
    scene = scene._replace(state=floor.take_turn(scene.state, monologue=None)).with_course(draft=draft)
    return ask(scene, at, "review", (PASS, REJECT), REJECT) or _reject_finally(scene, at)


def _review(scene: Scene, verdict: str, at: datetime) -> GroupState:
    """Let the author send the passed draft again, or another draft, as long as it has tries left."""
    draft = scene.course.draft
    assert draft is not None
    if verdict == REJECT and draft.tries <= 1:
        return _reject_finally(scene, at)
    changed = {"passed": True} if verdict == PASS else {"tries": draft.tries - 1}
    return return_draft(scene.with_course(draft=draft.model_copy(update=changed)), at)


def _reject_finally(scene: Scene, at: datetime) -> GroupState:
    """Apply the review's rule for the case that no draft is accepted."""
    draft, review, policy = scene.course.draft, scene.node.review, scene.policy
    assert draft is not None and review is not None
    author = scene.agent(draft.by)
    if review.then == "pass":
        return return_draft(scene.with_course(draft=draft.model_copy(update={"passed": True})), at)
    if review.then == "end":
        whose = "" if policy.secrets else f" of {author}"
        why = f"{review.by} rejected every draft{whose} in node {scene.node.name}; the group ended."
        return floor.end(scene.state, Reason.REFUSED, why, at)
    return proceed(scene_of(policy, count_turn(scene.state, policy, draft.by)), at)


def go_on_after(scene: Scene, at: datetime, then: Next, words: str | None) -> GroupState:
    """Go on as a message has chosen; named members that are no longer present are left out."""
    named = [number for number in then.named if number in scene.present]
    last = scene.course.last
    if then.several and named and last is not None and way_out(scene, None) is None:
        votes = no_votes(scene.state.turn + 1, scene.agent(last), then.question)
        return gather(scene, named, at, votes=votes, form=then.question)
    return proceed(scene, at, go=then.go, named=next(iter(named or then.named), None), words=words, gathered=then.gathered)


def watching(policy: Policy, course: Course, speaker: Member, turns_taken: int) -> tuple[int, ...]:
    """Return the watchers that are asked after a message, by their numbers.

    Args:
        policy: The policy of the group.
        course: The course after the message.
        speaker: The speaker.
        turns_taken: Turns that the group has used, with this one.
    """
    nodes, roles = policy.node_numbers, policy.role_numbers
    return tuple(
        [
            number
            for number, watcher in enumerate(policy.watchers)
            if (watcher.node is None or nodes[watcher.node] == course.node)
            and (watcher.by is None or roles[watcher.by] in speaker.roles)
            and turns_taken % watcher.every == 0
        ]
    )


def note_watchers(policy: Policy, state: GroupState, speaker: AgentId) -> GroupState:
    """Note the watchers that are asked after all members have spoken in parallel."""
    course = state.course
    assert course is not None
    due = watching(policy, course, state.members[state.number_of(speaker)], state.turns_taken)
    if not due:
        return state
    known = due if course.watch is None else tuple(sorted({*course.watch.due, *due}))
    watch = Watch.of_valid(due=known, then=Next(gathered=True))
    return state.model_copy(update={"course": course.model_copy(update={"watch": watch})})


def ask_watchers(scene: Scene, at: datetime, due: Sequence[int], then: Next) -> GroupState:
    """Ask the first of some watchers that is present and has an option; after the last one the group goes on."""
    for place, number in enumerate(due):
        options = (NOTHING, *_steps(scene.policy.watchers[number], scene))
        if len(options) > 1:
            watched = scene.with_course(watch=Watch.of_valid(due=tuple(due[place:]), then=then))
            if asked := ask(watched, at, "watch", options, NOTHING):
                return asked
    return go_on_after(scene if scene.course.watch is None else scene.with_course(watch=None), at, then, None)


def ask_next_watcher(scene: Scene, at: datetime) -> GroupState:
    """Ask the watcher after the one that has decided."""
    watch = scene.course.watch
    assert watch is not None
    return ask_watchers(scene, at, watch.due[1:], watch.then)


def _step_in(scene: Scene, choice: str, members: Sequence[AgentId], at: datetime) -> GroupState:
    """Do what a watcher has chosen, and ask the next one."""
    if choice == "end":
        return enter(scene.policy, scene.state, END, at)
    if choice in scene.policy.node_numbers:
        return begin_anew(scene, choice, at)
    if choice == "remove":
        gone = [scene.state.number_of(agent) for agent in members]
        told = tuple([tuple([one for one in field if one[0] not in gone]) for field in scene.course.told])
        scene = scene_of(scene.policy, removed(scene.state, gone)).with_course(told=told)
    return ask_next_watcher(scene, at)


def _steps(watcher: Watcher, scene: Scene) -> tuple[str, ...]:
    """Return the options of a watcher besides nothing. It goes back only to nodes that were entered and have a visit left."""
    state = scene.state
    able = {
        "remove": any(one != state.owner for one in state.hearing),
        ADD: len(state.members) < MAX_MEMBERS and bool(scene.policy.able(scene.policy.role_numbers)),
        "go": False,
    }
    numbers = scene.policy.node_numbers
    is_full = len(scene.course.struck) >= MAX_STRUCK
    earlier = [to for to in watcher.go if scene.course.visits[numbers[to]] and has_visit(scene, to) and not is_full]
    return (*(verb for verb in watcher.may if able.get(verb, True)), *earlier)


def nameable(state: GroupState, choice: str) -> tuple[AgentId, ...]:
    """Return the members that a watcher may name with an option of `NAMING`; the owner cannot be removed."""
    return tuple([one for one in state.hearing if choice == "hint" or one != state.owner])
