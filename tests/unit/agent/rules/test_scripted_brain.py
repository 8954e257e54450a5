"""The scripted brain of authors' tests."""

from __future__ import annotations

import pytest

from ioa.errors import InvalidInputError
from ioa.testing.scripted_brain import ScriptedBrain
from tests.unit.agent.rules.test_teams import found, mission


async def test_empty_script_raises_an_error_with_the_call() -> None:
    """An answer that is not in the script is an error of the test's author."""
    with pytest.raises(InvalidInputError) as caught:
        await ScriptedBrain().form_team(mission("one"), found())
    assert "form_team" in str(caught.value)
