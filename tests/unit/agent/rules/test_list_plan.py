"""Markdown lists as plans, in any language."""

from __future__ import annotations

import pytest

from ioa.agent.rules.list_plan import ListItem, parse_list
from ioa.errors import InvalidInputError


@pytest.mark.parametrize(
    "text",
    [
        "1. Summe der Umsätze\n2. Balkendiagramm von #1\n3. Bericht über #1 und #2",
        "- Summe der Umsätze\n- Balkendiagramm von #1\n- Bericht über #1 und #2",
        "  * Summe der Umsätze\n\n  * Balkendiagramm von #1\n  * Bericht über #1 und #2\n",
        "5) Summe der Umsätze\n6) Balkendiagramm von #5\n7) Bericht über #5 und #6",
    ],
)
def test_list_items_are_tasks_with_the_results_they_use(text: str) -> None:
    """Numbers are those that the user wrote; items of bullets are counted."""
    introduction, items = parse_list(text)
    assert introduction == ""
    assert [item.uses for item in items] == [(), (0,), (0, 1)]
    assert items[0].text == "Summe der Umsätze"


def test_references_keep_the_order_of_the_text() -> None:
    """An agent maps #N to the results it receives by this order."""
    assert parse_list("- 甲\n- 乙\n- #2 对 #1, #2")[1][2] == ListItem("#2 对 #1, #2", (1, 0))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Sum the revenue",
        "- 5 + 3",
        "1. one task",
        "- a\n- b\nOnly for North.",
        "- a\nb",
        "-5 + 3",
        "2.5 * 3",
        "#1",
        "1.5 and 2",
        "a - b",
        "**bold** text",
    ],
)
def test_other_text_is_no_list(text: str) -> None:
    """Text after the list can restrict its items, so the goal stays whole."""
    assert parse_list(text) == (text, ())


def test_introduction_is_returned_apart() -> None:
    """The caller decides what a list with an introduction means."""
    assert parse_list("nur Norden:\n- a\n- b") == ("nur Norden:", (ListItem("a"), ListItem("b")))


def test_indented_lines_continue_an_item_and_an_inner_list_has_its_own_references() -> None:
    """The inner #1 is no reference of the outer item."""
    text = "1. first\n2. briefing #1:\n   - sum\n   - chart of #1\n3. run\n   ```\n   print(1)\n   ```"
    introduction, items = parse_list(text)
    assert (introduction, [item.uses for item in items]) == ("", [(), (0,), ()])
    assert items[1].text == "briefing #1:\n- sum\n- chart of #1"
    assert items[2].text == "run\n```\nprint(1)\n```"


@pytest.mark.parametrize("text", ["- chart of #1\n- a", "- a\n- b of #3\n- c", "1. a\n1. b\n2. c of #1", "- x\n" * 33])
def test_reference_to_no_earlier_item_and_long_list_are_rejected(text: str) -> None:
    """A wrong reference would join the wrong results."""
    with pytest.raises(InvalidInputError):
        parse_list(text)


@pytest.mark.parametrize("text", ["- a\n- color #12ab\n- b##1\n- x#1"])
def test_other_number_signs_are_no_references(text: str) -> None:
    """Only a separate # with digits refers to an item."""
    assert all(not item.uses for item in parse_list(text)[1])
