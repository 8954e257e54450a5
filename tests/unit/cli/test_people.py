"""What `ioa answer` is given, as it is read."""

from __future__ import annotations

import pytest

from ioa.cli.people import read_reply
from ioa.client.seat import PersonReply
from ioa.errors import InvalidInputError


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
