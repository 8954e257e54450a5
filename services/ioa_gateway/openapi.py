"""The OpenAPI 3.1 document, generated from the table of routes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from ioa.distribution import installed_version
from ioa.errors import ForbiddenError, IoaError, RateLimitedError, UnauthenticatedError, UnavailableError, row_of
from ioa_gateway.api_table import PREFIX, TABLE
from ioa_gateway.calls import ApiRow, Nothing
from ioa_gateway.problems import MEDIA_TYPE, Problem, status_of

_Named = Mapping[Any, Mapping[str, Any]]
"""The reference to each model, by the model and its mode: `validation` for requests, `serialization` for responses."""
_REFERENCES = "#/components/schemas/{model}"
_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": _REFERENCES.format(model=Problem.__name__)}}}
_EVERYWHERE: tuple[type[IoaError], ...] = (UnauthenticatedError, ForbiddenError, RateLimitedError, UnavailableError)


@cache
def description() -> str:
    """Describe the gateway, as JSON."""
    taken = {kind for row in TABLE for kind in (row.body, row.query) if kind is not Nothing}
    kinds: list[type[BaseModel]] = [*sorted(taken, key=lambda kind: kind.__name__), Problem]
    told_of = sorted({kind for row in TABLE for kind in row.told.values()}, key=lambda kind: kind.__name__)
    asked: list[tuple[type[BaseModel], JsonSchemaMode]] = [(kind, "validation") for kind in kinds]
    answered: list[tuple[type[BaseModel], JsonSchemaMode]] = [(kind, "serialization") for kind in told_of]
    named, schemas = models_json_schema([*asked, *answered], ref_template=_REFERENCES)
    paths: dict[str, dict[str, Any]] = {}
    for row in TABLE:
        paths.setdefault(PREFIX + row.path, {})[row.method.lower()] = _operation(row, schemas["$defs"], named)
    told = {
        "openapi": "3.1.0",
        "info": {"title": "Internet of Agents", "version": installed_version()},
        "paths": paths,
        "components": {"schemas": schemas["$defs"], "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }
    return json.dumps(told)


def _operation(row: ApiRow, schemas: Mapping[str, Any], named: _Named) -> dict[str, Any]:
    path = [part[1:-1] for part in row.path.split("/") if part.startswith("{")]
    parameters = [_parameter("path", name, {"type": "string"}, required=True) for name in path]
    query = {} if row.query is Nothing else schemas[row.query.__name__]["properties"]
    parameters += [_parameter("query", name, schema) for name, schema in query.items()]
    parameters += [_parameter("header", name, {"type": "string", "description": said}) for name, said in row.headers.items()]
    always = (RateLimitedError, UnavailableError) if not row.scopes else _EVERYWHERE
    told: dict[str, Any] = {
        "summary": row.does,
        "operationId": row.handle.__module__.rpartition(".")[2] + "_" + row.handle.__name__,
        "parameters": parameters,
        "responses": {
            **_answers(row, named),
            **_problems(row.errors, always),
        },
    }
    if row.scopes:
        needed = " and ".join(f"`{scope}`" for scope in row.scopes)
        told |= {
            "security": [{"key": [*row.scopes]}],
            "description": f"Needs the scope{'s' if len(row.scopes) > 1 else ''} {needed}.",
        }
    if row.takes_bytes:
        told["requestBody"] = {"content": {"application/octet-stream": {}}, "required": True}
    if row.body is not Nothing:
        schema = named[row.body, "validation"]
        told["requestBody"] = {"content": {"application/json": {"schema": schema}}, "required": True}
        told["responses"]["413"] = told["responses"]["415"] = {
            "description": "More than may be sent, or no JSON.",
            "content": _PROBLEM,
        }
    return told


def _parameter(where: str, name: str, schema: Mapping[str, Any], *, required: bool = False) -> dict[str, Any]:
    rest = {key: value for key, value in schema.items() if key not in ("description", "title")}
    said = {"description": schema["description"]} if "description" in schema else {}
    return {"name": name, "in": where, "required": required, "schema": rest, **said}


def _answers(row: ApiRow, named: _Named) -> dict[str, Any]:
    plain = {"type": "string"} if row.media_type != "application/json" else {"type": "object"}
    told = dict[str, Any]()
    for status, said in row.answers.items():
        schema = named[row.told[status], "serialization"] if status in row.told else plain
        content = {} if status in (204, 304, 416) else {"content": {row.media_type: {"schema": schema}}}
        told[str(status)] = {"description": said, **content}
    return told


def _problems(errors: Iterable[type[IoaError]], always: Iterable[type[IoaError]]) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for kind in dict.fromkeys((*errors, *always)):
        by_status.setdefault(status_of(kind), []).append(row_of(kind).wire_code)
    return {str(at): {"description": ", ".join(codes), "content": _PROBLEM} for at, codes in sorted(by_status.items())}
