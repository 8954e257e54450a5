"""What every value that travels is: here, that a copy is pydantic's."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from ioa.protocol.model import Model
from tests.unit.group.scenario import launched

_STATE = launched("ada", "bob").announces("ada").state


@pytest.mark.parametrize("update", [None, {}, {"turn": 7}, {"tasks": (), "nothing of ours": 1}])
@pytest.mark.parametrize("deep", [False, True])
def test_a_copy_is_the_one_that_pydantic_makes(update: dict[str, Any] | None, *, deep: bool) -> None:
    """With the same fields, those that were set, and what pydantic keeps beside them."""
    copied, theirs = _STATE.model_copy(update=update, deep=deep), BaseModel.model_copy(_STATE, update=update, deep=deep)
    for kept in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"):
        assert getattr(copied, kept) == getattr(theirs, kept), kept
    assert list(copied.__dict__) == list(theirs.__dict__)
    assert (copied.members is _STATE.members, copied.model_fields_set is _STATE.model_fields_set) == (not deep, False)


def test_no_value_keeps_more_than_its_fields() -> None:
    """What a copy would leave out."""

    def kinds(of: type[Model]) -> list[type[Model]]:
        return [of, *(found for one in of.__subclasses__() for found in kinds(one))]

    assert [one for one in kinds(Model) if one.__private_attributes__ or one.model_config.get("extra") == "allow"] == []
