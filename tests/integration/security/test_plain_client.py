"""A plain NATS client with a user's seed, connected by the code of docs/publishing.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ioa.adapters.nats.streams.topology import GOALS
from ioa.protocol import subjects
from tests.integration.security.town import USER, Town

_PAGE = Path(__file__).parents[3] / "docs" / "publishing.md"


async def test_plain_client_with_seed_file_receives_acknowledgement(town: Town) -> None:
    """The reply of JetStream arrives in the inbox that the seed file names."""
    page: dict[str, Any] = {}
    [code] = [block for block in re.findall(r"```python\n(.*?)```", _PAGE.read_text(), re.DOTALL) if "inbox_prefix" in block]
    exec(code, page)
    secured = town.secured
    async with await page["connect"](secured.server.url, str(secured.folder / USER / "seed")) as client:
        stored = await client.jetstream().publish(subjects.goal_of(USER), b"Count.")
    assert (stored.stream, stored.seq) == (GOALS, 1)
