"""Agents under a policy: with a function, with a model, and with neither; and roles that discovery fills."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from ioa import Agent, TurnView
from ioa.agent.model import ModelBrain
from ioa.ports.brain_types import Mission, TeamLaunch, TeamTools
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Decision, Discussion, Pass, PassCause
from ioa.protocol.teams.team_file import read_toml
from ioa.testing import ScriptedModel
from ioa.testing.scripted_model import ScriptedCall
from ioa_testkit import System
from ioa_testkit.finished import FinishedGoal
from tests.rig.deadline import eventually

TALK = read_toml("""
team = "talk"
[roles]
host = { agent = "host", prompt = "Be kind." }
guest = { need = "gardens and flowers" }
[[nodes]]
name = "talk"
roles = ["host", "guest"]
opens = { role = "host", say = "Welcome: to all." }
prompt = "Be brief."
max = 3
exits = [{ to = "end", by = "speaker" }, { to = "end" }]
""")
ORDER = GoalOrder(goal="Talk of gardens.", team=TALK)


def agent(name: str, does: str, told: list[str]) -> Agent:
    """Return an agent that records its tasks and answers with its name."""
    this = Agent(name, description=does, examples=[does])

    @this.task
    def run(task: str) -> str:
        told.append(task)
        return f"{name} speaks"

    return this


def answered(**decision: object) -> str:
    """A model's answer."""
    return json.dumps({"decision": decision})


def concluded(content: str) -> str:
    """A model's conclusion."""
    return answered(type="CONCLUDE", goal_reached=True, content=content)


def said(finished: FinishedGoal) -> list[tuple[str, str]]:
    """Return senders and contents of discussions."""
    return [(one.header.sender, one.payload.content) for one in finished.messages() if isinstance(one.payload, Discussion)]


async def test_agents_without_a_model_speak_by_their_functions(ioa_system: System) -> None:
    """The function receives prompts, goal and messages. Opening words call no agent, and the last message is the answer."""
    told: list[str] = []
    both = agent("host", "hosts talks", told), agent("flora", "gardens and flowers", told)
    finished = await ioa_system.run(ORDER, agents=both)
    assert said(finished) == [("host", "Welcome: to all."), ("flora", "flora speaks"), ("host", "host speaks")]
    assert (finished.result.reason, finished.result.content) == (Reason.CONCLUDED, "host speaks")
    assert told == [
        "Be brief.\nTalk of gardens.\nWhat was said so far:\nhost: Welcome: to all.",
        "Be kind.\nBe brief.\nTalk of gardens.\nWhat was said so far:\nhost: Welcome: to all.\nflora: flora speaks",
    ]


async def test_prompt_of_a_member_contains_its_role_and_exits(ioa_system: System) -> None:
    """The model may choose an exit, and a wrong speaker is rejected with the reason."""
    words = {"type": "DISCUSSION", "content": "Water at night."}
    model = ScriptedModel([answered(**words, next_speaker="host"), answered(**words, go="end"), concluded("Gardens are nice.")])
    both = agent("host", "hosts talks", []), agent("flora", "gardens and flowers", [])
    finished = await ioa_system.run(ORDER, agents=both, model=model)
    assert said(finished) == [("host", "Welcome: to all."), ("flora", "Water at night.")]
    assert finished.result.content == "Gardens are nice."
    first, second, _ = model.asked
    assert "Your role: guest. The discussion is at: talk." in first.prompt
    assert 'go: ["end"]' in first.prompt and "heard_by:" not in first.prompt
    assert "host cannot be the next speaker; the policy selects it: name no member." in second.prompt


PASSED = read_toml("""
team = "t"
leader = "host"
[roles]
host = "host"
guest = "guest"
judge = "judge"
[[nodes]]
name = "talk"
roles = ["guest", "host"]
max = 2
asked = "turn"
exits = [{ to = "end", by = "judge" }]
""")


async def test_a_function_passes_its_turn(ioa_system: System) -> None:
    """At once, with the reason on record and no try used up; a decision is left to its default, and the group goes on."""
    tries: list[str] = []

    def serving(name: str) -> Agent:
        this = Agent(name, description=f"{name} plays")

        @this.speak
        def speak(view: TurnView) -> Any:
            tries.append(name)
            return view.say(f"{name} speaks") if name == "host" else view.pass_turn(f"{name} has nothing")

        return this

    finished = await ioa_system.run(GoalOrder(goal="Talk.", team=PASSED), agents=[*map(serving, ("host", "guest", "judge"))])
    passed = finished.messages()
    told = [(one.header.sender, one.payload.cause, one.payload.content) for one in passed if isinstance(one.payload, Pass)]
    assert told == [(name, PassCause.NOTHING_TO_ADD, f"{name} has nothing") for name in ("guest", "judge")]
    assert (said(finished), tries.count("guest"), tries.count("judge")) == ([("host", "host speaks")], 1, 1)


WHISPERED = read_toml("""
team = "den"
leader = "host"
[roles]
host = { agent = "host" }
wolf = { agents = ["flora", "rex"] }
deaf = { agent = "deaf" }
[[nodes]]
name = "night"
roles = ["wolf"]
heard_by = "node"
max = 1
then = "alone"
[[nodes]]
name = "alone"
roles = ["deaf"]
heard_by = "node"
max = 9
exits = [{ to = "day", by = "host" }]
[[nodes]]
name = "day"
roles = ["host"]
""")


async def test_prompt_names_the_receivers_of_a_message(ioa_system: System) -> None:
    """The prompt lists the receivers if not all members receive the message."""
    prompts: list[str] = []

    def answer(asked: ScriptedCall) -> str:
        prompts.append(asked.prompt)
        if "The discussion has ended" in asked.prompt:
            return concluded("Nothing.")
        if "by the decision DECIDE" in asked.prompt:
            return answered(type="DECIDE", choice="day", content="Enough.")
        return answered(type="DISCUSSION", content=f"Words {len(prompts)}.")

    four = [agent(name, f"{name} plays", []) for name in ("host", "flora", "rex", "deaf")]
    await ioa_system.run(GoalOrder(goal="Play.", team=WHISPERED), agents=four, model=ScriptedModel(answer))
    assert all("All members read all messages and results, unless you are told otherwise." in prompt for prompt in prompts)
    told = [
        'heard_by: ["rex"]',
        "heard_by: []",
        "If the policy hides messages, only members that hear all messages read them",
        'heard_by: ["flora", "rex", "deaf"]',
    ]
    assert [line in prompt for line, prompt in zip(told, prompts, strict=False)] == [True] * 4


PANEL = """
team = "panel"
leader = "flora"
[roles]
host = "host"
guest = "guest"
flora = "flora"
[[nodes]]
name = "vote"
roles = ["host", "guest"]
turns = "together"
max = 4
form = { tree = "oak|elm", sure = "1..10", why = "text?" }
exits = [{ to = "end", by = "flora" }]
"""


async def test_models_fill_in_forms_apart_and_choose_among_options(ioa_system: System) -> None:
    """Invalid form fields are repaired before they are sent; a voter does not see the other vote, and the judge sees both.

    The judge's options are the only ones that its answer can hold.
    """
    prompts: dict[str, list[ScriptedCall]] = {"vote": [], "rule": []}

    def answer(asked: ScriptedCall) -> str:
        if "by the decision DECIDE" in asked.prompt:
            prompts["rule"].append(asked)
            return answered(type="DECIDE", choice="end", content="Both say oak.")
        if "The discussion has ended" in asked.prompt:
            return concluded("Oak.")
        prompts["vote"].append(asked)
        tree = "oak" if len(asked.messages) > 2 else "ash"
        fields = [{"name": "tree", "value": tree}, {"name": "sure", "value": "7"}]
        return answered(type="DISCUSSION", content="An oak, a secret one.", fields=fields)

    order = GoalOrder(goal="Which tree?", team=read_toml(PANEL))
    three = [agent(name, f"{name} knows trees", []) for name in ("host", "guest", "flora")]
    finished = await ioa_system.run(order, agents=three, model=ScriptedModel(answer))
    votes = finished.messages()
    filled = [one.payload.fields for one in votes if isinstance(one.payload, Discussion)]
    assert (filled, finished.result.content) == ([{"tree": "oak", "sure": 7}] * 2, "Oak.")
    assert [one.payload.choice for one in votes if isinstance(one.payload, Decision)] == ["end"]
    sure, why = "a whole number, 1 or more, 10 or less", "a text that is not empty (optional)"
    asks = f'fields: {{"tree": "one of oak, elm", "sure": "{sure}", "why": "{why}"}}'
    firsts = [asked for asked in prompts["vote"] if len(asked.messages) == 2]
    assert [asks in asked.prompt for asked in firsts] == [True, True]
    repairs = [asked.messages[-1].content for asked in prompts["vote"] if len(asked.messages) > 2]
    assert ["The field tree cannot be what you say: it is one of oak, elm." in one for one in repairs] == [True, True]
    assert not any("a secret one" in asked.messages[1].content for asked in prompts["vote"])
    [rule] = prompts["rule"]
    assert rule.prompt.count("a secret one") == 2 and "tree: oak" in rule.prompt
    assert rule.shape is not None and '"enum": ["end", "stay"]' in json.dumps(rule.shape.model_json_schema())


async def test_agents_without_a_model_leave_a_ruling_and_a_form_to_the_policy(ioa_system: System) -> None:
    """A decision gets its default, and a form that they cannot fill in is a pass."""
    three = [agent(name, f"{name} knows trees", []) for name in ("host", "guest", "flora")]
    talk = PANEL.replace("together", "order").replace('tree = "oak|elm", sure = "1..10", ', "")
    finished = await ioa_system.run(GoalOrder(goal="Which tree?", team=read_toml(talk)), agents=three)
    decided = finished.messages()
    assert [one.payload.choice for one in decided if isinstance(one.payload, Decision)] == ["stay"]
    assert [who for who, _ in said(finished)] == ["host", "guest", "host", "guest"]
    finished = await ioa_system.run(GoalOrder(goal="Which tree?", team=read_toml(PANEL)), agents=three)
    assert said(finished) == []


async def test_model_that_asks_several_members_receives_the_votes(ioa_system: System) -> None:
    """In a free group: each prompt contains the form, and the asking member continues with the votes."""
    prompts: list[ScriptedCall] = []

    def answer(asked: ScriptedCall) -> str:
        prompts.append(asked)
        tail = asked.messages[-1].content
        if "Several members answer in parallel" in tail:
            return answered(type="DISCUSSION", content="Oak.", fields=[{"name": "tree", "value": "oak"}])
        if "<votes>" in tail:
            return concluded("Oak.")
        if len(asked.messages) == 2:
            return answered(type="DISCUSSION", content="Which?", next_speakers=["guest", "zoe"])
        question = [{"name": "tree", "answer": "oak|elm"}]
        return answered(type="DISCUSSION", content="Which?", next_speakers=["guest", "flora"], question=question)

    three = [agent(name, f"{name} knows trees", []).with_card(instructions="Vote.") for name in ("host", "guest", "flora")]
    brain = Everybody(ScriptedModel(answer))
    finished = await ioa_system.run(GoalOrder(goal="Which tree?", agent="host"), agents=three, brain=brain)
    assert finished.result.content == "Oak."
    told = [asked.prompt for asked in prompts]
    assert sum('fields: {"tree": "one of oak, elm"}' in one for one in told) == 2
    assert "<votes>\n2 answered\ntree: oak 2, elm 0\n</votes>" in told[-1]
    assert "zoe cannot be the next speaker" in prompts[1].prompt


class Everybody(ModelBrain):
    """A model's brain that launches a fixed team."""

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch:
        """Return the team."""
        return TeamLaunch(members=(AgentId("guest"), AgentId("flora")))


ASKING = read_toml("""
team = "lunch"
[roles]
host = "host"
[[nodes]]
name = "plan"
roles = ["host"]
turns = { mode = "order", repeat = true }
max = 1
asks = true
""")


async def test_a_model_asks_the_user_where_its_node_lets_it(ioa_system: System) -> None:
    """The prompt permits questions, an invalid question is repaired, and the answer is in the next prompt."""
    ask = {"type": "ASK", "content": "Which day?", "options": ["Monday", "Tuesday"]}
    talk = answered(type="DISCUSSION", content="Tuesday it is.")
    model = ScriptedModel([answered(**ask, default="Sunday"), answered(**ask, default="Monday"), talk, concluded("Tuesday it is.")])
    order = GoalOrder(goal="Order lunch.", team=ASKING)
    async with ioa_system.serve(agent("host", "hosts talks", []), model=model) as running:
        finishing, client = asyncio.create_task(running.run(order)), running.client
        (question,) = await eventually(client.waiting)
        await client.answer(question.item, "Tuesday")
        finished = await finishing
    assert finished.result.content == "Tuesday it is."
    first, second, third, _ = (asked.prompt for asked in model.asked)
    assert "asks: true" in first and "none of its options" in second and "from local" in third


INVITING = read_toml("""
team = "bridge"
[roles]
builder = "host"
boss = { human = true }
[[nodes]]
name = "plan"
roles = ["builder", "boss"]
max = 2
invites = true
exits = [{ to = "end", by = "speaker" }]
""")


async def test_a_model_invites_where_its_node_lets_it(ioa_system: System) -> None:
    """The prompt lists the roles without roles of people; the new member is in the next prompt, and one turn has one invitation."""
    invites = [answered(type="INVITE", need="weld steel", role=role) for role in ("boss", "builder", "builder")]
    model = ScriptedModel([*invites, *[answered(type="DISCUSSION", content="Let us begin.")] * 2, concluded("Welded.")])
    order = GoalOrder(goal="Build a bridge.", team=INVITING)
    both = agent("host", "plans bridges", []), agent("smith", "weld steel", [])
    finished = await ioa_system.run(order, agents=both, model=model)
    prompts = [asked.prompt for asked in model.asked]
    assert (finished.result.content, said(finished)) == ("Welded.", [(name, "Let us begin.") for name in ("host", "smith")])
    assert "smith" not in prompts[1] and "smith" in prompts[2]
    assert "host invites smith as builder: weld steel" in finished.transcript
    assert 'invites: ["builder"]' in prompts[0] and "Name the role of the new member: one of builder." in prompts[1]
    assert "INVITE is not possible now. Possible: DISCUSSION, CONCLUDE, PASS, READ." in prompts[3]
