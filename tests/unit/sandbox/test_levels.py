"""Which level is taken."""

from __future__ import annotations

import pytest

from ioa.errors import InvalidInputError, MissingExtraError
from ioa.sandbox.levels import Level, choose

NO_BWRAP, NO_LANDLOCK = "bubblewrap is missing", "this kernel has no Landlock"


@pytest.mark.parametrize(
    ("setting", "failures", "taken"),
    [
        ("auto", {}, Level.BWRAP),
        ("auto", {Level.BWRAP: NO_BWRAP}, Level.LANDLOCK),
        ("landlock", {}, Level.LANDLOCK),
        ("none", {Level.NONE: "it stops nothing"}, Level.NONE),
    ],
)
def test_taken(setting: str, failures: dict[Level, str], taken: Level) -> None:
    """The strictest level that holds is taken, or the one that is asked for."""
    assert choose(setting, lambda level: failures.get(level, "")) == taken


def test_refused() -> None:
    """Without a sandbox nothing is run unless somebody says so: `auto` ends in a refusal that says why and what to do."""
    failures = {Level.BWRAP: NO_BWRAP, Level.LANDLOCK: NO_LANDLOCK}
    with pytest.raises(MissingExtraError) as error:
        choose("auto", failures.__getitem__)
    assert str(error.value) == (
        "No sandbox: bubblewrap is missing and this kernel has no Landlock. Install bubblewrap, or set IOA_SANDBOX=none."
    )
    with pytest.raises(MissingExtraError, match="No sandbox: this kernel has no Landlock"):
        choose("landlock", failures.__getitem__)


def test_misspelt() -> None:
    """A level that is none is refused with those there are."""
    with pytest.raises(InvalidInputError, match="IOA_SANDBOX: 'bubblewrap' is none of auto, none, landlock, bwrap"):
        choose("bubblewrap", lambda level: "")
