"""The agents of a process: an id that is in use, and the end of an agent while others run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Self

import pytest
from structlog.testing import capture_logs

from ioa import sandbox
from ioa.adapters.folder_lock import locked_folder
from ioa.adapters.this_process import new_session
from ioa.agent.definition import AgentDefinition
from ioa.errors import AlreadyRunningError, InvalidInputError, MissingExtraError, UnavailableError
from ioa.hosting.brains import Mind
from ioa.hosting.host import Crew, host, in_sandbox
from ioa.hosting.loading import load_agent
from ioa.hosting.settings import WorkerSettings
from ioa.protocol.ids import AgentId
from ioa.telemetry import readiness
from ioa.testing.manual_clock import CountedIds, ManualClock
from ioa.testing.scripted_brain import ScriptedBrain
from tests.rig.deadline import eventually
from tests.rig.memory_network import MemoryNetwork
from tests.unit.agent.company import Stop, idle


@asynccontextmanager
async def _serving(
    network: MemoryNetwork, folder: Path, agents: Sequence[str | AgentDefinition], seed: str | None = None
) -> AsyncIterator[asyncio.Task[None]]:
    stop = Stop()
    settings = WorkerSettings(agent_data=folder, nats_seed=seed, drain=timedelta(0))
    mind = Mind(ScriptedBrain())
    members = [(host(idle(one) if isinstance(one, str) else one), mind) for one in agents]
    with capture_logs():
        serving = asyncio.create_task(Crew(members, settings, network, network.clock, CountedIds()).serve(stop))
        try:
            yield serving
        finally:
            stop.tell()
            await asyncio.wait([serving])


async def test_agent_with_a_used_folder_joins_as_another_replica(tmp_path: Path) -> None:
    """It takes the next free number, with the same pool and a folder of its own."""
    network = MemoryNetwork(ManualClock())
    others = CountedIds()
    async with (
        locked_folder(tmp_path / "worker", new_session(network.clock, others)),
        locked_folder(tmp_path / "worker-2", new_session(network.clock, others)),
        _serving(network, tmp_path, ["worker"]) as serving,
    ):
        await eventually(lambda: network.is_online(AgentId("worker-3")))
    await serving

    assert (tmp_path / "worker-3" / "memory.sqlite").exists()


def test_agent_that_runs_code_has_the_sandbox_level_as_a_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    """The level is a tag of the card, after the author's; without the requested level the agent does not start."""
    plain, runner = idle("plain"), idle("runner").with_card(tags=["python"], needs_sandbox=True)
    with_tags = in_sandbox([host(plain), host(runner)], WorkerSettings(sandbox="none"))
    assert [one.agent.card_as(one.agent_id).tags for one in with_tags] == [(), ("python", "sandbox:none")]
    monkeypatch.setattr(sandbox, "_self_test", lambda: "bubblewrap is missing")
    with pytest.raises(MissingExtraError, match="Untrusted code cannot run here: bubblewrap is missing"):
        in_sandbox([host(runner)], WorkerSettings(sandbox="bwrap"))


async def test_an_agent_with_a_key_of_its_own_takes_no_other_id(tmp_path: Path) -> None:
    """If the credential is for one agent only, a second process ends, and names the holder of the id."""
    network = MemoryNetwork(ManualClock())
    async with (
        locked_folder(tmp_path / "worker", new_session(network.clock, CountedIds())),
        _serving(network, tmp_path, ["worker"], seed="SUAB") as serving,
    ):
        with pytest.raises(AlreadyRunningError, match=r"worker is in use by process \d+ on "):
            await serving


async def test_an_agent_that_ends_with_an_error_starts_again_alone(tmp_path: Path) -> None:
    """While its folder cannot be used the process is not ready; the other agent continues."""
    network = MemoryNetwork(ManualClock())
    (tmp_path / "first").write_text("in the way")
    async with _serving(network, tmp_path, ["first", "second"]) as serving:
        await eventually(lambda: network.is_online(AgentId("second")))
        await eventually(readiness.missing, until=lambda missing: missing == ["first, which has ended with an error"])
        (tmp_path / "first").unlink()
        await eventually(lambda: network.is_online(AgentId("first")))
    await serving

    assert readiness.missing() == []


async def test_agent_whose_opening_fails_does_not_join(tmp_path: Path) -> None:
    """It is not found, and so gets no task that it cannot do; its process reports the reason."""

    class Closed(AgentDefinition):
        @asynccontextmanager
        async def opened(self) -> AsyncIterator[Self]:
            if self.description:
                raise UnavailableError("The server is away.")
            yield self

    network = MemoryNetwork(ManualClock())
    closed = Closed("closed", "Needs a server")
    closed.task(lambda task: task)
    async with _serving(network, tmp_path, [closed]) as serving:
        with pytest.raises(UnavailableError, match="away"):
            await serving
    assert not network.is_online(AgentId("closed"))


async def test_a_process_without_any_agent_left_ends_with_the_first_error(tmp_path: Path) -> None:
    """It ends without a signal."""
    network = MemoryNetwork(ManualClock())
    (tmp_path / "first").write_text("in the way")
    (tmp_path / "second").write_text("in the way")
    async with _serving(network, tmp_path, ["first", "second"]) as serving:
        with pytest.raises(UnavailableError, match="cannot be locked"):
            await serving


def test_error_of_an_authors_file_names_its_lines(tmp_path: Path) -> None:
    """An error while a file is loaded names it, with the lines of that file."""
    file = tmp_path / "mistaken.py"
    file.write_text("import json\n\ndef half(x):\n    return x / 0\n\nhalf(json.loads('1'))\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="cannot be loaded") as told:
        load_agent(f"{file}:agent")
    lines = told.value.message.splitlines()
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert [line.split('"')[1] for line in lines if line.startswith('  File "')][-2:] == [str(file), str(file)]
