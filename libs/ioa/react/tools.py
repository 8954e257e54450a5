"""Tools of a ReAct agent: functions whose types describe their arguments.

pydantic derives the schema from the signature. Invalid arguments are returned to the model; the function gets validated values.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from ioa.agent.task_context import TaskContext
from ioa.errors import InvalidInputError
from ioa.json_text import find_object, parse_json
from ioa.ports.chat_model import Tool
from ioa.protocol.texts import in_words

_CONTEXT = "ctx"
_PREFIX = "of_"
"""Prefix of parameter names in the pydantic class, which reserves some names; the model does not see it."""
_MAX_ERRORS = 3
MAX_NAME_CHARS = 64
_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_NAME_CHARS}}}")
_ARGUMENT = re.compile(r"^\s{0,12}(\w+)(?:\s*\([^)]*\))?:\s*(\S.*)$", re.MULTILINE)
_anything: TypeAdapter[Any] = TypeAdapter(Any)


@dataclass(frozen=True)
class Observation:
    """Result of a tool: a text for the model, and files that are attached to the task's result."""

    text: str
    files: Sequence[Path] = ()


@dataclass(frozen=True)
class Call:
    """A call before it runs.

    Attributes:
        name: Name of the tool.
        arguments: Validated arguments.
        number: 1 for the first call of the task; with the task's id it is an idempotency key.
        earlier: Approved calls of this task, in order.
    """

    name: str
    arguments: Mapping[str, Any]
    number: int
    earlier: Sequence[Call] = field(default=(), repr=False, compare=False)


Guard = Callable[[Call, TaskContext], str | Awaitable[str | None] | None]
"""Checks a call before it runs; a text rejects it."""


@dataclass(frozen=True)
class ReactTool:
    """A tool that a model can call.

    Attributes:
        offered: Name, description and JSON schema of the arguments.
        read: Validates the arguments that the model wrote; raises `InvalidInputError`.
        call: Runs the tool with validated arguments and the task's context; an async tool returns an awaitable.
        guards: Guards of its calls, in order.
    """

    offered: Tool
    read: Callable[[str], dict[str, Any]]
    call: Callable[[dict[str, Any], Any], Any]
    guards: tuple[Guard, ...] = ()

    @property
    def name(self) -> str:
        """Name of the tool."""
        return self.offered.name


def tool(function: Callable[..., Any]) -> ReactTool:
    """Make a tool of a function with types.

    The first part of the docstring is the description; parameters are described under `Args:`, or by `Field(description=…)`. A
    parameter `ctx` receives the task's context, and is not in the schema. A returned text is the result; other values become JSON.
    An `Observation` also has files.

    Raises:
        InvalidInputError: A parameter has no type, or the function accepts any number of arguments.
    """
    name = getattr(function, "__name__", "")
    if not _NAME.fullmatch(name):
        raise InvalidInputError(f"{name!r} is not a valid tool name.", hint="Use a function with a name of letters, digits and _.")
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
            raise InvalidInputError(f"{name}: the parameter {one.name} has no type.", hint="Annotate each parameter.")
        default = ... if one.default is one.empty else one.default
        fields[_PREFIX + one.name] = (types[one.name], Field(default, alias=one.name, description=described.get(one.name)))
    shape = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)

    def call(arguments: dict[str, Any], ctx: Any) -> Any:
        return function(**arguments, **({_CONTEXT: ctx} if _CONTEXT in parameters else {}))

    return ReactTool(Tool(name, about, shape.model_json_schema()), partial(_read, shape), call)


def parse_arguments(name: str, written: str) -> dict[str, Any]:
    """Parse the JSON object of a call, also if the model encoded it twice or put it into a Markdown fence.

    Raises:
        InvalidInputError: There is no JSON object.
    """
    try:
        value = parse_json(written or "{}")
        value = parse_json(value) if isinstance(value, str) else value
    except ValueError:
        value = find_object(written)
    if not isinstance(value, dict):
        raise InvalidInputError(f"{name} cannot take these arguments: they are no JSON object.")
    return value


def _read(shape: type[BaseModel], written: str) -> dict[str, Any]:
    arguments = json.dumps(parse_arguments(shape.__name__, written))
    try:
        read = shape.model_validate_json(arguments)
    except ValidationError as error:
        problems = in_words(error, "arguments", most=_MAX_ERRORS)
        raise InvalidInputError(f"{shape.__name__} cannot take these arguments: {problems}.") from None
    return {name.removeprefix(_PREFIX): getattr(read, name) for name in read.model_fields_set}


def _documented(text: str) -> tuple[str, dict[str, str]]:
    """Return the description and the parameters' descriptions of a Google-style docstring."""
    about, _, rest = text.partition("\nArgs:\n")
    section = re.split(r"\n(?=\S)", rest, maxsplit=1)[0]
    return re.split(r"\n(?:Returns|Raises|Yields):\n", about)[0].strip(), dict(_ARGUMENT.findall(section))


def as_observation(value: object) -> Observation:
    """Convert a tool's result."""
    if isinstance(value, Observation):
        return value
    return Observation(value if isinstance(value, str) else _anything.dump_json(value, fallback=str).decode())


def check_names(tools: Sequence[ReactTool]) -> None:
    """Check that tool names are unique.

    Raises:
        InvalidInputError: Two tools have the same name.
    """
    names = [one.name for one in tools]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInputError(f"There are two tools called {', '.join(twice)}.", hint="Rename one of each.")
