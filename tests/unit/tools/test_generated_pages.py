"""Generated pages of commands, messages and subjects."""

from __future__ import annotations

import json
import re
from typing import get_args

from ioa.protocol import subjects
from ioa.protocol.messages import Message, Payload
from tools import protocol_page, subjects_page


def test_every_served_pattern_is_documented() -> None:
    """No subject is built in the code that the page does not have."""
    listed = [subject.pattern for subject in subjects_page.documented()]
    patterns = [value for name, value in vars(subjects).items() if name.startswith("ANY_")]
    assert [pattern for pattern in patterns if not any(subjects_page.covers(pattern, subject) for subject in listed)] == []


def test_every_kind_of_message_is_shown_with_its_fields() -> None:
    """What a member can say, and each field of it, is on the page under the name that travels."""
    text = protocol_page.render()
    for kind in get_args(get_args(Payload)[0]):
        section = text.partition(f"### `{kind.model_fields['type'].default}`\n")[2].partition("\n### ")[0]
        assert [name for name in kind.model_fields if name != "type" and f"| `{name}` |" not in section] == []


def test_the_example_of_a_message_is_one() -> None:
    """It can be parsed."""
    shown = re.search(r"```json\n(.*?)```", protocol_page.render(), re.DOTALL)
    assert shown is not None
    assert Message.model_validate(json.loads(shown[1])) == protocol_page.EXAMPLE
