"""The sandbox by what it stops, on each level that holds on this machine; one that does not is skipped with the reason."""

from __future__ import annotations

import ctypes
import fcntl
import functools
import io
import os
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ioa.errors import InvalidInputError
from ioa.sandbox import Level, SandboxLimits, confined_process, run, self_test
from ioa.sandbox.box_folder import BLOCK_BYTES, unpack
from ioa.sandbox.confined_process import NOBODY
from ioa.sandbox.landlock import Abi, this_kernel
from ioa.sandbox.levels import missing
from ioa.sandbox.self_test import failure
from ioa.sandbox.trespasses import SEEN_FROM_OUTSIDE, trespasses

PYTHONS = (sys.executable, "/usr/bin/python3")
"""Where this one lies in a folder of root's alone, whom root becomes cannot start it on every level."""
Runs = Callable[..., tuple[str, str]]
LONG = timedelta(seconds=20)
PR_SET_CHILD_SUBREAPER = 36


@functools.cache
def held(level: Level) -> tuple[str, str]:
    """Which interpreter runs on a level, and why none does."""
    reasons = dict.fromkeys(PYTHONS, missing(level))
    for python in PYTHONS:
        reasons[python] = reasons[python] or failure(level, python)
        if not reasons[python]:
            return python, ""
    return "", "; ".join(dict.fromkeys(reasons.values()))


@pytest.fixture(params=[Level.LANDLOCK, Level.BWRAP])
def level(request: pytest.FixtureRequest) -> Level:
    """Each level that holds here."""
    chosen: Level = request.param
    if why := held(chosen)[1]:
        pytest.skip(why)
    return chosen


@pytest.fixture
def runs(level: Level, tmp_path: Path) -> Runs:
    """A function that runs Python code in a sandbox with a box of its own, and gives how it failed and what it printed."""

    def in_sandbox(code: str, limits: SandboxLimits = SandboxLimits(), network: Sequence[int] = ()) -> tuple[str, str]:
        box, output = tmp_path / "box", tmp_path / "output"
        box.mkdir(exist_ok=True)
        reason = run([held(level)[0], "-I", "-S", "-c", code], box, limits, level, network, output=output)
        return reason, output.read_text()

    return in_sandbox


def test_trespasses_are_refused(level: Level) -> None:
    """Reading and writing outside, /etc/shadow, the parent's environment, every socket and signals to others are all refused."""
    assert failure(level, held(level)[0]) == ""


@pytest.mark.parametrize("version", [1, 3, 5])
def test_older_kernels(version: int) -> None:
    """What an older Landlock does not confine, the filter does: all the same is refused."""
    if (why := held(Level.LANDLOCK)[1]) or this_kernel().version < version:
        pytest.skip(why or f"this kernel's Landlock is older than {version}")
    assert failure(Level.LANDLOCK, held(Level.LANDLOCK)[0], Abi(version)) == ""


def test_the_self_test_notices() -> None:
    """Without a sandbox the self-test names what gets done, so that its silence means something."""
    told = failure(Level.NONE)
    names = set(trespasses("0", "0", "0", "0", "", "", "")) - {"read /etc/shadow", "become root"}  # which root alone gets done
    assert {name for name in names if name not in told} == set()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_the_self_test_notices_as_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who becomes nobody, and has no capability left, is refused by his rights what is root's, and nothing else."""
    python = PYTHONS[-1]
    if why := missing(Level.LANDLOCK) or ("" if os.access(python, os.X_OK) else f"there is no {python}"):
        pytest.skip(why)
    plan = confined_process._Confined.plan
    open_to_him = {"landlock": None, "filter": "", "search": False}
    monkeypatch.setattr(confined_process._Confined, "plan", lambda confined: plan(confined) | open_to_him)
    told = failure(Level.LANDLOCK, python)
    names = set(trespasses("0", "0", "0", "0", "", "", ""))
    of_root = {"read /etc/shadow", "become root", "change the mode of a file", "lease a file that it may read", *SEEN_FROM_OUTSIDE}
    of_root |= {"read the environment of its parent"}
    assert {name for name in names if name not in told} == of_root


def test_nobody_else_reaches_what_the_self_test_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor moves anything where code is let in: what it is given lies among files that none but their owner can replace."""
    seen: list[tuple[int, ...]] = []

    def looked(command: Sequence[str], box: Path, *more: Any, output: Path, **others: Any) -> str:
        [outer] = Path(folder).iterdir()
        seen.append(tuple(path.stat().st_mode & 0o777 for path in (outer, box.parent, output.parent)))
        return run(command, box, *more, output=output, **others)

    monkeypatch.setattr(self_test, "run", looked)
    with tempfile.TemporaryDirectory() as folder:  # pytest's has a longer name than sockets may have
        monkeypatch.setattr(tempfile, "tempdir", folder)
        self_test.failure(Level.NONE)
    assert seen == [(0o700, 0o755, 0o700)]


@pytest.mark.parametrize("is_link", ["box", "output"])
def test_no_link_is_followed(is_link: str, tmp_path: Path) -> None:
    """What is in a box may be removed, and what is in the output is: both are whose that a link leads to."""
    (tmp_path / "box").mkdir()
    theirs = tmp_path / "theirs"
    if is_link == "box":
        theirs.mkdir()
        (tmp_path / "box").rmdir()
    else:
        theirs.write_text("theirs")
    (tmp_path / is_link).symlink_to(theirs)
    with pytest.raises((InvalidInputError, OSError)):
        run(["/bin/sh", "-c", "echo x >x"], tmp_path / "box", SandboxLimits(), Level.NONE, output=tmp_path / "output")
    assert (list(theirs.iterdir()) if theirs.is_dir() else theirs.read_text()) in ([], "theirs")


def test_a_project_beside_its_python_is_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Who makes a virtual environment in his project's folder has his seeds and his system's password beside it."""
    if why := held(Level.LANDLOCK)[1]:
        pytest.skip(why)
    venv.create(tmp_path, symlinks=True)
    for name in ("private-url", ".env"):
        (tmp_path / name).write_text("secret")
    (tmp_path / "work" / "box").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    code = """
import json, pathlib, sys
for path in (sys.executable, sys.prefix + "/pyvenv.cfg", sys.prefix + "/private-url", sys.prefix + "/.env"):
    try: print(bool(pathlib.Path(path).read_bytes()))
    except PermissionError: print(False)
"""
    command, output = [str(tmp_path / "bin" / "python"), "-I", "-c", code], tmp_path / "output"
    reason = run(command, tmp_path / "work" / "box", SandboxLimits(), Level.LANDLOCK, output=output)
    assert (reason, output.read_text()) == ("", "True\nTrue\nFalse\nFalse\n")


@pytest.mark.parametrize(
    "code",
    [
        "while True:\n    try: os.fork()\n    except OSError: pass",
        "for _ in range(16): threading.Thread(target=signal.pause).start()",
    ],
)
def test_too_many_processes(code: str, runs: Runs, tmp_path: Path) -> None:
    """Code that forks without end, or has some threads too many, is ended, and nothing of it is left."""
    code = f"import fcntl, os, signal, threading\nfcntl.flock(1, fcntl.LOCK_EX)\n{code}"
    reason, _ = runs(code, SandboxLimits(processes=12, wall_clock=timedelta(seconds=20)))
    check_let_go(tmp_path / "output")
    assert reason == "started more than 12 processes and threads"


def check_let_go(output: Path) -> None:
    """See that nobody is left of those who inherited a file that one of them has locked."""
    with output.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_as_many_processes_as_it_may(runs: Runs) -> None:
    """What has all that it may goes on until it ends by itself."""
    code = """
import os, time
for _ in range(11):
    if not os.fork():
        time.sleep(0.3)
        os._exit(0)
print(sum(1 for _ in range(11) if os.wait()))
"""
    assert runs(code, SandboxLimits(processes=12)) == ("", "11\n")


def test_many_processes_yield_to_others(runs: Runs) -> None:
    """A command has what others have of the processor, until there are so many of it that they would hold others up."""
    code = """
import os, signal, time
def nice(): return os.getpriority(os.PRIO_PROCESS, 0)
before = nice()
for _ in range(20): os.fork() or signal.pause()
while nice() == before: time.sleep(0.01)
print(before, nice())
"""
    here = os.getpriority(os.PRIO_PROCESS, 0)
    assert runs(code) == ("", f"{here} {here + 10}\n")


def test_processes_in_other_containers(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel counts all of a user's on the machine; those that are not seen from here do not count for what is run."""
    monkeypatch.setattr(confined_process, "processes", list)
    code = "import threading\nfor _ in range(99): threading.Thread(target=input).start()\nprint('here', flush=True)"
    user, groups = (NOBODY, ()) if os.geteuid() == 0 else (None, None)
    with subprocess.Popen(
        ["/usr/bin/env", "python3", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=user, extra_groups=groups
    ) as others:
        assert others.stdout is not None
        assert others.stdout.readline() == b"here\n"
        assert runs("import os; os.waitpid(os.fork() or os._exit(0), 0)") == ("", "")


RESERVES = """
import ctypes, fcntl, os, struct
library, room = ctypes.CDLL(None, use_errno=True), 20_000_000
def reserved(file):
    library.fallocate(file, 1, ctypes.c_long(0), ctypes.c_long(room))
    yield
    fcntl.ioctl(file, 0x40305828, struct.pack("=hhiqqiI16x", 0, 0, 0, 0, room, 0, 0))
    yield
for file in (1, os.open("own", os.O_RDWR | os.O_CREAT)):
    try:
        for _ in reserved(file): pass
    except OSError as error:
        print(os.strerror(ctypes.get_errno()), error.strerror)
os.posix_fallocate(file, 0, 4096)
print(os.stat("own").st_size, max(os.fstat(1).st_blocks, os.fstat(file).st_blocks) < 100, flush=True)
"""


def test_room_that_nobody_writes(runs: Runs) -> None:
    """It is reserved neither in the box nor in what gets the output, beyond what limits bound; below them it is."""
    refused = "Operation not supported Inappropriate ioctl for device\n"
    assert runs(RESERVES) == ("", f"{refused * 2}4096 True\n")


KEEPS_MODES = "cp -p a b && cp -a a c && install -m 755 a d && sed -i s/h/y/ b && mv b e && echo done"


def test_programs_that_keep_modes(level: Level, tmp_path: Path) -> None:
    """They set them by attributes where a file system has any, so they are told that it has none, and then say nothing."""
    box, output = tmp_path / "box", tmp_path / "output"
    box.mkdir()
    (box / "a").write_text("hello")
    said = run(["/bin/sh", "-c", KEEPS_MODES], box, SandboxLimits(), level, output=output, environment={"PATH": os.defpath})
    assert (said, output.read_text(), (box / "e").read_text()) == ("", "done\n", "yello")


def test_no_room_outlasts_what_reserved_it(tmp_path: Path) -> None:
    """Where nothing refuses it, it counts, and is given back."""
    (tmp_path / "box").mkdir()
    output, code = tmp_path / "output", RESERVES.replace("os.posix_fallocate", "import signal; signal.pause()\n#")
    command = [sys.executable, "-c", code]
    little, much = (SandboxLimits(box_bytes=most, file_bytes=100_000_000) for most in (10_000_000, 100_000_000))
    told = [
        run(command, tmp_path / "box", little, Level.NONE, output=output),
        run(command, tmp_path / "box", much, Level.NONE, output=output, overdue=lambda: is_taken(output)),
    ]
    assert (told, is_taken(output)) == (["reserved more than 10000000 bytes", "was cancelled"], False)


def is_taken(output: Path) -> bool:
    """Whether a file takes far more room than it is long."""
    return output.stat().st_blocks * BLOCK_BYTES > output.stat().st_size + 1_000_000


@pytest.mark.parametrize("goes_on", ["", "os.fork() or os.execvp('cat', ['cat'])", "os.fork() or sys.stdin.read() or os._exit(0)"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_what_runs_ends_with_its_agent(how: signal.Signals, goes_on: str, level: Level, tmp_path: Path) -> None:
    """However an agent ends, nothing that its code has started goes on, though what it has started or forked besides does."""
    code = """
import fcntl, os, signal
if not os.fork():
    fcntl.lockf(1, fcntl.LOCK_EX)
    signal.signal(signal.SIGALRM, lambda *_: print("goes on", flush=True))
    signal.alarm(10)
    print("here", flush=True)
signal.pause()
"""
    (tmp_path / "box").mkdir()
    (tmp_path / "output").touch()
    command = [held(level)[0], "-I", "-S", "-c", code]
    agent = f"""
import os, pathlib, sys
from ioa.sandbox import Level, SandboxLimits, run
told = False
def looked():
    global told
    if not told and pathlib.Path({str(tmp_path / "output")!r}).read_text():
        told = True
        {goes_on}
        print('runs', flush=True)
    return False
run({command!r}, pathlib.Path({str(tmp_path / "box")!r}), SandboxLimits(), Level({str(level)!r}),
    output=pathlib.Path({str(tmp_path / "output")!r}), cancelled=looked)
"""
    with (
        subprocess.Popen([sys.executable, "-c", agent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one,
        (tmp_path / "output").open("r+") as output,
    ):
        assert one.stdout is not None
        assert one.stdout.readline() == b"runs\n"
        one.send_signal(how)
        one.wait()
        fcntl.lockf(output, fcntl.LOCK_EX)  # had once that has ended
        assert (one.returncode, output.read()) == (-how, "here\n")


def test_children_without_a_parent(runs: Runs) -> None:
    """Where this process is told of orphans, as a container's first one is, none of those that code leaves stays behind."""
    code = """
import os
for _ in range(20):
    if not (child := os.fork()):
        os.fork()
        os._exit(0)
    os.waitpid(child, 0)
"""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        before = children()
        assert runs(code, SandboxLimits()) == ("", "")
        assert children() == before
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0)


def children() -> set[int]:
    """The ids of this process's children, those included that have ended and are waited for."""
    return {int(child) for task in Path("/proc/self/task").iterdir() for child in (task / "children").read_text().split()}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("bytearray(3_000_000_000)", "MemoryError"),
        ("import os; os.memfd_create('room')", "not implemented"),
        ("open('big', 'wb').truncate(10_000_000_000)", "File too large"),
        ("open('big', 'wb').write(bytes(30_000_000))", "File too large"),
    ],
)
def test_memory_and_large_files(code: str, said: str, runs: Runs) -> None:
    """3 GB of memory, memory that no limit counts, and a file of 10 GB are refused."""
    reason, printed = runs(code)
    assert (reason, said in printed) == ("ended with status 1", True)


@pytest.mark.parametrize("room", ["bytearray(12_000_000)", "mmap.mmap(-1, 12_000_000)"])
def test_memory_of_all_processes(room: str, runs: Runs) -> None:
    """Processes that each hold a little, or share some by pairs, are ended when they hold too much together."""
    code = f"""
import mmap, os, signal
for _ in range(12):
    if not os.fork():
        room = {room}
        for place in range(0, len(room), 4096): room[place] = 1
        signal.pause()
signal.pause()
"""
    limits = SandboxLimits(memory_in_all_bytes=100_000_000, wall_clock=timedelta(seconds=10))
    assert runs(code, limits) == ("took more than 100000000 bytes of memory in all", "")


def test_who_is_ended_where_memory_runs_out(level: Level, tmp_path: Path) -> None:
    """The kernel takes what is run, and what that has started, before its agent."""
    (tmp_path / "box").mkdir()
    before, told = children(), set[str]()

    def looked() -> bool:
        if not (tmp_path / "output").read_text():
            return False
        told.update(
            Path(f"/proc/{child}/oom_score_adj").read_text()
            for child in children() - before
            if "heir.py" not in Path(f"/proc/{child}/cmdline").read_text()
        )
        return True

    code = "import signal; print('here', flush=True); signal.pause()"
    run([held(level)[0], "-c", code], tmp_path / "box", SandboxLimits(), level, output=tmp_path / "output", cancelled=looked)
    assert told == {"1000\n"}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import select; select.epoll()", "not implemented"),
        ("import fcntl; fcntl.fcntl(open('own', 'x'), fcntl.F_SETLEASE, fcntl.F_WRLCK)", "not permitted"),
        ("import fcntl, os; fcntl.fcntl(os.open('.', os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_ACCESS)", "not permitted"),
    ],
)
def test_what_others_would_wait_for(code: str, said: str, runs: Runs) -> None:
    """What the kernel counts for all of a user's processes cannot be used up; of files, one's own included, there is no lease."""
    reason, printed = runs(code)
    assert (reason, said in printed) == ("ended with status 1", True), printed


def test_what_others_share_by_number(runs: Runs) -> None:
    """Memory, semaphores and queues that exist are not reached, whichever number is tried: it is not told that there is none."""
    code = """
import ctypes, os
library, room = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(128)
library.shmat.restype = ctypes.c_ssize_t
unlink = {"x86_64": 241, "aarch64": 181}[os.uname().machine]
for failed in (
    library.shmctl(0, 14, room), library.shmat(-1, None, 0), library.semctl(0, 0, 19, room), library.semop(-1, room, 1),
    library.msgctl(0, 12, room), library.msgrcv(-1, room, 8, 0, 0o4000), library.msgsnd(-1, room, 8, 0o4000),
    library.syscall(unlink, b"none"),
):
    print(failed, os.strerror(ctypes.get_errno()))
"""
    assert runs(code) == ("", "-1 Operation not permitted\n" * 8)


def test_asyncio_without_epoll(runs: Runs) -> None:
    """It takes another way: programs that are started and pairs of sockets are read from."""
    code = """
import asyncio, socket, sys
async def main():
    one, other = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=one)
    other.sendall(b"heard\\n")
    program = await asyncio.create_subprocess_exec(sys.executable, "-c", "print('done')", stdout=asyncio.subprocess.PIPE)
    print((await reader.readline() + (await program.communicate())[0]).decode(), end="")
asyncio.run(main())
"""
    assert runs(code) == ("", "heard\ndone\n")


def test_epoll_may_be_had(runs: Runs) -> None:
    """Whoever chooses the program may choose so, since some start without it nowhere."""
    assert runs("import os, select; select.epoll().register(os.pipe()[0])", SandboxLimits(epoll=True)) == ("", "")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("for n in range(10_000): open(str(n), 'w')", "made more than 100 files"),
        ("for n in range(40): open(str(n), 'wb').write(bytes(1_000_000))", "wrote more than 5000000 bytes"),
        ("import os\nfor n in range(2_000): os.mkdir('d'); os.chdir('d')", "made folders more than 32 deep"),
    ],
)
def test_a_full_box(code: str, said: str, level: Level, runs: Runs, tmp_path: Path) -> None:
    """Thousands of files or folders, or many large ones, end the code, and what is beyond the limits does not stay on the disk."""
    reason, printed = runs(code, SandboxLimits(files=100, box_bytes=5_000_000))
    full = level is Level.BWRAP and "No space left on device" in printed
    left = list((tmp_path / "box").rglob("*"))
    assert (reason == said or full, len(left) <= 101) == (True, True), (reason, printed)


def test_a_box_that_no_path_reaches(level: Level, runs: Runs, tmp_path: Path) -> None:
    """Files below folders whose names are longer together than a path may be counted nowhere; nothing of them stays."""
    code = """
import os
for _ in range(18): os.mkdir('n' * 250); os.chdir('n' * 250)
for n in range(1_000): open(str(n), 'w')
"""
    reason, _ = runs(code, SandboxLimits(files=100))
    said = "left a box that cannot be read" if level is Level.BWRAP else "made more than 100 files"
    assert (reason, [path for path in (tmp_path / "box").rglob("*") if path.is_file()]) == (said, [])


def test_what_is_overdue_is_killed(tmp_path: Path) -> None:
    """A command that is wanted still, and ought to have ended, goes on no longer; what it has left is there."""
    (tmp_path / "box").mkdir()
    reason = run(
        [sys.executable, "-c", "import signal; open('made', 'w'); signal.pause()"], tmp_path / "box", SandboxLimits(), Level.NONE,
        output=tmp_path / "output", overdue=(tmp_path / "box" / "made").exists,
    )  # fmt: skip
    assert (reason, (tmp_path / "box" / "made").exists()) == ("was cancelled", True)


def test_deadline_with_a_grandchild(runs: Runs, tmp_path: Path) -> None:
    """At the deadline all processes end, those too whose parents have ended or that wanted a session of their own."""
    code = """
import fcntl, os, signal, sys
fcntl.flock(1, fcntl.LOCK_EX)
if not os.fork():
    if not os.fork():
        try: os.setsid()
        except OSError: pass
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pause()
signal.pause()
"""
    reason, _ = runs(code, SandboxLimits(wall_clock=timedelta(seconds=1)))
    check_let_go(tmp_path / "output")
    assert reason == "did not end within 1 seconds"


def test_ports(runs: Runs) -> None:
    """With a port allowed, TCP to it works; to another one, datagrams, UNIX sockets, pairs and listening are refused still."""
    if not this_kernel().confines_tcp:
        pytest.skip("this kernel's Landlock does not confine TCP")
    with socket.create_server(("127.0.0.1", 0)) as wanted, socket.create_server(("127.0.0.1", 0)) as other:
        ports = [one.getsockname()[1] for one in (wanted, other)]
        code = f"""
import socket
for port in {ports}:
    try:
        print(socket.create_connection(("127.0.0.1", port), 1).fileno() > 0)
    except PermissionError:
        print(False)
for opens, *kind in (
    (socket.socket, socket.AF_INET, socket.SOCK_DGRAM), (socket.socket, socket.AF_UNIX, socket.SOCK_STREAM),
    (socket.socketpair, socket.AF_UNIX, socket.SOCK_DGRAM), (socket.socketpair, socket.AF_UNIX, socket.SOCK_SEQPACKET),
):
    try:
        print(opens(*kind))
    except PermissionError:
        print(False)
try:
    socket.socket().listen()
except PermissionError:
    print(False)
"""
        assert runs(code, network=ports[:1]) == ("", "True\nFalse\nFalse\nFalse\nFalse\nFalse\nFalse\n")


def test_ports_on_an_older_kernel(tmp_path: Path) -> None:
    """Where connections cannot be confined to ports, none is allowed rather than all of them."""
    with pytest.raises(InvalidInputError, match="cannot confine connections to ports"):
        run(["true"], tmp_path, SandboxLimits(), Level.LANDLOCK, [80], output=tmp_path / "output", kernel=Abi(3))


def test_what_comes_out(runs: Runs, tmp_path: Path) -> None:
    """Code reads what is in its box, and what it wrote there is there afterwards, in folders too; what it removed is gone."""
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


def test_a_hostile_archive(tmp_path: Path) -> None:
    """Of what comes out of a namespace only plain files and folders are taken, and none lands outside of the box."""
    box, packed = tmp_path / "box", io.BytesIO()
    box.mkdir()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name in ("../outside", "/tmp/ioa-outside", "good"):
            archive.addfile(_member(name, size=1), io.BytesIO(b"x"))
        archive.addfile(_member("link", tarfile.SYMTYPE, str(tmp_path)))
        archive.addfile(_member("link/through", size=1), io.BytesIO(b"x"))
        archive.addfile(_member("hard", tarfile.LNKTYPE, "/etc/passwd"))
        archive.addfile(_member("device", tarfile.CHRTYPE))
    assert unpack(packed, box, SandboxLimits()) == ""
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "box",
        "box/good",
        "box/link",
        "box/link/through",
    ]
    assert not (box / "link").is_symlink()
    assert unpack(io.BytesIO(b"no archive"), box, SandboxLimits()) == "left a box that cannot be read"


def _member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, target, size
    return member
