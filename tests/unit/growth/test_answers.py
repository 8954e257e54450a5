"""What a model's server answers is not checked value by value where it is nothing but values: a million mistakes took 690 MB."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel, ValidationError

from ioa.adapters.openai.completion import _Completion
from ioa.agent.model.answers import Speech
from ioa.agent.model.dialogue import read_answer
from ioa.errors import InvalidInputError
from ioa.react import tool

MANY = [0] * 100_000


@tool
def add(numbers: list[str]) -> str:
    """Add numbers."""
    return "".join(numbers)


class Sums(BaseModel):
    """What an author has a model answer."""

    of: list[str]


def test_an_answer_of_nothing_but_values_is_not_checked_one_by_one() -> None:
    """Neither in a discussion nor for an author's own form; the model is told why."""
    said = {"thought": "", "decision": {"type": "ASSIGN", "mode": "wait", "tasks": MANY}}
    told = (None, "it holds more than 50,000 values.")
    assert (read_answer(json.dumps(said), Speech), read_answer(json.dumps({"of": MANY}), Sums)) == (told, told)


def test_arguments_of_nothing_but_values_are_not_checked_one_by_one() -> None:
    """The model that calls a tool is told so, as it is of other mistakes."""
    with pytest.raises(InvalidInputError, match="add cannot take these arguments: they have more than 50,000 values"):
        add.read(json.dumps({"numbers": MANY}))


def test_of_a_completion_one_mistake_is_looked_at() -> None:
    """Nobody is told of the others."""
    with pytest.raises(ValidationError) as error:
        _Completion.model_validate_json(json.dumps({"choices": MANY}))
    assert error.value.error_count() == 1
