"""Whatever stands in a query, a body, a path or a header of a request by HTTP, it is read, or refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.datastructures import QueryParams
from starlette.requests import Request

from ioa.errors import Fault, InvalidInputError, IoaError, row_of
from ioa.protocol.model import Model
from ioa_gateway.api_table import TABLE
from ioa_gateway.app import _query
from ioa_gateway.calls import ApiCall, Nothing
from ioa_gateway.routes.files import _range
from ioa_gateway.routes.goals import MAX_SEQUENCE, sequence_in
from ioa_gateway.routes.groups import last_event_id
from tests.unit.extremes.places import EXTREMES, Whole, spelt
from tests.unit.growth.readers import bodies
from tests.unit.growth.shapes import Shape
from tests.unit.growth.sweep import TOLD
from tests.unit.growth.teams import team_file

_TEXTS = tuple(dict.fromkeys(one if isinstance(one, str) else f"{one}" for one in EXTREMES))
_TEAM = team_file([{"name": "n", "roles": ["a"]}], 0)
_PLACES = ("-0", "+1", "1_0", " 1", "0x1", "1.0", "1e3", "٣", "²", "9" * 16, "9" * 17, "9" * 5_000, "0" * 5_000)


@pytest.mark.parametrize("kind", dict.fromkeys(row.query for row in TABLE if row.query is not Nothing))
def test_whatever_a_query_says_it_is_read_or_refused(kind: type[Model]) -> None:
    """Nothing else comes of any parameter."""
    for name in (*kind.model_fields, "unknown"):
        for text in (*_TEXTS, *_PLACES):
            request = SimpleNamespace(query_params=QueryParams([(name, text), (name, text)]))
            try:
                found = _query(kind, cast(Request, request))
            except InvalidInputError:
                continue
            json.dumps(found.model_dump(mode="json"), allow_nan=False)


@pytest.mark.parametrize("route", bodies())
def test_whatever_stands_in_a_body_it_is_read_or_refused(route: str) -> None:
    """What is refused is whose fault it is that sent it."""
    kind, read = bodies()[route]
    count = 0
    for place, body in _bodies(kind):
        try:
            read(body)
        except IoaError as error:
            assert row_of(error).fault is Fault.CALLER, place
        except Exception as error:
            error.add_note(place)
            raise
        else:
            count += 1
    assert count


def _bodies(kind: type[Any]) -> Iterator[tuple[str, bytes]]:
    told = TOLD.get(kind.__name__)
    for shape in (Shape(kind, told), Whole(kind, told)):
        yield from spelt(shape.least() if kind.__name__ != "TeamBody" else {**_TEAM, "max_turns": 1})


@pytest.mark.parametrize("text", (*_TEXTS, *_PLACES))
def test_numbers_in_paths_and_headers_are_read_or_refused(text: str) -> None:
    """A sequence is one that JSON can tell, and a range lies within the file."""
    found = sequence_in(text)
    assert found is None or 0 <= found <= MAX_SEQUENCE
    try:
        assert last_event_id(cast(ApiCall, SimpleNamespace(headers={"Last-Event-ID": text}))) == found
    except InvalidInputError:
        assert found is None
    for asked in (text, f"bytes={text}-", f"bytes=-{text}", f"bytes=0-{text}", f"bytes={text}-{text}", f"bytes=1-2,{text}-"):
        for size in (0, 1, 10**15):
            part = _range(asked, size)
            assert part is None or not part or (0 <= part.start < part.stop <= size)
