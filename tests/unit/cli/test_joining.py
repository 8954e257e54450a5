"""The replicas that `ioa agent run` joins."""

from __future__ import annotations

import pytest

from ioa.cli.joining import replica_numbers
from ioa.errors import InvalidInputError


def test_options_name_the_replicas_to_join() -> None:
    """Without options an agent keeps its own id; `--replica` names one replica, and `--replicas` counts from 0."""
    assert [list(replica_numbers(*one)) for one in ((None, None), (2, None), (None, 3))] == [[None], [2], [0, 1, 2]]
    with pytest.raises(InvalidInputError, match="one, --replicas as several"):
        replica_numbers(1, 3)
