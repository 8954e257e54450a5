"""The sandbox: confinement, limits, and the content of the box after a command."""

from __future__ import annotations

import ctypes
import io
import os
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ioa import sandbox
from ioa.errors import InvalidInputError, MissingExtraError
from ioa.sandbox import Level, SandboxLimits, level_here, run
from tests.unit.sandbox import escape_attempts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap needs Linux")
Runs = Callable[..., tuple[str, str]]
SHM_CREATE, SHM_REMOVE = 0o1666, 0


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """A function that runs Python code in the sandbox, and returns the failure and the output."""

    def in_sandbox(code: str, limits: SandboxLimits = SandboxLimits(), **options: Any) -> tuple[str, str]:
        box, output = tmp_path / "box", tmp_path / "output"
        box.mkdir(exist_ok=True)
        command = [sys.executable, "-I", "-S", "-c", code]
        return run(command, box, limits, Level.BWRAP, output=output, **options), output.read_text()

    return in_sandbox


def unix_socket(kind: socket.SocketKind, address: Path | str) -> socket.socket:
    """Return a socket at an address that every user may reach."""
    made = socket.socket(socket.AF_UNIX, kind)
    made.bind(str(address))
    if isinstance(address, Path):
        address.chmod(0o777)
    return made


def attempted(level: Level) -> list[str]:
    """Return which escape attempts succeed at a level, in a folder with targets that every user may reach."""
    with ExitStack() as stack:
        outside = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        outside.chmod(0o755)
        box, secret, shared, writable = (outside / name for name in ("box", "secret", "shared", escape_attempts.WRITABLE))
        for made in (box, writable):
            made.mkdir()
        writable.chmod(0o777)
        for path in (secret, shared):
            path.write_text("text")
            path.chmod(0o666)
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        received = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        received.bind(("127.0.0.1", 0))
        received.setblocking(False)
        for address in (outside / "socket", f"\0{secret}"):
            stack.enter_context(unix_socket(socket.SOCK_STREAM, address)).listen()
        stack.enter_context(unix_socket(socket.SOCK_DGRAM, outside / "socket-2"))
        libc = ctypes.CDLL(None)
        memory = libc.shmget(escape_attempts.SHARED_MEMORY, 4096, SHM_CREATE)
        stack.callback(libc.shmctl, memory, SHM_REMOVE, None)
        victim, owner = (stack.enter_context(subprocess.Popen(["cat"], stdin=subprocess.PIPE)) for _ in range(2))
        ports = (server.getsockname()[1], received.getsockname()[1])
        arguments = map(str, (level, os.getpid(), victim.pid, owner.pid, *ports, outside / "socket", secret, shared))
        output = outside / "output"
        source = Path(escape_attempts.__file__).read_text(encoding="utf-8")
        command = [sys.executable, "-I", "-S", "-c", source, *arguments]
        assert run(command, box, SandboxLimits(), level, output=output, readable=[shared]) == "", output.read_text()
        assert (box / "own").exists()
        *succeeded, last = output.read_text().splitlines()
        assert last == escape_attempts.ALL_ATTEMPTED
        try:
            received.recv(1)
            succeeded.append("send a datagram")
        except BlockingIOError:
            pass
        if os.getpriority(os.PRIO_PROCESS, victim.pid) != os.getpriority(os.PRIO_PROCESS, 0):
            succeeded.append("change the priority of a process outside")
        for process, name in ((owner, "stop a process outside by a pipe"), (victim, "stop a process outside")):
            if level is Level.NONE:
                process.wait()
            if process.poll() is not None:
                succeeded.append(name)
        return succeeded


def test_escape_attempts_in_the_sandbox_fail() -> None:
    """Files, network, processes and memory outside of the sandbox cannot be reached."""
    assert attempted(Level.BWRAP) == []


def test_escape_attempts_without_a_sandbox_succeed() -> None:
    """The attempts are real: outside of the sandbox they succeed, as far as the user and the disk allow."""
    depends_on_machine = {"read /etc/shadow", "reserve space on the disk", "reserve space on the disk by ioctl"}
    names = set(escape_attempts.attempts("0", "0", "0", "0", "0", "", "", ""))
    assert names - escape_attempts.ONLY_CONFINED - depends_on_machine <= set(attempted(Level.NONE))


def test_box_after_a_command_contains_its_files(runs: Runs, tmp_path: Path) -> None:
    """The command reads the box, and its changes are applied to the box. It has no environment."""
    (tmp_path / "box").mkdir()
    (tmp_path / "box" / "in").write_text("given")
    (tmp_path / "box" / "old").write_text("old")
    code = """
import os, pathlib
pathlib.Path('deep/er').mkdir(parents=True)
pathlib.Path('deep/er/out').write_text(open('in').read().upper())
os.remove('old')
print(sorted(os.listdir()), dict(os.environ).keys() - {'LC_CTYPE', 'PWD'})
"""
    assert runs(code) == ("", "['deep', 'in'] set()\n")
    files = {str(path.relative_to(tmp_path / "box")): path.read_text() for path in (tmp_path / "box").rglob("*") if path.is_file()}
    assert files == {"in": "given", "deep/er/out": "GIVEN"}


def test_readable_path_in_the_sandbox_is_readable(runs: Runs, tmp_path: Path) -> None:
    """A named path can be read, and its neighbour cannot. The command has the given environment."""
    (tmp_path / "named").write_text("seen")
    (tmp_path / "other").write_text("hidden")
    code = f"""
import os
print(open({str(tmp_path / "named")!r}).read(), os.path.exists({str(tmp_path / "other")!r}), os.environ["KEY"])
"""
    assert runs(code, readable=[tmp_path / "named"], environment={"KEY": "value"}) == ("", "seen False value\n")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("bytearray(3_000_000_000)", "MemoryError"),
        ("open('big', 'wb').truncate(10_000_000_000)", "File too large"),
        ("open('big', 'wb').write(bytes(30_000_000))", "File too large"),
        ("for n in range(40): open(str(n), 'wb').write(bytes(1_000_000))", "No space left on device"),
        ("import os\nfor n in range(300): os.dup(1)", "Too many open files"),
    ],
)
def test_command_above_a_limit_gets_an_error(code: str, said: str, runs: Runs) -> None:
    """Memory, the size of a file, the size of the box and open files are limited by the kernel."""
    reason, printed = runs(code, SandboxLimits(box_bytes=5_000_000 if "range(40)" in code else 100_000_000))
    assert (reason, said in printed) == ("ended with status 1", True), printed


def test_processes_are_limited_by_the_kernel(runs: Runs) -> None:
    """The limit counts the processes of this sandbox, and two that belong to the sandbox."""
    assert runs("import resource; print(resource.getrlimit(resource.RLIMIT_NPROC))", SandboxLimits(processes=12)) == (
        "",
        "(14, 14)\n",
    )


@pytest.mark.parametrize(
    ("code", "limits", "said"),
    [
        ("while True: pass", SandboxLimits(cpu=timedelta(seconds=1)), "used more than 1 seconds of processor time"),
        (
            "input() if 0 else __import__('signal').pause()",
            SandboxLimits(wall_clock=timedelta(seconds=0.3)),
            "did not end within 0.3 seconds",
        ),
        ("print('x' * 2_000_000)", SandboxLimits(file_bytes=1_000_000), "printed more than 1000000 bytes"),
        ("for n in range(200): open(str(n), 'w')", SandboxLimits(files=100), "made more than 100 files"),
        ("import os\nfor n in range(40): os.mkdir('d'); os.chdir('d')", SandboxLimits(), "made folders more than 32 deep"),
        ("import os; os.kill(os.getpid(), 15)", SandboxLimits(), "was ended by signal 15"),
        ("raise SystemExit(3)", SandboxLimits(), "ended with status 3"),
    ],
)
def test_reason_names_the_limit(code: str, limits: SandboxLimits, said: str, runs: Runs, tmp_path: Path) -> None:
    """Files above a limit do not stay on the disk."""
    assert runs(code, limits)[0] == said
    assert len(list((tmp_path / "box").rglob("*"))) <= 101


LEAVES_PROCESSES = """
import os, signal
if not os.fork():
    if not os.fork():
        os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("runs", flush=True)
    signal.pause()
os.wait()
"""


@pytest.mark.parametrize("ends", ["deadline", "cancelled"])
def test_descendants_after_the_deadline_have_ended(ends: str, runs: Runs, tmp_path: Path) -> None:
    """Every process ends, also in another session, or if it ignores SIGTERM."""
    before = sandboxed_processes(tmp_path)
    seconds = timedelta(seconds=0.5 if ends == "deadline" else 30)
    is_running = (tmp_path / "output").exists
    stop = (lambda: is_running() and len((tmp_path / "output").read_text()) >= 10) if ends == "cancelled" else lambda: False
    reason, printed = runs(LEAVES_PROCESSES, SandboxLimits(wall_clock=seconds), cancelled=stop)
    assert reason == {"deadline": "did not end within 0.5 seconds", "cancelled": "was cancelled"}[ends], printed
    assert sandboxed_processes(tmp_path) == before == []


def sandboxed_processes(folder: Path) -> list[str]:
    """Return the ids of processes whose command line names a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.fsencode(folder / "box") in (process / "cmdline").read_bytes() and process.name != str(os.getpid()):
                found.append(process.name)
    return found


def test_cancelled_command_within_the_grace_ends_by_itself(runs: Runs, tmp_path: Path) -> None:
    """Each process in the sandbox receives SIGTERM, and what the command then writes is in its box."""
    code = """
import signal, sys
def stop(*_):
    open("stopped", "w").close()
    sys.exit()
signal.signal(signal.SIGTERM, stop)
print("runs", flush=True)
signal.pause()
"""
    output = tmp_path / "output"
    stop = lambda: output.exists() and "runs" in output.read_text()  # noqa: E731
    assert runs(code, cancelled=stop, grace=timedelta(seconds=20)) == ("was cancelled", "runs\n")
    assert (tmp_path / "box" / "stopped").exists()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_command_of_an_agent_that_ends_ends_too(how: signal.Signals, tmp_path: Path) -> None:
    """A command in the sandbox does not outlive the process that runs it."""
    (tmp_path / "box").mkdir()
    code = "import os, signal; os.fork(); print('here', flush=True); signal.pause()"
    agent = f"""
import sys
from pathlib import Path
from ioa.sandbox import Level, SandboxLimits, run
output, told = Path({str(tmp_path / "output")!r}), []
def looked():
    if not told and output.read_text().count("here") == 2:
        told.append(print("runs", flush=True))
    return False
run([sys.executable, "-I", "-S", "-c", {code!r}], Path({str(tmp_path / "box")!r}), SandboxLimits(), Level.BWRAP,
    output=output, cancelled=looked)
"""
    with subprocess.Popen([sys.executable, "-c", agent], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"runs\n"
        assert sandboxed_processes(tmp_path)
        process.send_signal(how)
    deadline = time.monotonic() + 10
    while sandboxed_processes(tmp_path) and time.monotonic() < deadline:
        pass
    assert sandboxed_processes(tmp_path) == []


@pytest.mark.parametrize("link", ["box", "output"])
def test_link_as_box_or_output_is_rejected(link: str, tmp_path: Path) -> None:
    """The content of a box is replaced, and the output is truncated: neither happens to the target of a link."""
    target = tmp_path / "target"
    if link == "box":
        target.mkdir()
    else:
        (tmp_path / "box").mkdir()
        target.write_text("text")
    (tmp_path / link).symlink_to(target)
    with pytest.raises((InvalidInputError, OSError)):
        run(["true"], tmp_path / "box", SandboxLimits(), Level.BWRAP, output=tmp_path / "output")
    assert target.is_dir() or target.read_text() == "text"


def test_hostile_archive_stays_in_the_box(tmp_path: Path) -> None:
    """Only files and folders are extracted, and none of them outside of the box."""
    box = tmp_path / "box"
    box.mkdir()

    def unpack(*members: tuple[str, bytes, str]) -> str:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for name, kind, target in members:
                member = tarfile.TarInfo(name)
                member.type, member.linkname, member.size = kind, target, int(kind == tarfile.REGTYPE)
                archive.addfile(member, io.BytesIO(b"x"))
        return sandbox._unpack(packed, box, SandboxLimits(), 1_000)

    links = [("link", tarfile.SYMTYPE, str(tmp_path)), ("hard", tarfile.LNKTYPE, "/etc/passwd"), ("dev", tarfile.CHRTYPE, "")]
    assert unpack(("good", tarfile.REGTYPE, ""), *links, ("link/through", tarfile.REGTYPE, "")) == ""
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "box",
        "box/good",
        "box/link",
        "box/link/through",
    ]
    assert not (box / "link").is_symlink()
    assert unpack(("../outside", tarfile.REGTYPE, "")) == "left a box that cannot be read"
    assert not (tmp_path / "outside").exists()


def test_command_without_a_sandbox_works_in_its_folder(tmp_path: Path) -> None:
    """It has its limits, no input and an empty environment, and may write elsewhere."""
    (tmp_path / "box").mkdir()
    code = f"import os, sys; open({str(tmp_path / 'elsewhere')!r}, 'w'); print(os.getcwd(), 'HOME' in os.environ, sys.stdin.read())"
    output = tmp_path / "output"
    assert run([sys.executable, "-c", code], tmp_path / "box", SandboxLimits(), Level.NONE, output=output) == ""
    assert (output.read_text(), (tmp_path / "elsewhere").exists()) == (f"{tmp_path / 'box'} False \n", True)
    command = [sys.executable, "-c", "bytearray(3_000_000_000)"]
    assert run(command, tmp_path / "box", SandboxLimits(), Level.NONE, output=output) == "ended with status 1"


def test_level_is_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sandbox is the default; another value than a level is rejected."""
    monkeypatch.delenv("IOA_SANDBOX", raising=False)
    assert (level_here(), level_here("none")) == (Level.BWRAP, Level.NONE)
    monkeypatch.setenv("IOA_SANDBOX", "none")
    assert level_here() == Level.NONE
    with pytest.raises(InvalidInputError, match="IOA_SANDBOX is 'landlock'; it must be one of none, bwrap"):
        level_here("landlock")


FAILING = """\
#!/bin/sh
echo "bwrap: No permissions to create new namespace" >&2
exit 1
"""


def test_level_on_a_machine_without_a_sandbox_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code is not run where bubblewrap is missing or may create no namespaces, and the error contains the reason."""
    sandbox._self_test.cache_clear()
    monkeypatch.setattr(sandbox, "find_bubblewrap", lambda: None)
    with pytest.raises(MissingExtraError, match=r"Untrusted code cannot run here: bubblewrap is missing\. Install bubblewrap"):
        level_here("bwrap")
    (program := tmp_path / "bwrap").write_text(FAILING)
    program.chmod(0o755)
    sandbox._self_test.cache_clear()
    monkeypatch.setattr(sandbox, "find_bubblewrap", lambda: str(program))
    with pytest.raises(MissingExtraError, match=r"ended with status 1 \(bwrap: No permissions to create new namespace\)"):
        level_here("bwrap")
    sandbox._self_test.cache_clear()
