"""What an author writes is checked when it is written, not at the first task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ioa import Agent, TaskContext
from ioa.errors import InvalidInputError


def agent() -> Agent:
    """Make an agent without a function."""
    return Agent("tester", description="Is tested")


def plain(task: str) -> str:
    """Take a task."""
    return task


def with_context(task: str, ctx: TaskContext) -> str:
    """Take a task and its context."""
    return task + ctx.goal


def unannotated(task, ctx=None):  # type: ignore[no-untyped-def]
    """Say nothing of types."""
    return task


def anything(task: str) -> Any:
    """Say that it may return anything."""
    return task


async def awaited(task: str) -> str:
    """Be async."""
    return task


def handing_on(task: str) -> Awaitable[str]:
    """Return an awaitable."""
    return awaited(task)


@pytest.mark.parametrize("function", [plain, with_context, unannotated, anything, awaited, handing_on])
def test_valid_function_is_accepted(function: Callable[..., Any]) -> None:
    """Sync or async, with or without a context, with or without annotations."""
    one = agent()
    one.task(function)
    assert one.function is function


def by_keyword(task: str, *, ctx: TaskContext) -> str:
    """Want the context by its name."""
    return task


def three(task: str, ctx: TaskContext, more: str) -> str:
    """Want more than there is."""
    return task


@pytest.mark.parametrize(
    "function",
    [by_keyword, three, lambda: ""],
)
def test_invalid_function_is_rejected(function: Callable[..., Any]) -> None:
    """The error names the function and what is wrong with it."""
    with pytest.raises(InvalidInputError, match=r".") as caught:
        agent().task(function)
    assert "one argument (task) or two (task, ctx)" in caught.value.message
    assert caught.value.hint


def test_an_agent_has_one_function() -> None:
    """The second one does not take the place of the first in silence."""
    one = agent()
    one.task(plain)
    with pytest.raises(InvalidInputError, match="has the task function plain already"):
        one.task(with_context)
    assert one.function is plain


@pytest.mark.parametrize("listed", ["skills", "examples", "tags"])
def test_a_text_in_the_place_of_a_list_is_refused(listed: str) -> None:
    """It would become a list of letters."""
    with pytest.raises(InvalidInputError, match=f"{listed} is one text") as caught:
        Agent("tester", description="Is tested", **{listed: "say hello"})  # type: ignore[arg-type]
    assert caught.value.hint == f"Write {listed}=['say hello']."
