"""How goals are split into needs: a corpus of sentences, and what holds for any text."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ioa.agent.rules.listed_parts import parts_of
from ioa.agent.rules.text.goal_splitting import MAX_NEEDS_OF_A_GOAL, split_goal
from tests.unit.agent.rules.goal_corpus import EXAMPLES, Example


@pytest.mark.parametrize("goal", EXAMPLES, ids=lambda example: example.goal[:60])
def test_a_goal_is_split_as_a_reader_would_or_not_at_all(goal: Example) -> None:
    """Each need uses exactly the earlier ones that it builds on, and says what the goal says."""
    needs = split_goal(goal.goal)
    assert len(needs) == 1 or tuple(need.uses for need in needs) == goal.uses, needs
    assert [need.text for need in needs if not all(word in f"{goal.goal} in" for word in need.text.split())] == []


@pytest.mark.parametrize(
    ("goal", "needs"),
    [
        (
            "Compute the total revenue per region in sales.csv, make a bar chart of it, and write a report of both",
            [
                ("Compute the total revenue per region in sales.csv", ()),
                ("make a bar chart of it", (0,)),
                ("write a report of both", (0, 1)),
            ],
        ),
        ("- 5 + 8", [("- 5 + 8", ())]),
        ("- 5 + 8\n- 2 + 3", [("5 + 8", ()), ("2 + 3", ())]),
        ("How much is 17 + 25, and is it prime?", [("How much is 17 + 25", ()), ("is it prime?", (0,))]),
        (
            "Here are a.csv and b.csv. Compute the total n in a.csv, compute the total m in b.csv and write a report of both",
            [("Compute the total n in a.csv", ()), ("compute the total m in b.csv", ()), ("write a report of both", (0, 1))],
        ),
        ("Read page.html and summarise it", [("Read page.html", ()), ("summarise it", (0,))]),
        ("Maximum votes in v.csv. Divide it by 4.", [("Maximum votes in v.csv", ()), ("Divide it by 4", (0,))]),
        (
            "For sales.csv:\n- total revenue per region\n- a bar chart of it\n- a report",
            [("total revenue per region in sales.csv", ()), ("a bar chart of it", (0,)), ("a report", (0, 1))],
        ),
        ("What is 5+5? And 6*7?", [("What is 5+5?", ()), ("6*7?", ())]),
        (
            "- count the words\n- how many lines\nThe file is a.txt.",
            [("count the words in a.txt", ()), ("how many lines in a.txt", ())],
        ),
        ("run a.py and tell me the output", [("run a.py", ())]),
        ("Hello! Could you please summarise notes.txt? Thank you!", [("summarise notes.txt?", ())]),
    ],
)
def test_what_the_page_says_is_understood(goal: str, needs: list[tuple[str, tuple[int, ...]]]) -> None:
    """The goals that docs/goals.md is about."""
    assert [(need.text, need.uses) for need in split_goal(goal)] == needs


@pytest.mark.parametrize(
    "goal",
    [
        "Summarise notes.txt and translate it into German",
        "Count the words in notes.txt and list the key phrases in it",
        "Summarise notes.txt. Count its sentences.",
        "I have two files, one.csv and two.csv. Merge them by id and count what is only in the first.",
        "Which customers bought a lamp and returned it?",
        "Draw a bar chart of total revenue and total units",
        "Compute the total revenue. Show only the best three.",
        "For a.txt:\n- count the words\n- count the lines\nUse b.txt",
    ],
)
def test_what_is_not_certain_leaves_a_goal_whole(goal: str) -> None:
    """What a word refers to, or what a verb depends on, is not decided for the user."""
    assert [need.text for need in split_goal(goal)] in ([goal], [goal.rstrip(".")])


_PHRASES = (
    "compute the total sales per region in sales.csv",
    "summarise notes.txt",
    "what is 15% of 240",
    "chart it",
    "make a bar chart of it",
    "write a report of both",
    "count its words",
    'translate "a, then b; and c." to French',
    "fetch https://example.com/a?b=1,2",
    "the mean of 3.25 and 1,000.5",
    "load data/raw-1.json",
    "a short report",
    "please find the top 3 products",
    "e.g. shoes",
    "here is our file orders.csv",
    "(see costs.xlsx, page 2)",
    "run `x = 1; print(x)`",
    "it should be short",
    "include 12 items",
    "thanks",
    "using readme.md",
    "which region sold most",
    "round it to 2 decimals",
    "based on these",
    "the following:",
    "with A, B and C",
    "finally",
    "hello",
    "is it over 9000?",
    "'single quoted, text'",
    "1.",
    "2)",
    "- item",
    "both",
    "and",
    "then 7",
)
_JOINTS = (
    " and ",
    ", ",
    ", then ",
    ". ",
    "; ",
    "\n",
    "\n- ",
    "\n2. ",
    " as well as ",
    ", and ",
    "? ",
    " — ",
    ": ",
    " ",
    ". After that, ",
    " before ",
)

goals = st.lists(st.tuples(st.sampled_from(_PHRASES), st.sampled_from(_JOINTS)), min_size=1, max_size=9).map(
    lambda pairs: "".join(phrase + joint for phrase, joint in pairs)
)
_NAMES = re.compile(
    r"https?://[^\s,;:]+[^\s.,;:?]|\b[\w/-]+\.(?:csv|txt|json|xlsx|md)\b|\"[^\"]*\"|`[^`]*`|\b\d+(?:[.,]\d+)*%?(?![.)]\s)"
)


@settings(max_examples=150, deadline=None)
@given(goals)
@example("1. summarise notes.txt\n2) count its words\nwhat is 15% of 240")
@example("here is our file orders.csv. thanks")
@example("using readme.md, (see costs.xlsx, page 2): compute the total sales in sales.csv")
def test_nothing_that_is_named_gets_lost(goal: str) -> None:
    """Each file name, address, number and quotation of the goal is in some need."""
    text = "\n".join(need.text for need in split_goal(goal))
    assert [name for name in _NAMES.findall(_without_numbering(goal)) if name not in text] == []


def _without_numbering(goal: str) -> str:
    """A list's own numbers are no part of what it asks."""
    return re.sub(r"(?:^|(?<=[\s:;,.]))(?:\d\.|\d\))(?=\s|$|[,.;:?])", " ", goal)


@settings(max_examples=100, deadline=None)
@given(st.one_of(goals, st.text(min_size=1, max_size=400)))
def test_dependencies_point_backwards(goal: str) -> None:
    """Any text gives one to eight needs with words in them, and each uses only earlier ones."""
    assume(goal.strip())
    needs = split_goal(goal)
    assert 1 <= len(needs) <= MAX_NEEDS_OF_A_GOAL
    assert all(need.text.strip() for need in needs)
    assert all(use < position for position, need in enumerate(needs) for use in need.uses)


@settings(max_examples=100, deadline=None)
@given(goals)
def test_a_single_need_stays_single(goal: str) -> None:
    """What was found to be one need is one need again, in the same words."""
    needs = split_goal(goal)
    assume(len(needs) == 1)
    assert needs[0].text == split_goal(needs[0].text)[0].text


@pytest.mark.parametrize("goal", EXAMPLES, ids=lambda example: example.goal[:60])
def test_a_need_is_not_split_again(goal: Example) -> None:
    """An assignee that looks for parts in a need of a goal finds none, so that teams do not nest without end."""
    assert [need.text for need in split_goal(goal.goal) if len(split_goal(need.text)) > 1] == []


@pytest.mark.parametrize(
    ("goal", "needs"),
    [
        ("Here is x.csv. What is 15 % of 240? What is the total fee?", ["What is 15 % of 240?", "What is the total fee?"]),
        ("Here is our data file `x.csv`. Total fee.", ["Total fee"]),
        ("Here is x.csv. Here is y.csv. Total fee.", ["Total fee in x.csv and y.csv"]),
        ("Here is z.csv. Total fee.", ["Total fee in z.csv"]),
        ("Using x.csv, convert 12 miles to km", ["convert 12 miles to km in x.csv"]),
        ("Compute the following for x.csv:\n- total fee\n- total cost", ["total fee in x.csv", "total cost in x.csv"]),
    ],
)
def test_a_file_that_all_see_is_told_to_nobody(goal: str, needs: list[str]) -> None:
    """What is shown is stuck onto no request, which may have nothing to do with it; another file, or what one is for, is said."""
    assert [need.text for need in split_goal(goal, ["x.csv"])] == needs


def test_a_document_that_lists_its_parts_is_taken_apart() -> None:
    """Each part is told with the file that the document is on."""
    parts = parts_of("Prepare a full briefing on sales.csv: total units per region, a pie chart of it and a report")
    assert [(part.text, part.uses) for part in parts] == [
        ("total units per region in sales.csv", ()),
        ("a pie chart of it", (0,)),
        ("a report", (0, 1)),
    ]


@pytest.mark.parametrize(
    "goal",
    [
        "In Europe: count the customers; count the orders",
        "For each region in sales.csv: sum revenue and chart it",
        "Count the words of a.txt. Among the long ones:\n- list the first\n- list the last",
        "List the cities in towns.csv. Leave out those without a river.",
        "For each file in x.csv, y.csv and z.csv, count the rows",
        "Of the 40 songs in songs.csv, how many last longer than 3 minutes but less than 5?",
        "Here is till.csv where stall is North. Total takings.",
        "Here is a.txt, not b.txt. How many words?",
        "Here is the North list, till.csv. Total takings.",
        'For "North" in till.csv:\n- total takings\n- total guests',
        "Show of the north:\n- total takings\n- total guests",
    ],
)
def test_goal_with_a_restriction_of_all_requests_stays_whole(goal: str) -> None:
    """No part loses the restriction, which may occur before the requests, after them or next to a file."""
    assert [need.text for need in split_goal(goal)] == [goal]
