"""What `ioa agents` and `ioa agents search` say of an answer."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType

from ioa.cli.agents import _hit_table
from ioa.protocol.agents.outcomes import Record
from ioa.protocol.agents.search import Hit, Shift, Signal, SignalScore, Why
from ioa.protocol.cards import AgentCard, Load
from ioa.protocol.ids import AgentId, PoolId


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


def test_explanation_lists_signals_example_and_shifts() -> None:
    """Each signal with its measure, the example that matched, and each shift with its reason."""
    why = Why(
        match=0.9,
        signals=(SignalScore(signal=Signal.TEXT, raw=0.5, fused=0.9), SignalScore(signal=Signal.EXAMPLES, raw=0.7, fused=1.8)),
        shifts=(Shift(cause="load", amount=-0.01, reason="2 of 4 slots taken"),),
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
    assert shown(_hit_table([hit], why=True))[1:] == [
        "charts-1 0.70 2 of 4 8 of 9 plot this score 0.920, match 0.900",
        "text 0.900 (raw 0.50)",
        "examples 1.800 (raw 0.70)",
        "load -0.010: 2 of 4 slots taken",
    ]
