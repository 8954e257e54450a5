"""Actions that a sandbox must prevent, attempted from inside. The program imports nothing of IoA.

It prints the name of each action that succeeded, and at last that it has attempted all of them.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ALL_ATTEMPTED = "all attempted"
WRITABLE = "writable"
"""A folder in which every user may create files."""
SHARED_MEMORY = 0x10A
_IN_ACCESS, _F_SETSIG, _CLONE_NEWUSER = 1, 10, 0x1000_0000
_KEEP_SIZE, _RESERVE, _ROOM_BYTES = 1, 0x4030_5828, 4096
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _list(outside: Path) -> None:
    if outside not in outside.parent.iterdir():
        raise FileNotFoundError


def _change_mode(path: str) -> None:
    before = Path(path).stat().st_mode
    Path(path).chmod(before ^ 0o004)
    Path(path).chmod(before)


def _connect(family: int, address: str | tuple[str, int]) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(1)
        client.connect(address)


def _send_datagram(family: int, address: str | tuple[str, int]) -> None:
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.sendto(b"x", address)


def _signal_by_pipe(process: int) -> None:
    """Make the process the owner of a pipe, which signals its owner when data arrives."""
    read, write = os.pipe()
    fcntl.fcntl(read, fcntl.F_SETOWN, process)
    fcntl.fcntl(read, _F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC)
    os.write(write, b"x")


def attempts(
    parent: str, victim: str, owner: str, port: str, datagram_port: str, listener: str, secret: str, shared: str
) -> dict[str, Callable[[], object]]:
    """Return each action by its name; an action that is prevented raises `OSError`."""
    return {
        "read /etc/shadow": lambda: Path("/etc/shadow").read_bytes(),
        "read a file outside": lambda: Path(secret).read_bytes(),
        "list a folder outside": lambda: _list(Path(secret)),
        "write a file outside": lambda: Path(secret).open("a").close(),
        "create a file outside": lambda: Path(secret).with_name(WRITABLE).joinpath("made").write_text("x"),
        "truncate a file outside": lambda: os.truncate(secret, 0),
        "truncate a readable file": lambda: os.close(os.open(shared, os.O_RDONLY | os.O_TRUNC)),
        "change the mode of a readable file": lambda: _change_mode(shared),
        "change the mode of a device": lambda: _change_mode("/dev/null"),
        "create a file in the system": lambda: Path(sys.prefix, "made").write_text("x"),
        "mount": lambda: _check(_libc.mount(b"none", os.fsencode(Path.cwd()), b"tmpfs", 0, None)),
        "create a user namespace": lambda: _check(_libc.unshare(_CLONE_NEWUSER)),
        "read the environment of its parent": lambda: Path(f"/proc/{parent}/environ").read_bytes(),
        "connect to a server on this machine": lambda: _connect(socket.AF_INET, ("127.0.0.1", int(port))),
        "send a datagram": lambda: _send_datagram(socket.AF_INET, ("127.0.0.1", int(datagram_port))),
        "connect to a UNIX socket": lambda: _connect(socket.AF_UNIX, listener),
        "connect to an abstract UNIX socket": lambda: _connect(socket.AF_UNIX, f"\0{secret}"),
        "send a datagram to a UNIX socket": lambda: _send_datagram(socket.AF_UNIX, f"{listener}-2"),
        "watch a file outside": lambda: _check(_libc.inotify_add_watch(_libc.inotify_init1(0), os.fsencode(secret), _IN_ACCESS)),
        "attach the memory of another process": lambda: _check(_libc.shmget(SHARED_MEMORY, 0, 0)),
        "reserve space on the disk": lambda: _check(_libc.fallocate(1, _KEEP_SIZE, ctypes.c_long(0), ctypes.c_long(_ROOM_BYTES))),
        "reserve space on the disk by ioctl": lambda: fcntl.ioctl(
            1, _RESERVE, struct.pack("=hhiqqiI16x", 0, 0, 0, 0, _ROOM_BYTES, 0, 0)
        ),
        "change the priority of a process outside": lambda: os.setpriority(os.PRIO_PROCESS, int(victim), 5),
        "stop a process outside": lambda: os.kill(int(victim), signal.SIGTERM),
        "stop a process outside by a pipe": lambda: _signal_by_pipe(int(owner)),
    }


OBSERVED_OUTSIDE = {
    "send a datagram", "change the priority of a process outside", "stop a process outside", "stop a process outside by a pipe",
}  # fmt: skip
"""In its own namespaces, the program may reach another process or server of the same number."""

ONLY_CONFINED = {"create a file in the system", "change the mode of a device", "mount", "create a user namespace"}
"""Not attempted without a sandbox, because they change this machine or what the other attempts may do."""


def main(level: str, *arguments: str) -> None:
    """Attempt everything, and also start a program and create a socket, which must work."""
    for name, attempt in attempts(*arguments).items():
        if level == "none" and name in ONLY_CONFINED:
            continue
        try:
            attempt()
        except OSError:
            continue
        if name not in OBSERVED_OUTSIDE:
            sys.stdout.write(f"{name}\n")
    Path("own").write_text("x")
    subprocess.run([sys.executable, "-I", "-S", "-c", "import socket; socket.socketpair()"], check=True)
    sys.stdout.write(f"{ALL_ATTEMPTED}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
