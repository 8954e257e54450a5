"""Goals that a capable model has played from its prompts alone, with the agents that they need.

In one an agent is at fault, one is nobody's to reach, one wants a team within a team; five are there to be reached, and not for
what they cost: in two turns, of long texts, by votes in the same words, in other languages, under a policy that was planned. What
the model answered lies in `benchmarks/data/prompts`, one file for each goal; `benchmarks.prompts` plays it again.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path

from ioa import Agent, ModelAgent, TaskContext, TaskError, TurnView
from ioa.agent.definition import AgentDefinition
from ioa.hosting.loading import load_agent
from ioa.protocol.goal_order import GoalOrder, InlineInput
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from ioa.protocol.teams.team_file import read_toml

_EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.append(str(_EXAMPLES / "robots"))
from cubes import GOAL as SORT  # noqa: E402 - an example is no package
from cubes import REACH, rebuild_world  # noqa: E402

_PROMPTS = Path(__file__).with_name("data") / "prompts"

Agents = list[AgentDefinition]


@dataclass(frozen=True)
class PlayedGoal:
    """A goal, who is there, and what is to come of it.

    Attributes:
        agents: Makes them, anew for each run.
        files: What comes along, from this machine.
        reason: How it ends.
        told: What the answer says, whatever its words.
        made: The files that go with it.
        is_measured: Whether it is one of those whose cost is compared with what it was.
        tape: Whose answers it is played by, if not its own.
    """

    name: str
    order: GoalOrder
    agents: Callable[[], Agents]
    files: Sequence[Path] = ()
    reason: Reason = Reason.CONCLUDED
    told: Sequence[str] = ()
    made: Sequence[str] = ()
    is_measured: bool = True
    tape: str = ""


def _example(name: str) -> AgentDefinition:
    return copy(load_agent(f"{_EXAMPLES / 'agents' / name}.py:agent"))  # goals run at once, each with a model of its own


def _clerk() -> Agent:
    clerk = Agent(
        "clerk",
        description="Leads goals that need several others: plans, gives out the work and checks what comes back.",
        examples=["organise this", "have this done and checked"],
        leads=True,
    )
    clerk.task(lambda task: "I lead, and do no work of my own.")
    return clerk


def _figures() -> Agents:
    return [_example("csv_analyst"), _example("chart_maker"), _example("report_writer"), _clerk()]


LIBRARY = {
    "The harbour of Tarn": "Tarn's harbour was begun in 1871 and opened in 1884. Its breakwater is 640 metres long. "
    "Until 1902 it handled mostly slate.",
    "Ferries of the sound": "The first ferry from Tarn to Hale ran on 3 May 1891 and took 55 minutes. "
    "Since 1978 the crossing takes 25.",
    "A storm remembered": "In the storm of January 1953 the sea broke through the breakwater at two places. "
    "It was repaired by 1955.",
    "Slate and its roads": "The slate quarries of Upper Tarn closed in 1931, after which the harbour lived on fishing.",
}


def _library() -> Agents:
    archive = Agent(
        "archive",
        leads=False,
        description="Finds the passages of a small library about Tarn that hold given words, with their titles.",
        examples=["passages about: harbour", "passages about: ferry, storm"],
    )

    @archive.task
    def find(task: str) -> str:
        words = [word.strip().lower() for word in task.partition(":")[2].split(",") if word.strip()]
        if not words:
            raise TaskError("Say what to look for, as in: passages about: harbour, ferry")
        found = [f"{title}: {text}" for title, text in LIBRARY.items() if any(word in f"{title} {text}".lower() for word in words)]
        return "\n".join(found) or "No passage holds any of these words."

    author = Agent(
        "author",
        leads=False,
        description="Writes a short article from passages that it is given, and revises it after remarks. Makes article.md.",
        examples=["write an article of 80 words from these passages", "revise the article after the critic's remarks"],
    )

    @author.task
    async def write(task: str, ctx: TaskContext) -> str:
        given = "\n\n".join(
            f"{one.task_desc}{f' (rejected: {one.rejected})' if one.rejected else ''}\n{one.content}" for one in ctx.results
        )
        answer = await ctx.chat(f"Write the article that is asked for, and nothing else.\n\n{given}\n\n{task}")
        ctx.artifact("article.md", answer.text, "text/markdown")
        return answer.text

    critic = ModelAgent(
        "critic",
        leads=False,
        description="Reads an article against its sources and names what is wrong, missing or too long.",
        examples=["check this article against the passages"],
        instructions="Name each statement that the passages do not bear out, with what they say. Say APPROVED if there is none.",
    )
    return [_clerk(), archive, author, critic]


def _party() -> Agents:
    venues = Agent("venues", leads=False, description="Knows halls for events: seats and price.", examples=["halls for 60 guests"])

    @venues.task
    def halls(task: str) -> str:
        return "Boat house: 40 seats, 500 EUR. Old mill: 70 seats, 900 EUR. Castle: 150 seats, 2,400 EUR."

    kitchen = Agent(
        "kitchen", leads=False, description="Cooks for events and tells its prices.", examples=["price of a buffet for 60 guests"]
    )

    @kitchen.task
    def cook(task: str) -> str:
        guests = _first_number(task)
        return (
            f"Warm buffet for {guests} guests: {guests * 24} EUR. Cold buffet: {guests * 17} EUR. Vegetarian dishes are included."
        )

    cellar = Agent(
        "cellar",
        leads=False,
        description="Sells drinks for events and tells its prices.",
        examples=["price of drinks for 60 guests"],
    )

    @cellar.task
    def pour(task: str) -> str:
        guests = _first_number(task)
        return f"Drinks for {guests} guests: {guests * 9} EUR, without spirits; {guests * 13} EUR with them."

    caterer = ModelAgent(
        "caterer",
        leads=False,
        description="Plans food and drinks of events together, with kitchens and cellars, within a budget.",
        examples=["food and drinks for 60 guests within 2,000 EUR"],
        may_team_up=True,
        instructions="Ask those who sell for their prices. Choose the best that the budget allows, and tell the sum.",
    )
    pie = Agent(
        "pie",
        leads=False,
        description="Draws pie charts of amounts as SVG files.",
        examples=["pie chart of: rent 900, food 1440, drinks 540"],
    )

    @pie.task
    def draw(task: str, ctx: TaskContext) -> str:
        parts = re.findall(r"(\w[\w ]*?) ([\d.]+)(?=,|;|$|\s*$)", task.partition(":")[2].strip())
        if not parts:
            raise TaskError("Say the parts, as in: pie chart of: rent 900, food 1440")
        ctx.artifact("pie.svg", "".join(f"<text>{name} {amount}</text>" for name, amount in parts), "image/svg+xml")
        return f"Drew {len(parts)} parts into pie.svg; together {sum(float(amount) for _, amount in parts):g}."

    return [_clerk(), venues, caterer, kitchen, cellar, pie]


def _first_number(task: str) -> int:
    found = re.search(r"\d+", task)
    if found is None:
        raise TaskError("Say for how many guests.")
    return int(found[0])


def _robots() -> Agents:
    table = load_agent(f"{_EXAMPLES / 'robots' / 'sort_hidden.py'}:table")
    return [table, *map(_robot, REACH)]


def _robot(name: str) -> Agent:
    reach = f"{name} reaches the panels {REACH[name][0]} to {REACH[name][-1]}"
    rules = (
        "Blue belongs on panel 2, pink on 4, yellow on 6; a cube may not be put on the panel of another. In a joint "
        "action each robot moves at most one cube, within its reach, onto a panel that is empty before. The table takes a joint "
        'action as JSON and nothing else: {"alice": ["blue", 3], "chad": ["yellow", 6]}. Use as few actions as possible.'
    )

    def instructions(view: TurnView) -> str:
        return f"{rules}\nYou see: {rebuild_world(view.inputs, view.conversation)[0].observe(name)}"

    description = f"A robot: {reach}, and sees no other panel."
    robot = Agent(name, description=description, examples=[reach], instructions=instructions)
    robot.task(lambda task: "I move cubes only together with the others.")

    return robot


RATES = "currency,per_eur\nUSD,1.25\nGBP,0.80\nJPY,160\nCHF,0.95\n"


def _expenses() -> Agents:
    exchange = Agent(
        "exchange",
        leads=False,
        description="Converts amounts of money to EUR by the rates of rates.csv that came with the goal.",
        examples=["convert 500 USD", "convert 120 GBP"],
    )

    @exchange.task
    def convert(task: str, ctx: TaskContext) -> str:
        asked = re.fullmatch(r"convert ([\d.,]+) ([A-Z]{3})\.?", task.strip())
        if asked is None:
            raise TaskError("I understand only: convert AMOUNT CURRENCY, one at a time.")
        rates = dict(line.split(",") for file in ctx.inputs for line in file.path.read_text().split()[1:])
        amount = float(asked[1].replace(",", ""))
        rate = float(rates[asked[2]])
        euros = amount * rate if asked[2] == "GBP" else amount / rate  # the fault that is to be found
        return f"{asked[1]} {asked[2]} = {euros:.2f} EUR"

    return [_clerk(), exchange, _example("calculator")]


_DEBATE = (
    "Should Tarn, a town of 30,000 with 20 million to spend, build a tram, a bus lane or a cycle path? Have the three "
    "sides debate, each answering the others once, then vote. Tell the votes and the choice."
)


def _debate() -> Agents:
    sides = {"tram": "a tram", "bus": "a bus lane", "bike": "a cycle path"}
    facts = {
        "tram": "A tram costs 90 million, takes 9 years, carries 4,000 an hour.",
        "bus": "A bus lane costs 6 million, takes 1 year, carries 1,500 an hour.",
        "bike": "A cycle path costs 4 million, takes 1 year, carries 1,200 an hour in summer and 400 in winter.",
    }
    experts = [
        ModelAgent(
            name,
            leads=False,
            description=f"Speaks for {what} in debates about the traffic of a town.",
            examples=[f"argue for {what}"],
            instructions=f"{facts[name]} Argue for {what} with these facts. "
            "When it comes to a vote, vote for what was argued best.",
        )
        for name, what in sides.items()
    ]
    return [_clerk(), *experts, _example("calculator")]


def _sums() -> Agents:
    return [_example("calculator"), _clerk()]


DECIDED = {1: "4 neue Bänke", 2: "keine Steuer", 3: "die Brücke bis Mai", 4: "2 Lehrer", 5: "Markt am Freitag", 6: "ein Brunnen"}


def _minutes() -> Agents:
    minutes = Agent(
        "protokoll",
        leads=False,
        description="Gibt ein Kapitel des Protokolls im Wortlaut wieder, 1 bis 6.",
        examples=["Kapitel 3 des Protokolls", "Kapitel 1 des Protokolls"],
    )

    @minutes.task
    def read(task: str) -> str:
        number = _first_number(task)
        talk = "Die Anwesenden sprachen lange darüber und kamen zu keinem Ergebnis. " * 85
        return f"{talk[: 900 * number]} BESCHLUSS zu {number}: {DECIDED[number]}. {talk[900 * number :]}"

    return [_clerk(), minutes]


def _consent() -> Agents:
    guests = [
        ModelAgent(
            name,
            leads=False,
            description=f"Vote au nom de {name} dans les décisions du groupe.",
            examples=[f"demander le vote de {name}"],
            instructions="Tu es d'accord avec toute proposition qui ne dépasse pas 100 euros.",
        )
        for name in ("anne", "bruno", "chloe")
    ]
    return [_clerk(), *guests]


def _nobody() -> Agents:
    return [_clerk(), _example("calculator"), *(agent for agent in _party() if agent.agent_id in ("venues", "kitchen"))]


GOALS = (
    PlayedGoal(
        "figures",
        GoalOrder(
            goal="Compute the total revenue per region in sales.csv, draw a bar chart of it, and write a report of both. "
            "Which region leads, and by how much?",
            agent=AgentId("chart-maker"),
        ),
        _figures,
        [_EXAMPLES / "data" / "sales.csv"],
        told=["West", "51,937.7"],
        made=["report.html", "bar-chart-of-sum-of-revenue-by-region.png"],
    ),
    PlayedGoal(
        "library",
        GoalOrder(
            goal="Write an article of at most 60 words about the harbour of Tarn and its ferry from the passages of the library. "
            "Have it checked against them, and revised until nothing is wrong."
        ),
        _library,
        told=["1884", "1891"],
        made=["article.md"],
    ),
    PlayedGoal(
        "party",
        GoalOrder(
            goal="Plan a summer party for 60 guests within 3,000 EUR: a hall, and food and drinks. Draw a pie chart of what the "
            "parts cost, and say what is left.",
            max_turns=30,
        ),
        _party,
        told=["Old mill", "2,880"],
        made=["pie.svg"],
    ),
    PlayedGoal(
        "robots",
        GoalOrder(
            goal=f"Have the table move each cube to its own panel. Tell how many joint actions it took.\n{SORT}",
            agent=AgentId("alice"),
            inputs=(InlineInput(name="world.json", text='{"seed": 6}'),),
        ),
        _robots,
        told=["3"],
    ),
    PlayedGoal(
        "expenses",
        GoalOrder(
            goal="Convert the expenses 500 USD, 120 GBP and 8,000 JPY to EUR by the rates in rates.csv, check each, "
            "and give the sum.",
            agent=AgentId("calculator"),
            inputs=(InlineInput(name="rates.csv", text=RATES),),
        ),
        _expenses,
        told=["400", "150", "50", "600"],
    ),
    PlayedGoal(
        "debate",
        GoalOrder(goal=_DEBATE),
        _debate,
        told=["bus", "2"],
    ),
    PlayedGoal(
        "planned_debate",
        GoalOrder(goal=_DEBATE, team=read_toml((_PROMPTS / "planned_debate.toml").read_text("utf-8"))),
        _debate,
        told=["bus", "2"],
        is_measured=False,
    ),
    PlayedGoal(
        "sums",
        GoalOrder(goal="What is 15 % of 240, and what is the square root of 144?", agent=AgentId("calculator")),
        _sums,
        told=["36", "12"],
    ),
    PlayedGoal(
        "nobody",
        GoalOrder(goal="Have the roof of the old mill repaired by a carpenter before Friday."),
        _nobody,
        reason=Reason.NO_AGENT,
    ),
    PlayedGoal(
        "two_turns",
        GoalOrder(
            goal="Compute the total revenue per region in sales.csv, draw a bar chart of it, and write a report of both. "
            "Which region leads, and by how much?",
            agent=AgentId("chart-maker"),
            max_turns=2,
        ),
        _figures,
        [_EXAMPLES / "data" / "sales.csv"],
        told=["West", "51,937.7"],
        made=["report.html"],
        is_measured=False,
        tape="figures",
    ),
    PlayedGoal(
        "minutes",
        GoalOrder(goal="Was wurde in den sechs Kapiteln des Protokolls beschlossen? Nenne jeden Beschluss."),
        _minutes,
        told=[f"BESCHLUSS zu {number}: {what}" for number, what in DECIDED.items()],
        is_measured=False,
    ),
    PlayedGoal(
        "consent",
        GoalOrder(goal="Anne, Bruno et Chloe votent : achetons-nous une lampe à 80 euros ? Puis chacun confirme le résultat."),
        _consent,
        told=["lampe", "3"],
        is_measured=False,
    ),
    PlayedGoal(
        "chinese",
        GoalOrder(goal="240 的 15 % 是多少? 144 的平方根是多少?", agent=AgentId("calculator")),
        _sums,
        told=["36", "12", "平方根"],
        is_measured=False,
    ),
)
