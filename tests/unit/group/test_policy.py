"""Groups under a policy: each rule with a fragment, a story and the floors that follow."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from ioa.group.events import MemberLost, MessageRefused, Said
from ioa.group.machine import legal_kinds, step
from ioa.group.policy.conditions import looks_like
from ioa.group.policy.offer import Offer, offer
from ioa.group.policy.watching import MAX_STRUCK
from ioa.group.rejection import RejectionCode
from ioa.group.state import Asking, Discussing, Ended, Gathering
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import (
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    Discussion,
    InformTaskProgress,
    Pass,
    PassCause,
    Pause,
    Payload,
    SyncTaskAssignment,
    Thinking,
)
from ioa.protocol.policy import FieldValue, Policy
from ioa.protocol.team import team_of
from tests.rig.cases import cases
from tests.unit.group.scenario import COMM, Scenario, launched_under, said, specs

A, B, C = "ada", "bob", "eve"
CAST: Mapping[str, Sequence[str]] = {"a": [A], "b": [B], "c": [C], "ab": [A, B], "bc": [B, C], "all3": [A, B, C]}


def policy_of(*nodes: Mapping[str, Any], **top: Any) -> Policy:
    """A policy of these nodes, whose roles are those that they name; it has no error."""
    more = top.pop("roles", {})
    named = dict.fromkeys([role for node in nodes for role in (*node["roles"], *_reviewers(node))] + list(more))
    roles = {name: _filled(more.get(name, {})) for name in named}
    return team_of({"team": "t", "roles": roles, "nodes": list(nodes), **top}).policy


def _filled(told: Mapping[str, Any]) -> Mapping[str, Any]:
    return told if "human" in told else {"agent": "any", **told}


def _reviewers(node: Mapping[str, Any]) -> Sequence[str]:
    review = node.get("review")
    return () if review is None else (review if isinstance(review, str) else review["by"],)


def group(*nodes: Mapping[str, Any], max_turns: int = 100, **top: Any) -> Scenario:
    """Ada, Bob and Eve in a group under a policy; Ada owns it."""
    return launched_under(policy_of(*nodes, **top), CAST, A, B, C, max_turns=max_turns)


@dataclass(frozen=True)
class Told:
    """A story: each word is an event.

    `says` the holder says something; `talks:b` says "b"; `says:bob` names Bob, `says:bob,eve` both side by side;
    `says{vote=bob,done=yes}` fills a form in; `writes:x` writes x; `invites:joe/b` has Joe join; `goes:x` leads to x; `again` says
    a draft once more; `opens:Go.` says the given words; `decides:x`, or with members `decides:remove/bob+eve`; `errs` chooses what
    is no option; `silent` lets the floor run out; `passes`; `away` passes since the model is; `ends` announces the end; `-bob` is
    lost; `+bob` is back. `says@bob` is Bob's, else it is of the first who may speak.
    """

    story: Scenario

    def word(self, word: str) -> Told:  # noqa: C901 - one flat case for each verb
        """Go one event further."""
        story = self.story
        if word[0] in "-+":
            return Told(story.loses(word[1:]) if word[0] == "-" else story.regains(word[1:]))
        found = _WORD.fullmatch(word)
        assert found is not None, word
        verb, what, words = found["verb"], found["what"] or "", f"Point {len(story.log)}."
        who, fields = found["who"] or next(iter(story.state.floor), "nobody"), _fields(found["fields"] or "")
        names = [AgentId(name) for name in what.split(",") if name]
        match verb:
            case "says" if len(names) > 1:
                payload: Payload = Discussion(content=words, next_speakers=tuple(names), fields=fields)
            case "says":
                payload = Discussion(content=words, next_speaker=names[0] if names else None, fields=fields)
            case "goes":
                payload = Discussion(content=words, go=what, fields=fields)
            case "invites":
                name, _, role = what.partition("/")
                return Told(story.invites(who, name, role or None))
            case "writes":
                payload = Discussion(content=words, writes={what: ""})
            case "decides":
                choice, _, members = what.partition("/")
                payload = Decision(
                    choice=choice, content="So be it.", members=tuple(map(AgentId, filter(None, members.split("+"))))
                )
            case "again":
                payload = last_draft(story)
            case "away":
                payload = Pass(cause=PassCause.MODEL_UNAVAILABLE)
            case "errs":
                assert story.refusal(said(who, Decision(choice="nowhere"), story.state.turn, story.now)).code == "bad_decision"
                about = {"by": who, "turn": story.state.turn, "message_id": f"m{len(story.log)}", "code": "bad_decision"}
                return Told(story.happens(MessageRefused.model_validate({"at": story.now, **about})))
            case "opens" | "talks":
                payload = Discussion(content=what)
            case "passes":
                payload = Pass(cause=PassCause.NOTHING_TO_ADD)
            case "ends":
                payload = ConcludeGroupDiscussion()
            case _:
                assert verb == "silent"
                return Told(story.timer())
        return Told(story.speaks(who, payload))

    def where(self) -> str:
        """The node and who has the floor, all who have, or who is asked; or how the discussion has ended."""
        state, policy = self.story.state, self.story.policy
        assert policy is not None and state.course is not None
        match state.stage:
            case Discussing(holder=holder):
                return f"{policy.nodes[state.course.node].name}:{holder}"
            case Gathering() | Asking():
                sign = "?" if isinstance(state.stage, Asking) else ":"
                return f"{policy.nodes[state.course.node].name}{sign}{'+'.join(state.floor)}"
            case Ended(reason=reason):
                return f"ended:{reason}"
            case _:
                return f"concluding:{state.floor_holder}"


def last_draft(story: Scenario) -> Discussion:
    """What the floor holder said last."""
    own = (event.message for event in reversed(story.log) if isinstance(event, Said))
    return next(one.payload for one in own if isinstance(one.payload, Discussion) and one.header.sender == story.state.floor_holder)


_WORD = re.compile(r"(?P<verb>[a-z]+)(?:@(?P<who>\w+))?(?:\{(?P<fields>[^}]*)\})?(?::(?P<what>.*))?")


def _fields(text: str) -> Mapping[str, FieldValue]:
    """Read `vote=bob,done=yes,score=3`."""
    told: dict[str, FieldValue] = {}
    for pair in filter(None, text.split(",")):
        name, _, value = pair.partition("=")
        told[name] = value == "yes" if value in ("yes", "no") else int(value) if value.isdecimal() else value
    return told


def floors(story: Scenario, words: str) -> str:
    """Where the group stood at first and after each event."""
    told = [Told(story)]
    for word in words.split():
        told.append(told[-1].word(word))
    return " ".join(one.where() for one in told)


X: Mapping[str, Any] = {"name": "x", "roles": ["a", "b", "c"]}
Y: Mapping[str, Any] = {"name": "y", "roles": ["c"]}
Z: Mapping[str, Any] = {"name": "z", "roles": ["b", "c"]}
BY_SPEAKER: Mapping[str, Any] = {"max": 9, "exits": [{"to": "end", "by": "speaker"}]}

LOOSE: Mapping[str, Any] = {"max": 9, "exits": [{"to": "y", "by": "speaker"}]}
REVIEWED: Mapping[str, Any] = {"name": "x", "roles": ["a", "b"], "review": "c"}


def watched(role: str, **more: Any) -> Mapping[str, Any]:
    """A policy with a watcher that may remove and end."""
    return {"watchers": [{"role": role, "may": ["remove", "hint", "end"], **more}]}


RULES = cases("rules")


@pytest.mark.parametrize(("nodes", "top", "story", "expected"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
def test_rule(nodes: Sequence[Mapping[str, Any]], top: Mapping[str, Any], story: str, expected: str) -> None:
    """Who has the floor follows from the policy and from what was said, and from nothing else."""
    assert floors(group(*nodes, **top), story) == expected


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_a_random_order_follows_from_the_seed_and_the_group(seed: int) -> None:
    """It is the same each time, and nobody speaks twice in a row."""
    expected, last = [], ""
    for turn in range(6):
        choices = [one for one in (A, B, C) if one != last]
        drawn = hashlib.sha256(f"{seed}/{COMM}/x/1/{turn}".encode()).digest()[:8]
        last = choices[int.from_bytes(drawn, "big") % len(choices)]
        expected.append(f"x:{last}")
    assert floors(group({**X, "turns": "random", "max": 9}, seed=seed), "says " * 5).split() == expected


REFUSED: list[tuple[str, Mapping[str, Any], str, Payload, RejectionCode]] = [
    ("other words", {**X, "opens": {"role": "a", "say": "Go."}}, "", Discussion(content="Hm."), RejectionCode.BAD_OPENING),
    ("a name in order", X, "", Discussion(content="Hm.", next_speaker=AgentId(B)), RejectionCode.BAD_NEXT_SPEAKER),
    ("a name by who is no hub", {**X, "turns": {"mode": "hub", "by": "a"}, "max": 9}, "says",
     Discussion(content="Hm.", next_speaker=AgentId(C)), RejectionCode.BAD_NEXT_SPEAKER),
    ("no way", {**X, **LOOSE}, "", Discussion(content="Hm.", go="end"), RejectionCode.BAD_EXIT),
    ("a way whose time has not come", {**X, "max": 9, "exits": [{"to": "y", "by": "speaker", "when": {"turns": 1}}]}, "",
     Discussion(content="Hm.", go="y"), RejectionCode.BAD_EXIT),
    ("an end that is not offered", {**X, **LOOSE}, "", ConcludeGroupDiscussion(), RejectionCode.OFF_COURSE),
    ("a conclusion by who does not lead", {**X, **BY_SPEAKER}, "says",
     ConcludeGroupDiscussion(conclusion=Conclusion(content="Ten.")), RejectionCode.OFF_COURSE),
    ("tasks", X, "", SyncTaskAssignment(tasks=specs(("t1-1:bob",))), RejectionCode.OFF_COURSE),
    ("a pause", X, "", Pause(triggers=(TaskId("t1-1"),)), RejectionCode.OFF_COURSE),
    ("too much", {**X, "guards": [{"longest": 5}]}, "", Discussion(content="Hm, hm."), RejectionCode.GUARDED),
    ("a word that is forbidden", {**X, "guards": [{"without": ["apple"]}]}, "", Discussion(content="PineApples"),
     RejectionCode.GUARDED),
    ("a word that is forbidden, in a field", {**X, "form": {"note": "text"}, "guards": [{"without": ["apple"]}]}, "",
     Discussion(content="Hm.", fields={"note": "an apple"}), RejectionCode.GUARDED),
    ("a word that is forbidden, at the end", {**X, **BY_SPEAKER, "guards": [{"without": ["hm"]}]}, "",
     ConcludeGroupDiscussion(conclusion=Conclusion(content="Hm.")), RejectionCode.GUARDED),
    ("another draft than was passed", REVIEWED, "says decides:pass", Discussion(content="Hm."), RejectionCode.OFF_COURSE),
    ("an end without a review", {**REVIEWED, **BY_SPEAKER}, "", ConcludeGroupDiscussion(), RejectionCode.OFF_COURSE),
    ("something to write", X, "", Discussion(content="Hm.", writes={"plot": "Hm."}), RejectionCode.BAD_FORM),
    ("a word that is forbidden, on the board", {**X, "writes": ["plot"], "guards": [{"without": ["apple"]}]}, "",
     Discussion(content="Hm.", writes={"plot": "An apple."}), RejectionCode.GUARDED),
    ("more time without patience", X, "", Thinking(), RejectionCode.NO_CHANGE),
]  # fmt: skip


@pytest.mark.parametrize(("node", "story", "payload", "code"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_not_offered_is_refused(node: Mapping[str, Any], story: str, payload: Payload, code: RejectionCode) -> None:
    """With the reason, and with what would be legal."""
    told = Told(group(node, *([Y] if "'y'" in str([node.get("exits"), node.get("then")]) else [])))
    for word in story.split():
        told = told.word(word)
    speaker = told.story.state.floor[0]
    refused = told.story.refusal(said(speaker, payload, told.story.state.turn, told.story.now))
    assert refused.code is code
    assert "DISCUSSION" in refused.legal and "SYNC_TASK_ASSIGNMENT" not in refused.legal


def test_what_is_written_has_versions() -> None:
    """Of each thing the state knows how often it was written, and by whom last; a draft, and who is silent, write nothing."""
    written = {**X, "writes": ["plot", "notes"], "max": 9}
    told = group(written).speaks(A, Discussion(content="Once.", writes={"plot": "", "notes": "A ring."}))
    told = Told(told).word("silent").story.speaks(C, Discussion(content="Twice.", writes={"plot": "Two."}))
    assert told.state.course is not None
    assert told.state.course.board == (("plot", 2, 2), ("notes", 1, 0))
    drafted = group({**written, "review": "b", "roles": ["a"]}).speaks(A, Discussion(content="Once.", writes={"plot": ""}))
    assert drafted.state.course is not None and drafted.state.course.board == ()
    passed = Told(drafted).word("decides:pass").word("again").story.state.course
    assert passed is not None and passed.board == (("plot", 1, 0),)


def test_a_draft_is_told_to_its_author_and_to_who_reviews_it() -> None:
    """What becomes of it as well; all hear it when it is said again."""
    told, heard = Told(group(REVIEWED)), []
    for word in "says decides:reject says decides:pass again".split():
        before, told = told.story, told.word(word)
        transition = step(before.state, told.story.log[-1], before.policy)
        heard.append((transition.audience, transition.noticed))
    assert heard == [*[((A, C), ())] * 4, ((A, B, C), ())]


def test_a_hint_is_told_to_whom_it_names() -> None:
    """And to who hears all; others see nothing of it. Who is removed learns that it is."""
    told = Told(group({**X, "max": 9}, **watched("a"))).word("says")
    hinted = told.word("decides:hint/bob").story
    transition = step(told.story.state, hinted.log[-1], hinted.policy)
    assert (transition.audience, transition.noticed) == ((A, B), ())
    gone = told.word("decides:remove/eve").story
    transition = step(told.story.state, gone.log[-1], gone.policy)
    assert (transition.audience, transition.noticed) == ((A,), (B, C))


@pytest.mark.parametrize(
    "decision",
    [
        Decision(choice="remove"),
        Decision(choice="remove", members=(AgentId(A),)),
        Decision(choice="hint", members=(AgentId(B),)),
        Decision(choice="hint", content="Psst.", members=(AgentId("zoe"),)),
        Decision(choice="nothing", members=(AgentId(B),)),
    ],
    ids=["nobody", "the owner", "no words", "a stranger", "somebody for nothing"],
)
def test_a_step_that_cannot_be_is_no_decision(decision: Decision) -> None:
    """It costs a try, as any wrong choice."""
    story = Told(group(X, **watched("b"))).word("says").story
    assert story.refusal(said(B, decision, story.state.turn, story.now)).code is RejectionCode.BAD_DECISION


def test_what_was_said_since_a_node_was_entered_is_struck() -> None:
    """The state tells from which turn to which, for as long as the group lives; ranges that meet are one."""
    told = Told(group({**X, "max": 1, "visits": 3, "then": "y"}, Y, **watched("b", node="y", may=["go"], go=["x"])))
    struck = []
    for word in "says says decides:x says says decides:x says says".split():
        told = told.word(word)
        course = told.story.state.course
        assert course is not None
        struck.append(course.struck)
    assert struck == [(), (), *[((1, 2),)] * 3, *[((1, 5),)] * 3]


def test_what_is_struck_does_not_grow_without_end() -> None:
    """The state tells all of it in each entry: behind so many stretches a watcher is offered no node any more."""
    again = watched("b", node="y", may=["end", "go"], go=["y"])
    ways = [{"to": "x"}, {"to": "end", "by": "speaker"}]
    told = Told(group({**X, "max": 1, "then": "y"}, {**Y, "max": 1, "exits": ways}, max_turns=1_000, **again))
    for _ in range(MAX_STRUCK):
        for word in "says says decides:y says decides:nothing".split():
            told = told.word(word)
    stage, course = told.word("says").word("says").story.state.stage, told.story.state.course
    assert isinstance(stage, Asking) and course is not None
    assert (stage.options, len(course.struck)) == (("nothing", "end"), MAX_STRUCK)


def test_a_person_is_never_lost() -> None:
    """Whatever the registry says of its seat; its turn ends when its time is over."""
    story = group({**X, "max": 9}, roles={"b": {"human": True}})
    lost = MemberLost(at=story.now, agent_id=AgentId(B))
    assert story.refusal(lost).code is RejectionCode.NO_CHANGE
    assert floors(story, "says silent -eve says") == "x:ada x:bob x:eve x:ada x:bob"


def test_the_offer_of_a_hub_holds_whom_it_may_name_and_its_ways() -> None:
    """And that of the others neither."""
    story = group({**X, "turns": {"mode": "hub", "by": "a"}, **BY_SPEAKER}, leader="b")
    assert story.policy is not None
    assert offer(story.policy, story.state, AgentId(A)) == Offer(
        next_speakers=(AgentId(B), AgentId(C)), go=("end",), most_named=2, may_ask=True
    )
    after = Told(story).word("says:bob").story
    assert offer(story.policy, after.state, AgentId(B)) == Offer()  # it leads, and no end is offered to it now
    assert offer(story.policy, after.state, AgentId(A)) is None


def test_a_leader_that_is_offered_the_end_may_conclude_with_it() -> None:
    """One message ends the group."""
    story = group({**X, **BY_SPEAKER}).speaks(A, ConcludeGroupDiscussion(conclusion=Conclusion(content="Ten.")))
    assert isinstance(story.state.stage, Ended)
    assert (story.state.stage.reason, story.state.stage.content) == (Reason.CONCLUDED, "Ten.")


def test_a_member_whose_model_is_away_is_waited_for() -> None:
    """Nobody decides in its place: its turn is silent only when its model has been away for as long as a group waits for one."""
    story = group({**X, "max": 99})
    away = PassCause.MODEL_UNAVAILABLE
    held = story.passes(A, cause=away).after(200).passes(A, cause=away)
    assert (held.holder, held.state.turn) == (A, 3)
    assert held.after(100).passes(A, cause=away).holder == B


def test_a_group_whose_models_stay_away_fails_with_that_reason() -> None:
    """Whoever waits for the result learns what was missing."""
    story = group({**X, "max": 99})
    while story.holder is not None:
        story = story.after(100).passes(story.holder, cause=PassCause.MODEL_UNAVAILABLE)
    assert isinstance(story.state.stage, Ended) and story.state.stage.reason is Reason.MODEL_UNAVAILABLE


def test_the_second_repetition_passes_the_turn() -> None:
    """As a silent one."""
    story = group({**X, "max": 9})
    assert story.repeats_itself(A, "m1").holder == A
    assert story.repeats_itself(A, "m1").repeats_itself(A, "m2").holder == B


def test_used_up_turns_meet_no_condition() -> None:
    """A verdict whose condition was never met is not reached."""
    exits = [{"to": "y", "when": {"rounds": 5}}, {"to": "z"}]
    policy = policy_of({**X, "roles": ["a"], "max": 9, "exits": exits}, Y, Z, roles={"a": {"at_most": 1}})
    story = launched_under(policy, CAST, A, B, C)
    course = story.happens(said(A, Discussion(content="Mine."), story.state.turn, story.now)).state.course
    assert course is not None and policy.nodes[course.node].name == "z"


def test_the_hub_has_the_floor_again_when_all_whom_it_has_named_are_lost() -> None:
    """Nobody speaks in a talk with a chair whom the chair has not named."""
    policy = policy_of({**X, "turns": {"mode": "hub", "by": "a"}, "max": 9})
    story = launched_under(policy, CAST, A, B, C)
    for named in (Discussion(content="Well?", next_speakers=(AgentId(B),)), Discussion(content="Well?", next_speaker=AgentId(B))):
        asked = story.happens(said(A, named, story.state.turn, story.now))
        assert asked.loses(B).state.floor == (A,)


def test_words_may_come_again_in_a_hub() -> None:
    """A host that says "Next, please." twice says something new each time."""
    node = {**X, "roles": ["a"], "turns": {"mode": "hub", "by": "a"}, "max": 9}
    again = Discussion(content="Next, please.")
    assert group(node).speaks(A, again).speaks(A, again).holder == A
    alone = group({**node, "turns": "order"}).speaks(A, again)
    assert alone.refusal(said(A, again, alone.state.turn, alone.now)).code is RejectionCode.REPETITION


def test_a_role_may_have_time_of_its_own() -> None:
    """Instead of the group's; the next speaker has its own again."""
    story = group(X, roles={"a": {"timeout": 5}})
    assert isinstance(story.state.stage, Discussing)
    assert (story.state.stage.until - story.now).total_seconds() == 5
    after = story.timer()
    assert isinstance(after.state.stage, Discussing)
    assert (after.state.stage.until - after.now).total_seconds() == 60


def test_turns_of_the_group_are_exact_and_the_leader_concludes() -> None:
    """Silent turns are no messages and use none up."""
    story = group({**X, "max": 99}, max_turns=3, leader="c")
    assert floors(story, "says silent says says") == "x:ada x:bob x:eve x:ada concluding:eve"
    told = Told(story)
    for word in "says silent says says".split():
        told = told.word(word)
    assert (told.story.state.turns_taken, told.story.state.forced) == (3, Reason.MAX_TURNS)


def test_a_member_may_pass_and_think_and_nothing_of_a_free_group() -> None:
    """What it is told to be legal is what is taken."""
    story = group(X)
    assert legal_kinds(story.state, AgentId(A), story.now, story.policy) == (Discussion, Pass)
    ending = group({**X, **BY_SPEAKER})
    assert legal_kinds(ending.state, AgentId(A), ending.now, ending.policy) == (Discussion, ConcludeGroupDiscussion, Pass)


def test_a_group_is_not_stepped_without_its_policy() -> None:
    """A process that has not read it would run another group."""
    story = group(X)
    other = policy_of({**X, "max": 2})
    for policy in (None, other):
        with pytest.raises(ValueError, match="policy of its charter"):
            step(story.state, said(A, Discussion(content="Hm."), 1), policy)


def test_a_report_on_a_task_that_is_none_is_judged_with_the_policy() -> None:
    """Whoever sends it is told what is legal there."""
    story = group(X)
    refused = story.refusal(said(A, InformTaskProgress(task_id=TaskId("t1-1"), number=1), 1))
    assert (refused.code, refused.legal) == (RejectionCode.UNKNOWN_TASK, ("DISCUSSION", "PASS"))


@pytest.mark.parametrize(
    ("pattern", "match", "other"),
    [
        ("bye", "BYE", "bye!"),
        ("*bye*", "well, bye then", "by"),
        ("room #?", "Room 1b", "room b1"),
        ("*.*", "a.b\nc", "a b"),
        ("*ab*b", "abab", "aba"),
        ("[a]+", "[A]+", "aa"),
        ("*######*", "call 123456 now", "12345 6"),
        ("?", "\n", ""),
    ],
)
def test_pattern_matches_its_texts_in_either_case(pattern: str, match: str, other: str) -> None:
    """A star is any text, `?` a character, `#` a digit; other characters stand for themselves."""
    assert (looks_like(match, pattern), looks_like(other, pattern)) == (True, False)
