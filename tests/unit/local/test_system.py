"""The programs of a system on one machine."""

from __future__ import annotations

from pathlib import Path

from ioa.local.local_system import _agents, gateway_environment
from ioa.local.pool import Pool, PooledAgent


def test_each_start_has_its_own_sessions() -> None:
    """A session of the page is valid until the system stops, also after a restart of the services."""
    one, other = (gateway_environment(4280) for _ in range(2))
    assert (len(one["IOA_HTTP_RUN"]) >= 32, one["IOA_HTTP_RUN"] == other["IOA_HTTP_RUN"]) == (True, False)


def test_agents_share_a_process_unless_they_request_their_own() -> None:
    """An agent with its own variables or with a sandbox gets its own process, too; each replica of it has a number."""
    pool = Pool(
        agents=(
            PooledAgent(target="a.py:agent", replicas=2),
            PooledAgent(target="b.py:agent"),
            PooledAgent(target="c.py:agent", process="own", replicas=2),
            PooledAgent(target="d.py:agent", env={"CITY": "Bonn"}),
            PooledAgent(target="e.py:agent", needs_sandbox=True),
        )
    )
    programs = {program.name: (program.arguments, program.env or {}) for program in _agents(pool, Path("data"))}
    data = {"IOA_AGENT_DATA": "data/agents"}
    assert programs == {
        "agents": (["a.py:agent", "a.py:agent", "b.py:agent"], data),
        "agent-c-agent-0": (["c.py:agent"], data | {"IOA_REPLICA": "0"}),
        "agent-c-agent-1": (["c.py:agent"], data | {"IOA_REPLICA": "1"}),
        "agent-d-agent": (["d.py:agent"], data | {"CITY": "Bonn"}),
        "agent-e-agent": (["e.py:agent"], data),
    }
