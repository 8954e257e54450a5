"""How many requests of one caller group setup works on at once."""

from __future__ import annotations

from unittest.mock import MagicMock

from ioa_groups.__main__ import _endpoints

_LITTLE = {"set_aside", "memberships", "standing", "put_team", "cancel_by_admin", "answer_by_admin"}
"""What reads nothing large, or only an admin asks."""


def test_of_one_caller_few_requests_are_worked_on_that_read_what_may_be_large() -> None:
    """A goal's record may have half a megabyte: of forty read at once it was more than a connection may be sent."""
    asked = [one for one in _endpoints(MagicMock(), MagicMock(), MagicMock()) if one.caller_at is not None]
    assert {one.name for one in asked if (one.caller_max_concurrent or 64) > 2} == _LITTLE
