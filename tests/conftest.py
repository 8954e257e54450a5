"""What every test runs under: a watched event loop, no task left behind, no error that only asyncio heard of.

Each worker of pytest runs one nats-server, and each test that needs NATS has an account of its own there (`nats_url`). A test that
stops or configures the server has a server of its own (`nats_server`).
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import os
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio
import structlog
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from ioa.adapters.nats.wire.embedded_server import NatsServer, open_nats_server
from tests.rig.loop_watch import watch_loops
from tests.rig.nats_accounts import SharedNats, open_shared_nats
from tests.rig.ports import held_ports

# No deadline: on a busy machine it finds the machine, not the code. Every run repeats the same examples, so that a failure is the
# change's.
settings.register_profile("steady", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("steady")
# Hypothesis mixes into its examples the constants of all our modules that happen to be imported: a selection of tests would
# have other examples than all of them. There is no setting for that.
pytest.MonkeyPatch().setattr(providers, "is_local_module_file", lambda path: False)

# The tracebacks that structlog draws by default hold the loop for tens of milliseconds each.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage in what is imported, now and later: it stays, and is large."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the random faults in tests/e2e/chaos."""
    group = parser.getgroup("chaos")
    group.addoption("--chaos-seconds", type=float, default=60.0, help="duration of the random faults")
    group.addoption("--chaos-seed", type=int, default=None, help="seed of the random faults; default: a new one")
    group.addoption("--chaos-nodes", type=int, choices=(1, 3), default=1, help="number of nats-servers")
    group.addoption("--chaos-tenants", type=int, choices=(0, 1, 2), default=0, help="tenants with credentials; 0: no credentials")


_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 8_000_000_000
"""A run writes a third of it: environments of 600 MB that are made anew, stores, logs."""


def _write_to_memory() -> None:
    """Have the tests' folders lie in memory where there is plenty, so that a disk that others keep busy delays no test."""
    with suppress(OSError, ValueError):
        memory = dict(line.split(":") for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
        available, there = int(memory["MemAvailable"].split()[0]) * 1024, os.statvfs(_MEMORY)
        if min(available, there.f_bavail * there.f_frsize) > _ROOM_BYTES and not there.f_flag & os.ST_NOEXEC:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


_write_to_memory()

_WAITING = ("contract", "e2e", "packaging", "integration")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files that wait for processes among those that compute, so that no core is idle, and end with short ones.

    Those with most slow tests come first: a file is run by one worker, and one that began last would have all others wait.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    tests = Path(__file__).parent
    waiting = [path for folder in _WAITING for path in files if path.is_relative_to(tests / folder)]
    waiting.sort(key=lambda path: sum(item.get_closest_marker("slow") is not None for item in files[path]), reverse=True)
    computing = [path for path in files if path not in waiting]
    even = len(computing) / max(1, len(waiting))
    shares = [computing[round(even * at) : round(even * (at + 1))] for at in range(len(waiting))]
    order = [path for first, share in zip(waiting, shares, strict=True) for path in (first, *share)] or computing
    items[:] = [item for path in order for item in files[path]]


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """Take back how a test, or a command that it ran, has set up logging, and have no logger remember it."""
    before, configure = structlog.get_config(), structlog.configure
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structlog, "configure", lambda **told: configure(**{**told, "cache_logger_on_first_use": False}))
        yield
    configure(**before)


@pytest.fixture(autouse=True)
def _unblocked_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test in which one callback held the event loop for more than 250 ms, unless it is marked `blocks_loop`."""
    if request.node.get_closest_marker("blocks_loop") is not None:
        yield
        return
    with watch_loops() as watch:
        yield
    if watch.blocks:
        pytest.fail("\n".join(str(block) for block in watch.blocks), pytrace=False)


@pytest.fixture(autouse=True)
def _heard_errors() -> Iterator[None]:
    """Fail a test whose errors only asyncio's logger heard of, such as a task's exception that nobody retrieved."""
    errors: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            errors.append(self.format(record))

    listener = Listener(logging.ERROR)
    logger = logging.getLogger("asyncio")
    logger.addHandler(listener)
    yield
    gc.collect(1)  # a dropped task speaks when it is collected, and should do so in its own test
    logger.removeHandler(listener)
    if errors:
        pytest.fail("\n".join(errors), pytrace=False)


@pytest.fixture(autouse=True)
def _finished_tasks(request: pytest.FixtureRequest) -> None:
    """Fail an async test that leaves a task running."""
    if inspect.iscoroutinefunction(getattr(request.function, "__wrapped__", request.function)):
        request.getfixturevalue("_no_task_left")


@pytest.fixture
async def _no_task_left() -> AsyncIterator[None]:
    yield
    this = asyncio.current_task()
    for _ in range(10):  # a task that was cancelled needs a few rounds of the loop to end
        left = [task for task in asyncio.all_tasks() if task is not this]
        if not left:
            return
        await asyncio.sleep(0)
    pytest.fail("tasks left running:\n" + "\n".join(repr(task) for task in left), pytrace=False)


@pytest.fixture
def port() -> Iterator[int]:
    """A port of this machine that is this test's alone, for a process that is told where to listen."""
    with held_ports(1) as [held]:
        yield held


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_nats(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SharedNats]:
    """The nats-server of all tests of this worker."""
    async with open_shared_nats(tmp_path_factory.mktemp("nats")) as shared:
        yield shared


@pytest.fixture
async def nats_account(shared_nats: SharedNats) -> AsyncIterator[str]:
    """The URL of an account with an empty JetStream, of this test alone."""
    async with shared_nats.account() as url:
        yield url


@pytest.fixture
async def nats_server(tmp_path: Path) -> AsyncIterator[NatsServer]:
    """A nats-server with an empty JetStream, of this test alone."""
    async with open_nats_server(tmp_path / "nats", None) as server:
        yield server


@pytest.fixture
def nats_url(request: pytest.FixtureRequest) -> str:
    """The URL of the test's own server if the test uses `nats_server`, otherwise of its account."""
    if "nats_server" in request.fixturenames:
        server: NatsServer = request.getfixturevalue("nats_server")
        return server.url
    account: str = request.getfixturevalue("nats_account")
    return account
