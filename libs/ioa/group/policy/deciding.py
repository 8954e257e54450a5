"""Decisions of a member that is asked: the exit of a judged node, the next speaker, the review of a draft, and watchers.

A reviewed message is a draft first. After it has passed, its author sends it again unchanged, so that the log contains each message
as its author wrote it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from ioa.group import floor
from ioa.group.events import MessageRefused, Said
from ioa.group.policy.casting import Scene, current_scene
from ioa.group.policy.course import ask, count_turn, enter, go_on, grant, leave, proceed, removed
from ioa.group.policy.exits import chosen_exit
from ioa.group.policy.position import Draft, Next, Watch
from ioa.group.state import Asking, GroupState
from ioa.protocol.codec import encode_value
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Decision, Discussion
from ioa.protocol.policy import Policy, Watcher
from ioa.protocol.policy_parts import END, NOTHING, STAY
from ioa.protocol.setup.charter import MAX_MEMBERS

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
    return decide(current_scene(policy, state, said.at), payload.choice, payload.members)


def decide(scene: Scene, choice: str | None = None, members: Sequence[AgentId] = ()) -> GroupState:
    """Apply a choice; without one the default counts."""
    stage, named = scene.state.stage, scene.course.nominated
    assert isinstance(stage, Asking)
    choice = stage.default if choice is None else choice
    if named is not None:
        scene = scene.with_course(nominated=None)
    match stage.about:
        case "watch":
            return _step_in(scene, choice, members)
        case "review":
            return _review(scene, choice)
        case "speaker":
            chosen = scene.state.number_of(AgentId(choice))
            return go_on(scene, chosen if chosen in scene.present else scene.next_speaker())
        case "exit" if choice == STAY:
            return go_on(scene, named)
        case "exit":
            way = chosen_exit(scene, choice, [way for way in scene.node.exits if way.judge is not None])
            return leave(scene, way, chosen=True)


def refuse_decision(state: GroupState, refused: MessageRefused, policy: Policy) -> GroupState:
    """Count an invalid decision; after the last one the default counts."""
    stage = state.stage
    assert isinstance(stage, Asking)
    if stage.refused == refused.message_id:
        return state
    if stage.tries <= 1:
        return decide(current_scene(policy, state, refused.at))
    left = stage.model_copy(update={"tries": stage.tries - 1, "refused": refused.message_id})
    return state.model_copy(update={"stage": left})


def ask_again(scene: Scene) -> GroupState:
    """Ask a present holder of the role again; without one the default counts."""
    stage = scene.state.stage
    assert isinstance(stage, Asking)
    return ask(scene, stage.about, stage.options, stage.default, stage.tries) or decide(scene)


def digest_of(said: Discussion) -> str:
    """Return the digest of a message with all its fields."""
    return hashlib.sha256(encode_value(said.model_dump(mode="json"))).hexdigest()[:32]


def ask_reviewer(scene: Scene, author: int, said: Discussion) -> GroupState:
    """Count the turn of a draft, and ask its reviewer; without a present reviewer it is rejected."""
    review, before = scene.node.review, scene.course.draft
    assert review is not None
    draft = Draft.of_valid(by=author, digest=digest_of(said), tries=review.tries if before is None else before.tries)
    scene = scene._replace(state=floor.take_turn(scene.state, monologue=None)).with_course(draft=draft)
    return ask(scene, "review", (PASS, REJECT), REJECT) or _reject_finally(scene, draft)


def _review(scene: Scene, verdict: str) -> GroupState:
    """Let the author send the passed draft again, or another draft, as long as it has tries left."""
    draft = scene.course.draft
    assert draft is not None
    if verdict == REJECT and draft.tries <= 1:
        return _reject_finally(scene, draft)
    return _return_draft(scene, draft, {"passed": True} if verdict == PASS else {"tries": draft.tries - 1})


def _return_draft(scene: Scene, draft: Draft, changed: Mapping[str, object]) -> GroupState:
    """Grant the floor to the author of the reviewed draft; an author that is not present is passed over, uncounted."""
    if draft.by not in scene.present:
        return go_on(scene.with_course(draft=None), draft.by)
    return grant(scene.with_course(draft=draft.model_copy(update=changed)), draft.by)


def _reject_finally(scene: Scene, draft: Draft) -> GroupState:
    """Apply the review's rule for the case that no draft is accepted."""
    review, policy = scene.node.review, scene.policy
    assert review is not None
    if review.then == "pass":
        return _return_draft(scene, draft, {"passed": True})
    if review.then == "end":
        whose = "" if policy.secrets else f" of {scene.agent(draft.by)}"
        why = f"{review.by} rejected every draft{whose} in node {scene.node.name}; the group ended."
        return floor.end(scene.state, Reason.REFUSED, why, scene.at)
    return proceed(current_scene(policy, count_turn(scene.state, policy, draft.by), scene.at))


def due_watchers(scene: Scene, speaker: int) -> tuple[int, ...]:
    """Return the watchers that are asked after a counted message, by their numbers."""
    nodes, roles, state = scene.policy.node_numbers, scene.policy.role_numbers, scene.state
    return tuple(
        [
            number
            for number, watcher in enumerate(scene.policy.watchers)
            if (watcher.node is None or nodes[watcher.node] == scene.course.node)
            and (watcher.by is None or roles[watcher.by] in state.members[speaker].roles)
            and state.turns_taken % watcher.every == 0
        ]
    )


def note_watchers(scene: Scene, speaker: int) -> GroupState:
    """Note the watchers that are asked after all members have spoken in parallel."""
    due, watch = due_watchers(scene, speaker), scene.course.watch
    if not due:
        return scene.state
    known = due if watch is None else tuple(sorted({*watch.due, *due}))
    return scene.with_course(watch=Watch.of_valid(due=known, then=Next(gathered=True))).state


def ask_watchers(scene: Scene, due: Sequence[int], then: Next) -> GroupState:
    """Ask the first of some watchers that is present and has an option; after the last one the group goes on."""
    for place, number in enumerate(due):
        options = (NOTHING, *_steps(scene.policy.watchers[number], scene))
        if len(options) > 1:
            watched = scene.with_course(watch=Watch.of_valid(due=tuple(due[place:]), then=then))
            if asked := ask(watched, "watch", options, NOTHING):
                return asked
    return proceed(scene if scene.course.watch is None else scene.with_course(watch=None), then)


def ask_next_watcher(scene: Scene) -> GroupState:
    """Ask the watcher after the one that has decided."""
    watch = scene.course.watch
    assert watch is not None
    return ask_watchers(scene, watch.due[1:], watch.then)


def _step_in(scene: Scene, choice: str, members: Sequence[AgentId]) -> GroupState:
    """Do what a watcher has chosen, and ask the next one."""
    if choice == "end":
        return enter(scene, END)
    if choice in scene.policy.node_numbers:
        return _begin_anew(scene, choice)
    if choice == "remove":
        gone = [scene.state.number_of(agent) for agent in members]
        told = tuple([tuple([one for one in field if one[0] not in gone]) for field in scene.course.told])
        scene = current_scene(scene.policy, removed(scene.state, gone), scene.at).with_course(told=told)
    return ask_next_watcher(scene)


def _begin_anew(scene: Scene, to: str) -> GroupState:
    """Enter a node again, and strike the messages since it was entered."""
    course, state = scene.course, scene.state
    entered = course.entered[scene.policy.node_numbers[to]]
    first, last = entered, state.turn - 1
    kept = [one for one in course.struck if one[0] < first]
    if kept and kept[-1][1] >= first - 2:  # between them is the turn of the watcher that struck the former
        first = kept.pop()[0]
    done = tuple([one for one in course.done if course.entered[one] < entered])
    # the agenda was filled since, because the node is in no branch
    scene = scene.with_course(struck=(*kept, (first, last)), agenda=(), done=done)
    state = floor.cancel_tasks(scene.state, f"{to} is begun anew", lambda task: task.turn >= first)
    return enter(scene._replace(state=state), to)


def _steps(watcher: Watcher, scene: Scene) -> tuple[str, ...]:
    """Return the options of a watcher except `nothing`. It goes back only to nodes that were entered and have a visit left."""
    state, policy, course = scene.state, scene.policy, scene.course
    able = {
        "remove": bool(nameable(state, "remove")),
        ADD: len(state.members) < MAX_MEMBERS and bool(policy.able(policy.role_numbers)),
        "go": False,
    }
    back = watcher.go if len(course.struck) < MAX_STRUCK else ()
    earlier = [to for to in back if course.visits[policy.node_numbers[to]] and scene.has_visit(to)]
    return (*(verb for verb in watcher.may if able.get(verb, True)), *earlier)


def nameable(state: GroupState, choice: str) -> tuple[AgentId, ...]:
    """Return the members that a watcher may name with an option of `NAMING`; the owner cannot be removed."""
    return tuple([one for one in state.hearing if choice == "hint" or one != state.owner])
