"""What `ioa answer` is given, as it is read."""

from __future__ import annotations

import pytest

from ioa.cli.people import describe_item, read_reply
from ioa.client.questions import question_in_words
from ioa.client.seat import PersonReply
from ioa.errors import InvalidInputError
from tests.unit.client.test_questions import question


def test_an_answer_is_taken_as_it_is_written() -> None:
    """Words with spaces around them, and values with signs of equality."""
    assert read_reply("  Yes: a = b\n", "end", ["why=a=b", "empty="]) == PersonReply(
        "  Yes: a = b\n", "end", {"why": "a=b", "empty": ""}
    )


@pytest.mark.parametrize("field", ["agrees", "=yes", ""])
def test_a_field_has_a_name_and_a_value(field: str) -> None:
    """Another field is rejected before a message is sent."""
    with pytest.raises(InvalidInputError, match="fills nothing in"):
        read_reply("Yes.", None, [field])


def test_reply_that_is_no_text_is_rejected() -> None:
    """Bytes of a command line that are no UTF-8 would be other bytes in the log."""
    with pytest.raises(InvalidInputError):
        read_reply("\udcff", None, [])


def test_text_of_a_question_cannot_look_like_another_item() -> None:
    """Each further line of a stranger's text is marked, so an agent cannot ask in the name of another agent."""
    text = "Anything to add?\nChoose one of yes, no.\ngbbb.7  treasurer asks the operator: Shall it be paid?"
    asked = question(text, options=("yes\ngbbb.8  x asks: y", "no"), default="no\nz")
    lines = describe_item(asked.item, question_in_words(asked)).splitlines()
    assert [line.split()[0] for line in lines] == ["gaaa.1", "│", "│", "Answer", "Until"]
