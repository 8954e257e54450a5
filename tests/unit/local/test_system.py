"""What the parts of a system on one machine are told."""

from __future__ import annotations

from ioa.local.system import gateway_program


def test_each_run_has_sessions_of_its_own() -> None:
    """Those of the page count no more after the next start, and do after a restart of the gateway alone, the same program."""
    one, other = (gateway_program(4280).env or {} for _ in range(2))
    assert (len(one["IOA_HTTP_RUN"]) >= 32, one["IOA_HTTP_RUN"] == other["IOA_HTTP_RUN"]) == (True, False)
