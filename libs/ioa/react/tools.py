"""Tools of a ReAct agent: plain functions whose types say which arguments they take.

The schema is made by pydantic from the signature. Arguments that do not fit are told to the model, not raised; the function gets
validated values.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from ioa.agent.definition import TaskContext
from ioa.errors import InvalidInputError
from ioa.json_text import MAX_VALUES, parse_json, values_in
from ioa.ports.chat_model import Tool
from ioa.protocol.validation_errors import problems_of

_CONTEXT = "ctx"
_PREFIX = "of_"
"""Before the names of parameters, so that none of them is a name that pydantic has taken; the model sees them as they are."""
_MOST_ERRORS = 3
MAX_NAME_CHARS = 64
_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_NAME_CHARS}}}")
_ARGUMENT = re.compile(r"^\s{0,12}(\w+)(?:\s*\([^)]*\))?:\s*(\S.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Observation:
    """What a tool brings besides text: files that belong to the task's result."""

    text: str
    files: Sequence[Path] = ()


@dataclass(frozen=True)
class Call:
    """A call that a guard looks at before it is run.

    Attributes:
        name: Of the tool.
        arguments: As they were validated.
        number: 1 for the first call of the task; with the task's id it is an idempotency key.
        earlier: The calls of this task that were approved before, in order.
        schema: What the arguments have to fit, of a tool that leaves it to its server to see that they do; else None.
    """

    name: str
    arguments: Mapping[str, Any]
    number: int
    earlier: Sequence[Call] = field(default=(), repr=False, compare=False)
    schema: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)


Guard = Callable[[Call, TaskContext], str | Awaitable[str | None] | None]
"""Looks at a call before it is run; a text refuses it."""


@dataclass(frozen=True, eq=False)
class Guarding:
    """A guard, and how often calls that it has refused may be mended within one task; None: as often as there are steps."""

    guard: Guard
    retries: int | None = None


@dataclass(frozen=True)
class ReactTool:
    """A function that a model may ask for.

    Attributes:
        offered: Its name, description and arguments, as the model is told.
        read: Validates what the model wrote; raises `InvalidInputError` of what does not fit.
        parallel: Whether it may run beside others that are asked for in the same answer.
        guards: Who looks at its calls, in order.
        is_checked: Whether `read` holds the arguments to what is offered; else its server does.
    """

    function: Callable[..., Any]
    offered: Tool
    read: Callable[[str], dict[str, Any]]
    takes_context: bool
    parallel: bool = False
    guards: tuple[Guarding, ...] = ()
    is_checked: bool = True

    @property
    def name(self) -> str:
        """What the model calls it."""
        return self.offered.name

    def call(self, arguments: dict[str, Any], ctx: object) -> Any:
        """Call the function; what an async one returns is to be awaited."""
        return self.function(**arguments, **({_CONTEXT: ctx} if self.takes_context else {}))


@overload
def tool(function: Callable[..., Any]) -> ReactTool: ...
@overload
def tool(*, parallel: bool = ...) -> Callable[[Callable[..., Any]], ReactTool]: ...
def tool(
    function: Callable[..., Any] | None = None, *, parallel: bool = False
) -> ReactTool | Callable[[Callable[..., Any]], ReactTool]:
    """Make a tool of a function with types: `@tool`, or `@tool(parallel=True)` for one that may run beside others.

    The first part of its docstring is its description; its parameters are described under `Args:`, or by `Field(description=…)`. A
    parameter `ctx` gets the task's context, and is not shown to the model. Text that it returns is shown as it is, an `Observation`
    with its files, and anything else as JSON.

    Raises:
        InvalidInputError: A parameter has no type, or the function takes any number of arguments.
    """
    if function is None:
        return partial(_make, parallel=parallel)
    return _make(function, parallel=parallel)


def _make(function: Callable[..., Any], *, parallel: bool) -> ReactTool:
    name = getattr(function, "__name__", "")
    if not _NAME.fullmatch(name):
        raise InvalidInputError(f"{name!r} is no name of a tool.", hint="Use a function with a name of letters, digits and _.")
    try:
        types = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise InvalidInputError(f"The types of {name} cannot be read: {error}.") from None
    about, described = _documented(inspect.getdoc(function) or name)
    fields: dict[str, Any] = {}
    parameters = inspect.signature(function).parameters
    for one in parameters.values():
        if one.name == _CONTEXT:
            continue
        if one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY) or one.name not in types:
            raise InvalidInputError(
                f"{name}: the parameter {one.name} has no type that a model can be told.", hint="Annotate each one."
            )
        default = ... if one.default is one.empty else one.default
        told = Field(default, alias=one.name, description=described.get(one.name))
        fields[_PREFIX + one.name] = (types[one.name], told)
    arguments = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    offered = Tool(name, about, arguments.model_json_schema())
    return ReactTool(function, offered, partial(_read, arguments), _CONTEXT in parameters, parallel)


def _read(arguments: type[BaseModel], written: str) -> dict[str, Any]:
    """Validate what the model wrote.

    Raises:
        InvalidInputError: It does not fit; the first three errors are told.
    """
    with suppress(ValueError):  # what is no JSON is told of below
        if values_in(parse_json(written or "{}"), MAX_VALUES) > MAX_VALUES:
            raise InvalidInputError(f"{arguments.__name__} cannot take these arguments: they have more than {MAX_VALUES:,} values.")
    try:
        read = arguments.model_validate_json(written or "{}")
    except ValidationError as error:
        told = "; ".join(f"{where or 'arguments'}: {why}" for where, why in problems_of(error)[:_MOST_ERRORS])
        raise InvalidInputError(f"{arguments.__name__} cannot take these arguments: {told}.") from None
    return {name.removeprefix(_PREFIX): getattr(read, name) for name in read.model_fields_set}


def _documented(text: str) -> tuple[str, dict[str, str]]:
    """Take the description, and those of the parameters, out of a docstring of Google's style."""
    about, _, rest = text.partition("\nArgs:\n")
    section = re.split(r"\n(?=\S)", rest, maxsplit=1)[0]
    return re.split(r"\n(?:Returns|Raises|Yields):\n", about)[0].strip(), dict(_ARGUMENT.findall(section))


def as_observation(value: object) -> Observation:
    """Make of what a tool returned what the model is shown."""
    if isinstance(value, Observation):
        return value
    if isinstance(value, str):
        return Observation(value)
    return Observation(_ANYTHING.dump_json(value, fallback=str).decode())


_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)


def check_names(tools: Sequence[ReactTool]) -> None:
    """Check that no two tools go by one name.

    Raises:
        InvalidInputError: Two do.
    """
    names = [one.name for one in tools]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInputError(f"There are two tools called {', '.join(twice)}.", hint="Rename one of each.")
