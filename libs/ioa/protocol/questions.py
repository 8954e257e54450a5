"""Questions to the user of a goal, to the assigner of a task, or to the parent of a nested group.

Each has a default, which counts after its time, so that no question stops a group.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from ioa.protocol.model import Model, Time

MAX_QUESTION_CHARS = 2_000
MAX_OPTIONS = 16
MAX_OPTION_CHARS = 200

Answer = Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARS)]
AnswerKey = Annotated[str, Field(max_length=64)]


class Question(Model):
    """A question with its default.

    Attributes:
        text: The question.
        options: The possible answers; empty: any text of up to 2,000 characters.
        default: The answer that counts at `until`.
        until: Time until which it can be answered.
    """

    text: Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARS)]
    options: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=MAX_OPTION_CHARS)], ...], Field(max_length=MAX_OPTIONS)
    ] = ()
    default: Answer
    until: Time

    def fault(self, at: datetime, latest: datetime) -> str:
        """Return why it cannot be asked at a time, in a group that ends at `latest`; empty if it can."""
        if len(set(self.options)) < len(self.options):
            return "it has an option twice"
        if self.options and self.default not in self.options:
            return f"its default {self.default!r} is none of its options"
        if not at < self.until <= latest:
            ends = f"{latest:%Y-%m-%d %H:%M:%S} UTC"
            return f"it waits until {self.until:%Y-%m-%d %H:%M:%S} UTC, which must be in the future and not after {ends}"
        return ""

    def takes(self, answer: str) -> bool:
        """Whether a text is a possible answer."""
        return not self.options or answer in self.options
