"""How systems start and end: after a restart, without leftovers, and with an agent that cannot start."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from pathlib import Path

import pytest

from ioa.runtime.exit_code import ExitCode
from tests.e2e.command_line import TIMEOUT_SECONDS, CommandLine, running_system


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    """A folder to run commands in."""
    return CommandLine(tmp_path)


def test_a_part_that_dies_is_started_again(command: CommandLine) -> None:
    """Killing any process of a running system costs no goal; `ioa up` logs that it died and runs again."""
    with running_system(command, "--pool", command.write_pool("greeter")) as running:
        for name in ("nats-server", "services", "agents"):
            os.kill(running.pids[name], signal.SIGKILL)
            done, deadline = command.run("run", "Greet Ada", "--timeout", "60"), time.monotonic() + TIMEOUT_SECONDS
            while done.returncode == ExitCode.UNREACHABLE and time.monotonic() < deadline:  # it takes the server a moment
                done = command.run("run", "Greet Ada", "--timeout", "60")
            assert done.returncode == 0, (name, done.stdout, done.stderr)
        assert running.process.stderr is not None
        for name in ("nats-server", "services", "agents"):
            for word in ("process_died", "process_restarted"):
                assert any(word in line and name in line for line in running.process.stderr)


@pytest.mark.nightly
def test_command_stops_waiting_for_services_that_hang(command: CommandLine) -> None:
    """While the services hang, no deadline ends the goal: `ioa run` exits with the request that got no reply."""
    with running_system(command, "--pool", command.write_pool("waiter")) as running:
        os.kill(running.pids["services"], signal.SIGSTOP)
        done = command.run("run", "Wait for the signal", "--timeout", "1")
        os.kill(running.pids["services"], signal.SIGCONT)

    assert done.returncode == ExitCode.UNREACHABLE, done.stderr
    assert "did not answer" in done.stderr, done.stderr


def test_process_group_ends_on_sigterm_without_output(command: CommandLine) -> None:
    """SIGTERM to all processes at once, as systemd and Docker send it, ends with 0 and without a warning."""
    with running_system(command, "--pool", command.write_pool("greeter")) as running:
        everybody = _with_children(running.process.pid)
        assert everybody == {running.process.pid, *running.pids.values()}
        ends = [os.pidfd_open(pid) for pid in sorted(everybody)]
        for end in ends:
            with contextlib.suppress(ProcessLookupError):  # it has ended with one before it
                signal.pidfd_send_signal(end, signal.SIGTERM)
        _, said = running.process.communicate(timeout=60)
    for end in ends:
        assert select.select([end], [], [], 60)[0]
        os.close(end)
    assert (running.process.returncode, said) == (0, "")


def _with_children(pid: int) -> set[int]:
    """A process, its children and theirs, as the kernel lists them."""
    listed = " ".join(path.read_text(encoding="ascii") for path in Path(f"/proc/{pid}/task").glob("*/children"))
    return {pid}.union(*(_with_children(int(child)) for child in listed.split()))


def test_a_goal_runs_on_a_system_of_its_own(command: CommandLine) -> None:
    """`ioa run --pool` starts a system, reaches the goal, writes the files, and leaves nothing but them."""
    pool = command.write_pool("greeter")
    before = {path.name for path in command.folder.iterdir()}
    done = command.run("run", "Greet Ada", "--pool", pool, "--out", "files")
    after = {path.name for path in command.folder.iterdir()} - {"__pycache__"}
    assert (done.returncode, after - before, "Hello, nobody in particular!" in done.stdout) == (0, {"files"}, True), done.stderr


def test_an_agent_that_cannot_start_stops_the_system_with_its_reason(command: CommandLine) -> None:
    """`ioa up` with a pool whose agent is no agent exits and shows the end of its log, but nothing that an earlier run wrote."""
    command.write_pool("greeter")
    (command.folder / "pool.toml").write_text('[[agents]]\ntarget = "agents.py:nobody"\n', encoding="utf-8")
    logs = command.folder / ".ioa" / "logs"
    logs.parent.mkdir(mode=0o700)
    logs.mkdir()
    (logs / "agents.log").write_text("error: the cause of yesterday\n", encoding="utf-8")
    done = command.run("up", "--port", "0", "--pool", "pool.toml")
    assert (done.returncode, "has no such attribute: 'nobody'" in done.stderr) == (3, True), done.stderr
    assert "the cause of yesterday" not in done.stderr
