"""Sessions of agents: one process per id, and agents that cannot work."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ioa.agent import agent_runtime
from ioa.agent.model import ModelBrain
from ioa.errors import AlreadyRunningError, ConflictError, IdTakenError, IoaError, NotFoundError, SupersededError
from ioa.group.requests import Accepted, Rejected, SequencedEntry
from ioa.ports.brain_types import Mission, TeamLaunch, TeamTools
from ioa.protocol.codec import encode
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, SessionId, comm_id_of_goal
from ioa.protocol.messages import InformTaskResult, Message
from ioa.protocol.registry import Lease, Register, Renew
from ioa.telemetry import readiness
from ioa.testing.scripted_model import ScriptedModel
from tests.rig.deadline import eventually
from tests.rig.memory_network import MemoryNetwork
from tests.unit.agent.company import GOAL, Company, idle, one_task, open_company, working
from tests.unit.agent.test_work import Running

ROOM = comm_id_of_goal(GOAL.goal_id)
WORKER = AgentId("worker")


class Fences:
    """What the registry and the routers refuse an agent from now on, as they do when another process has its id."""

    def __init__(self, network: MemoryNetwork) -> None:
        self.registered: list[Register] = []
        self.renewed: list[SessionId | None] = []
        self.said: list[Message] = []
        self.refuse_register: IoaError | None = None
        self.refuse_renew: IoaError | None = None
        self.refuse_say: IoaError | None = None
        self._register, self._renew, self._say = network.register, network.renew, network.say
        network.register = self.register  # type: ignore[method-assign]
        network.renew = self.renew  # type: ignore[method-assign]
        network.say = self.say  # type: ignore[method-assign]

    async def register(self, request: Register) -> Lease:
        """Register, or refuse."""
        self.registered.append(request)
        if self.refuse_register is not None:
            raise self.refuse_register
        return await self._register(request)

    async def renew(self, request: Renew) -> Lease:
        """Renew, or refuse."""
        self.renewed.append(request.session)
        if self.refuse_renew is not None and request.agent_id == WORKER:
            raise self.refuse_renew
        return await self._renew(request)

    async def say(self, message: Message) -> Accepted | Rejected:
        """Say, or refuse."""
        self.said.append(message)
        if self.refuse_say is not None and message.header.sender == WORKER:
            raise self.refuse_say
        return await self._say(message)


@pytest.fixture
def fences(company: Company) -> Fences:
    """The refusals of a company's network."""
    return Fences(company.network)


async def _refusal(company: Company) -> ConflictError | None:
    member = company.members["worker"]
    assert member.running is not None
    await asyncio.wait([member.running])
    return member.refusal


async def test_each_start_has_a_session_and_names_the_previous_one(company: Company, fences: Fences) -> None:
    """An empty store names no previous session."""
    await company.start(idle("worker"))
    for starts, forgetful in ((1, False), (2, True)):
        await eventually(lambda: len(set(fences.renewed)) == starts)  # noqa: B023
        await company.crash("worker")
        await company.restart("worker", forgetful=forgetful)
    await eventually(lambda: len(set(fences.renewed)) == 3)

    first, second, third = (request.session.session for request in fences.registered if request.session)
    assert [request.previous for request in fences.registered] == [None, first, None]
    assert list(dict.fromkeys(fences.renewed)) == [first, second, third]


async def test_messages_name_the_current_session(company: Company, fences: Fences) -> None:
    """What an earlier process had prepared is sent by this one, under its name, as the same message."""
    await company.start(idle("worker"))
    await company.start(idle("lead"), one_task())
    await company.crash("worker")
    await company.restart("worker")
    await company.has_done()

    [session] = {message.header.session for message in fences.said if message.header.sender == WORKER}
    assert fences.registered[-1].session is not None
    assert session == fences.registered[-1].session.session


@pytest.mark.parametrize("error", [AlreadyRunningError("It runs."), IdTakenError("It is taken.")])
async def test_agent_with_a_used_id_ends(company: Company, fences: Fences, error: ConflictError) -> None:
    """It ends with the error of the registry, and the lease stays."""
    fences.refuse_register = error
    company.hire(idle("worker"))
    company.begin("worker")

    assert (await _refusal(company), company.network.is_online(WORKER)) == (error, False)


async def test_id_of_a_killed_process_is_requested_until_it_is_free(tmp_path: Path) -> None:
    """Until the lease of the killed process expires."""
    async with open_company(tmp_path, takeover=timedelta(seconds=30)) as company:
        fences = Fences(company.network)
        fences.refuse_register = AlreadyRunningError("It runs.")
        company.hire(idle("worker"))
        company.begin("worker")
        await eventually(lambda: fences.registered)
        fences.refuse_register = None

        assert await eventually(lambda: company.network.is_online(WORKER))


@pytest.mark.parametrize("by", ["renewal", "message", "registration"])
async def test_an_agent_that_was_superseded_ends_itself(company: Company, fences: Fences, by: str) -> None:
    """After the first rejection it cancels its tasks, reports nothing, and the id stays online."""
    run = Running()
    await company.give_task(run.function())
    await run.began.wait()
    match by:
        case "renewal":
            fences.refuse_renew = SupersededError("It runs elsewhere.")
        case "message":
            fences.refuse_say = SupersededError("It runs elsewhere.")
            run.let_go.set()
        case _:  # it has to register again, and may not
            fences.refuse_register = AlreadyRunningError("It runs elsewhere.")
            fences.refuse_renew = NotFoundError("Nobody knows it.")
    refusal = await _refusal(company)
    assert (type(refusal), str(refusal)) == (SupersededError, "It runs elsewhere.")
    results = [message for message in company.network.said if isinstance(message.payload, InformTaskResult)]
    assert (results, run.cancelled, company.network.is_online(WORKER)) == ([], [] if by == "message" else [1], True)


async def test_agent_without_a_working_store_is_offline_until_it_works(company: Company, fences: Fences) -> None:
    """It neither renews nor is ready nor takes goals; when its memory is well it registers again and goes on."""
    await company.start(idle("worker"))
    lead = await company.start(idle("lead"), one_task())
    with capture_logs() as lines:
        lead.store.well = False
        await eventually(lambda: not company.network.is_online(AgentId("lead")))
        await company.network.offer(GOAL)
        missing = readiness.missing()
        lead.store.well = True
        result = await company.result()

    assert (missing, result.reason, readiness.missing()) == (
        ["lead to be fit for work", "registration of lead"],
        Reason.CONCLUDED,
        [],
    )
    [line] = [line for line in lines if line["event"] == "agent_unfit"]
    assert (line["agent_id"], line["why"]) == ("lead", "its memory does not answer")


async def test_agent_with_too_many_hanging_functions_is_offline_until_they_end(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelled functions count as long as they run."""
    monkeypatch.setattr(agent_runtime, "_MAX_STOPPING", 0)
    let_go, began = threading.Event(), threading.Event()

    def hang(words: str) -> str:
        began.set()
        return str(let_go.wait(30))

    await company.give_task(hang)
    try:
        await eventually(began.is_set)
        online = company.network.is_online(WORKER)
        await company.network.cancel(ROOM)
        await eventually(lambda: not company.network.is_online(WORKER))
    finally:
        let_go.set()
    assert (online, await eventually(lambda: company.network.is_online(WORKER))) == (True, True)


async def test_entry_pushed_before_the_registration_does_not_end_the_agent(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The id belongs to the previous process until then: a log read with the new session would be rejected as superseded."""
    released, listens, go = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work(words: str) -> str:
        await released.wait()
        return "done"

    await company.start(working(work))
    await company.start(idle("lead"), one_task())
    await company.network.offer(GOAL)
    await eventually(lambda: company.messages(ROOM))
    await company.crash("lead")
    register, inbox = company.network.register, company.network.inbox

    @asynccontextmanager
    async def open_inbox(agent_id: AgentId, receive: Callable[[SequencedEntry], None]) -> AsyncIterator[None]:
        async with inbox(agent_id, receive):
            listens.set()
            yield

    async def register_late(request: Register) -> Lease:
        await go.wait()
        return await register(request)

    monkeypatch.setattr(company.network, "register", register_late)
    monkeypatch.setattr(company.network, "inbox", open_inbox)
    said = len(await company.messages(ROOM))
    company.begin("lead")
    await listens.wait()
    released.set()
    await eventually(lambda: company.messages(ROOM), lambda found: len(found) > said)
    go.set()
    assert ((await company.result()).content, company.members["lead"].refusal) == ("All done.", None)


class _LeadingModel(ModelBrain):
    """A model that leads the worker without a call."""

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch:
        """Take the worker."""
        return TeamLaunch(members=(WORKER,))


async def test_thoughts_of_a_model_survive_its_process(company: Company) -> None:
    """After a restart the prompt contains the agent's thoughts and messages; the log and other agents do not."""
    released, thought = asyncio.Event(), "Bob knows, but he is slow."

    async def work(words: str) -> str:
        await released.wait()
        return "done"

    given = {"name": "x", "assignee": "worker", "task_desc": "work", "uses": []}
    assign = {"type": "ASSIGN", "mode": "wait", "content": "", "tasks": [given]}
    conclude = {"type": "CONCLUDE", "goal_reached": True, "content": "All done."}
    model = ScriptedModel([json.dumps({"known": thought, "decision": assign}), json.dumps({"decision": conclude})])
    await company.start(working(work))
    lead = await company.start(idle("lead"), _LeadingModel(model))
    await company.network.offer(GOAL)
    await eventually(lambda: company.messages(ROOM))
    await company.crash("lead")
    lead.brain = _LeadingModel(model)
    await company.restart("lead")
    released.set()
    assert (await company.result()).content == "All done."
    assert f'{{"known": "{thought}", "decision": ' in model.asked[-1].prompt
    log = b"".join(encode(stored.entry) for stored in await company.network.entries(ROOM))
    assert (thought.encode() in log, await company.members["worker"].store.thoughts(ROOM)) == (False, {})
