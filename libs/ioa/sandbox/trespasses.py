"""What a sandbox has to stop, tried from inside: the program prints what of it it got done.

The self-test runs it (`ioa.sandbox.self_test`). It imports nothing of IoA. A line for each trespass that succeeded; the last line
says that all were tried, so that silence is no success.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ALL_TRIED = "all tried"
WRITABLE = "writable"
"""A folder beside the files, in which every user may make some."""
STOP, STOP_BY_FILE, SLOW_DOWN = SEEN_FROM_OUTSIDE = (
    "stop a process outside", "have a file stop a process outside", "change the priority of a process outside",
)  # fmt: skip
"""In namespaces of its own a number is another process's, so what came of these is seen at the right one."""


_IN_ACCESS, _F_SETSIG, _SHM_INFO, _CLONE_PARENT = 1, 10, 14, 0x8000
_KEEP_SIZE, _RESERVE, _ROOM_BYTES = 1, 0x4030_5828, 4096
_CLONE = {"x86_64": 56, "aarch64": 220}


def _read(path: str) -> None:
    Path(path).read_bytes()


def _list(outside: Path) -> None:
    if outside not in outside.parent.iterdir():  # namespaces show the folder, and nothing in it
        raise FileNotFoundError


def _cut(path: str) -> None:
    os.close(os.open(path, os.O_RDONLY | os.O_TRUNC))


def _close(path: str) -> None:
    before = Path(path).stat().st_mode
    Path(path).chmod(0o600)
    if Path(path).stat().st_mode == before:  # it was only told so
        raise PermissionError


def _slow_down(process: int) -> None:
    os.setpriority(os.PRIO_PROCESS, process, os.getpriority(os.PRIO_PROCESS, process) + 1)


def _connect(family: int, address: str | tuple[str, int]) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(1)
        client.connect(address)


def _send_from_a_pair(address: str) -> None:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, other:
        one.sendto(b"x", address)


def _watch(path: str) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.inotify_add_watch(library.inotify_init1(0), os.fsencode(path), _IN_ACCESS) < 0:
        raise OSError(ctypes.get_errno(), "cannot be watched")


def _register() -> None:
    """Have epoll watch something, which the kernel counts for all of a user's processes on the machine."""
    read, _ = os.pipe()
    select.epoll().register(read)


def _look_for_memory() -> None:
    """Look what memory others share by number (System V)."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.shmctl(0, _SHM_INFO, ctypes.create_string_buffer(128)) < 0:
        raise OSError(ctypes.get_errno(), "cannot be looked for")


def _lease(path: str) -> None:
    """Have whoever opens a file next wait."""
    fcntl.fcntl(os.open(path, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK)


def _reserve() -> None:
    """Take room on the disk behind the end of the file that gets what is printed, which no limit on files bounds."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.fallocate(1, _KEEP_SIZE, ctypes.c_long(0), ctypes.c_long(_ROOM_BYTES)):
        raise OSError(ctypes.get_errno(), "no room is to be had")


def _reserve_otherwise() -> None:
    """Do so as file systems offer it (FS_IOC_RESVSP)."""
    fcntl.ioctl(1, _RESERVE, struct.pack("=hhiqqiI16x", 0, 0, 0, 0, _ROOM_BYTES, 0, 0))


def _send(address: tuple[str, int]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"x", address)


def _signal(process: int) -> None:
    """Have the process owned by a pipe that signals its owner when there is news."""
    read, write = os.pipe()
    fcntl.fcntl(read, fcntl.F_SETOWN, process)
    fcntl.fcntl(read, _F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC)
    os.write(write, b"x")


def _give_away() -> None:
    """Begin a child of one's own parent, which is never told of its end."""
    library = ctypes.CDLL(None, use_errno=True)
    child = library.syscall(_CLONE[os.uname().machine], ctypes.c_ulong(_CLONE_PARENT | signal.SIGCHLD), 0, 0, 0, 0)
    if child < 0:
        raise OSError(ctypes.get_errno(), "cannot be begun")
    if not child:
        os._exit(0)


def _leave() -> None:
    """Begin a session, in a child, since who leads a group may not."""
    child = os.fork()
    if not child:
        try:
            os.setsid()
        except OSError:
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise PermissionError


def trespasses(
    parent: str, victim: str, owner: str, port: str, listener: str, secret: str, shared: str
) -> dict[str, Callable[[], object]]:
    """List what is tried: each raises `OSError` if it is refused."""
    here = ("127.0.0.1", int(port))
    return {
        "read /etc/shadow": lambda: _read("/etc/shadow"),
        "read a file outside": lambda: _read(secret),
        "list a folder outside": lambda: _list(Path(secret)),
        "write a file outside": lambda: Path(secret).open("a").close(),
        "make a file outside": lambda: Path(secret).with_name(WRITABLE).joinpath("made").write_text("x"),
        "truncate a file outside": lambda: os.truncate(secret, 0),
        "truncate a file that it may read": lambda: _cut(shared),
        "change the mode of a file": lambda: _close(shared),
        SLOW_DOWN: lambda: _slow_down(int(victim)),
        "read the environment of its parent": lambda: _read(f"/proc/{parent}/environ"),
        "connect to a server on this machine": lambda: _connect(socket.AF_INET, here),
        "send a datagram": lambda: _send(here),
        "connect to a UNIX socket": lambda: _connect(socket.AF_UNIX, listener),
        "send a datagram from a pair of sockets": lambda: _send_from_a_pair(f"{listener}-2"),
        "watch a file outside": lambda: _watch(secret),
        "register watches": _register,
        "look for memory of others": _look_for_memory,
        "lease a file that it may read": lambda: _lease(shared),
        "reserve room on the disk": _reserve,
        "reserve room on the disk by ioctl": _reserve_otherwise,
        "leave its process group": _leave,
        "leave a child to its parent": _give_away,
        "become root": lambda: os.setuid(0),
        STOP: lambda: os.kill(int(victim), signal.SIGTERM),
        STOP_BY_FILE: lambda: _signal(int(owner)),
    }


def main(*arguments: str) -> None:
    """Try everything, and whether a program can still work."""
    for name, attempt in trespasses(*arguments).items():
        try:
            attempt()
        except OSError:
            continue
        if name not in SEEN_FROM_OUTSIDE:
            sys.stdout.write(f"{name}\n")
    Path("own").write_text("x")
    subprocess.run([sys.executable, "-I", "-S", "-c", "import socket; socket.socketpair()"], check=True)
    sys.stdout.write(f"{ALL_TRIED}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
