"""Tests of how `ioa agent run` reads as whom to join."""

from __future__ import annotations

import pytest

from ioa.cli.joining import listed, numbers
from ioa.errors import InvalidInputError


def test_an_agent_joins_as_itself_unless_told_otherwise() -> None:
    """Without options an agent keeps its own id."""
    assert numbers(None, None) == [None]


def test_one_replica_joins_under_its_number() -> None:
    """`--replica` names one."""
    assert numbers(2, None) == [2]


def test_several_replicas_are_numbered_from_zero() -> None:
    """`--replicas` counts."""
    assert list(numbers(None, 3)) == [0, 1, 2]


def test_one_and_several_contradict_each_other() -> None:
    """Who gives both options is told to choose."""
    with pytest.raises(InvalidInputError, match="one, --replicas as several") as caught:
        numbers(1, 3)

    assert caught.value.hint == "Give one or the other."


def test_of_many_names_a_few_are_shown() -> None:
    """A thousand agents do not fill the screen."""
    assert listed(list("abcdefg")) == "a, b, c, d, e and 2 more"
