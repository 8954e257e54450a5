"""Questions that leave a group's own discussion: to the user of its goal, to who gave out a task, to the group that a team serves.

Each has a default, which stands when nobody has answered in time, so that no question keeps a group for ever.
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
    """What is asked, and what stands if nobody answers.

    Attributes:
        text: The question.
        options: What may be answered; empty: any text of up to 2,000 characters.
        default: What stands at `until`.
        until: When it is too late to answer.
    """

    text: Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARS)]
    options: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=MAX_OPTION_CHARS)], ...], Field(max_length=MAX_OPTIONS)
    ] = ()
    default: Answer
    until: Time

    def fault(self, at: datetime, latest: datetime) -> str:
        """Say why it cannot be asked at a time, by something that ends at `latest`; empty if it can."""
        if len(set(self.options)) < len(self.options):
            return "it has an option twice"
        if self.options and self.default not in self.options:
            return f"its default {self.default!r} is none of its options"
        if not at < self.until <= latest:
            ends = f"{latest:%Y-%m-%d %H:%M:%S} UTC"
            return f"it waits until {self.until:%Y-%m-%d %H:%M:%S} UTC, which has to lie ahead, and no later than {ends}"
        return ""

    def takes(self, answer: str) -> bool:
        """Whether something is an answer to it."""
        return not self.options or answer in self.options
