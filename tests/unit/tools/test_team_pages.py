"""The teams on the pages can be read, pass the checker and come to an end; the tutorial's is run by the agents on its page."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from ioa.client.rehearsal import read_script, rehearse
from ioa.protocol.teams.team_file import read_toml
from tests.packaging.readme_session import blocks_of

DOCS = Path(__file__).parents[3] / "docs"


def page_blocks(page: str, kind: str) -> list[str]:
    """Return the blocks of a kind on a page."""
    return [
        block.body for block in blocks_of((DOCS / page).read_text(encoding="utf-8"), also=("yaml", "toml")) if block.kind == kind
    ]


PAGES = ("from-other-systems.md", "teams-tutorial.md", "teams.md")
TEAMS = [(page, text) for page in PAGES for text in page_blocks(page, "toml") if "[[nodes]]" in text]


@pytest.mark.parametrize(("page", "text"), TEAMS)
def test_a_team_on_a_page_is_one(page: str, text: str) -> None:
    """Without an error, and without anything that the checker would warn of; played, it ends."""
    team = read_toml(text)
    assert team.check() == ()
    assert list(islice(rehearse(team, {}), 100))[-1].node == ""


def test_fork_on_the_page_takes_both_exits_in_the_chosen_order() -> None:
    """The report is written when both parts are done."""
    [text] = [one for one in page_blocks("teams.md", "toml") if 'team   = "report"' in one]
    played = [[turn.node for turn in rehearse(read_toml(text), read_script(one))] for one in ("", "editor > cost: Money first.")]
    assert played == [["outline", "build", "cost", "report", ""], ["outline", "cost", "build", "report", ""]]
