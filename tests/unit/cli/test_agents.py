"""What `ioa agents` and `ioa agents search` say of an answer."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType

from ioa.cli.agents import _advice_on, _explanation
from ioa.protocol.agents.outcomes import Record
from ioa.protocol.agents.search import Hit, Shift, Signal, SignalScore, Why
from ioa.protocol.cards import AgentCard, AgentStatus, Load
from ioa.protocol.ids import AgentId, PoolId
from ioa.testing.manual_clock import NEW_YEAR


def card(agent_id: str, *examples: str, pool: str = "") -> AgentCard:
    """A card."""
    return AgentCard(
        agent_id=AgentId(agent_id),
        name=agent_id,
        description="Draws charts of numbers",
        examples=examples,
        pool=PoolId(pool or agent_id),
    )


def shown(*what: RenderableType) -> list[str]:
    """The lines that are shown, without what fills them up."""
    console = Console(file=io.StringIO(), width=200)
    for one in what:
        console.print(one)
    assert isinstance(console.file, io.StringIO)
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines()]


def test_an_explanation_says_all_that_counts() -> None:
    """Each signal with its measure, the example that matched, and each shift with its reason."""
    why = Why(
        match=0.9,
        signals=(SignalScore(signal=Signal.TEXT, raw=0.5, fused=0.9), SignalScore(signal=Signal.EXAMPLES, raw=0.7, fused=1.8)),
        shifts=(
            Shift(cause="load", amount=-0.01, reason="2 of 4 slots taken"),
            Shift(cause="outcomes", amount=0.03, reason="done"),
        ),
    )
    hit = Hit(
        card=card("charts-1", "plot this", "chart that"),
        score=0.92,
        similarity=0.7,
        matched_example="plot this",
        load=Load(tasks=2, slots=4),
        replicas=3,
        record=Record(done=8, failed=1, evidence=9.0, success=0.8),
        why=why,
    )
    assert shown(*_explanation(1, hit)) == [
        "1. charts-1 0.920 online, 2 of 4 slots taken, least busy of 3 replicas, 8 of 9 tasks done",
        "its own words 0.900 cosine 0.50",
        "examples 1.800 cosine 0.70 plot this",
        "match 0.900 their mean",
        "load -0.010 2 of 4 slots taken",
        "outcomes +0.030 done",
    ]


def test_poor_cards_are_named_once_for_each_pool() -> None:
    """Below the list, for the first few pools."""
    cards = [card("a-0", pool="a"), card("a-1", pool="a"), card("rich", "x", "y", "z"), *map(card, "bcde")]
    found = [AgentStatus(card=one, online=True, registered_at=NEW_YEAR) for one in cards]
    lines = shown(*_advice_on(found))
    assert [line.split(":")[0] for line in lines] == ["", "a", "b", "c", "The cards of 2 more could contain more, too."]
    assert shown(*_advice_on(found[2:3])) == []
