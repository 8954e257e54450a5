"""A streamed answer of a task, as clients see it that follow the goal."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from ioa import ModelAgent
from ioa.adapters.openai.openai_chat import ModelSettings
from ioa.agent.rules import RuleBrain
from ioa.client.history import conversation
from ioa.client.watching import watch
from ioa.group.events import Said
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import comm_id_of_goal
from ioa.protocol.messages import InformTaskProgress
from ioa_testkit import System
from tests.rig.http_script import COUNTED, chunk, serving, streamed


async def test_client_that_follows_a_goal_receives_drafts(ioa_system: System) -> None:
    """While the model writes. The log contains the result, and no draft."""
    seen = threading.Event()

    def written() -> Iterator[str]:
        yield chunk(content="Once upon")
        seen.wait(20)
        yield from streamed(chunk("stop", content=" a time."), last=COUNTED).pieces

    drafts: list[str] = []
    with serving(streamed(pieces=written())) as (url, _):
        teller = ModelAgent(
            "teller",
            description="Tells stories",
            examples=["tell a story"],
            instructions="Be brief.",
            model=ModelSettings(url, "tiny"),
            brain=RuleBrain(),
        )
        async with ioa_system.serve(teller) as running:
            goal_id = await running.client.submit(GoalOrder(goal="tell a story", max_tokens=50_000))
            async with watch(running.client, comm_id_of_goal(goal_id)) as coming:
                async for news in coming:
                    payload = news.message.payload if isinstance(news, Said) else None
                    if isinstance(payload, InformTaskProgress) and payload.draft:
                        drafts.append(payload.draft)
                        seen.set()
            log = await conversation(running.client, comm_id_of_goal(goal_id))
            result = await running.client.wait_for_result(goal_id)
    assert (drafts, "Once upon a time." in result.content) == (["Once upon"], True)
    assert not any("draft" in stored.entry.event.model_dump_json() for stored in log)
