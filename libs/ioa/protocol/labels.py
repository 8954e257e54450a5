"""Labels of goals: names with values, by which users find their goals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from ioa.errors import InvalidInputError
from ioa.protocol.ids import check_token
from ioa.protocol.model import OMITTED_IF_EMPTY

MAX_LABELS, MAX_LABEL_CHARS = 16, 200

PROBE = "ioa-probe"
"""Marks a probe: a goal that is offered to no agent and ends at its deadline. Metrics do not count it."""

CONVERSATIONS = ("a2a-context", "a2a-message", "agui-thread")
"""Labels that name the conversation of a goal. They grant no access, so no key may have one."""

RERUN_OF = "rerun-of"
"""Label of a rerun: the id of the earlier goal, as `USER/ID` if users are known."""

RESERVED = ("owner", *CONVERSATIONS, PROBE, RERUN_OF)
"""Labels that only the client library and the gateway set: a goal's owner, conversation and earlier run, and probes."""

Labels = Annotated[
    dict[Annotated[str, AfterValidator(check_token)], Annotated[str, Field(max_length=MAX_LABEL_CHARS)]],
    Field(max_length=MAX_LABELS),
    OMITTED_IF_EMPTY,
]
"""At most 16; a name is an id as others are, a value any text of at most 200 characters. Not written where there are none."""


def read_labels(written: Iterable[str]) -> dict[str, str]:
    """Read labels as people write them, `name=value` each.

    Raises:
        InvalidInputError: A label has another form, or occurs twice.
    """
    labels: dict[str, str] = {}
    for one in written:
        name, equals, value = one.partition("=")
        if not equals or name in labels:
            raise InvalidInputError(f"{one[:80]!r} is no label of its own.", hint="Write each as name=value, and each name once.")
        labels[name] = value
    return labels


def refuse_reserved(labels: Iterable[str]) -> None:
    """Reject labels that only the system sets.

    Raises:
        InvalidInputError: One is reserved.
    """
    for name in labels:
        if name in RESERVED:
            raise InvalidInputError(f"The label {name} is the system's to set.", hint="Choose another name.")


def bears(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether these are among the labels, with these values."""
    return wanted.items() <= labels.items()
