"""The filter of system calls, run as the kernel runs it, for every machine that it is made for."""

from __future__ import annotations

import struct
from collections.abc import Callable
from errno import ENOSYS, EPERM

import pytest

from ioa.sandbox.seccomp import MACHINES, NUMBERS, program, refusals

ARCHITECTURE = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
ALLOWED, KILLED, PRETENDED = 0x7FFF_0000, 0x8000_0000, -2
Verdict = Callable[..., int]


def verdict(code: bytes, number: int, architecture: int, *arguments: int) -> int:
    """Run a filter on one call, as the kernel does: its errno; 0: allowed, -1: killed, -2: not done and told it was."""
    data = struct.pack("=iIQ6Q", number, architecture, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    steps = [struct.unpack_from("=HBBI", code, place) for place in range(0, len(code), 8)]
    value = place = 0
    while True:
        operation, then, otherwise, constant = steps[place]
        place += 1
        match operation:
            case 0x20:
                [value] = struct.unpack_from("=I", data, constant)
            case 0x54:
                value &= constant
            case 0x15 | 0x35:
                place += then if (value == constant if operation == 0x15 else value >= constant) else otherwise
            case 0x06:
                return -1 if constant == KILLED else 0 if constant == ALLOWED else constant & 0xFFFF or PRETENDED
            case _:
                raise AssertionError(f"no such operation: {operation:#x}")


def calls(
    machine: str,
    *,
    owned: bool = False,
    tcp: bool = False,
    epoll: bool = False,
    signals: bool = False,
    truncation: bool = False,
) -> Verdict:
    """A function that says what becomes of a call by its name."""
    code = program(machine, tuple(refusals(owned=owned, tcp=tcp, epoll=epoll, signals=signals, truncation=truncation)))
    return lambda name, *arguments: verdict(code, NUMBERS[machine][name], ARCHITECTURE[machine], *arguments)


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_always_refused(machine: str) -> None:
    """Whatever outlives the group, goes round the checks or opens a socket is refused; a thread or a child is not."""
    call = calls(machine)
    refused = ["setsid", "setpgid", "shmget", "keyctl", "unshare", "mount", "bpf", "ptrace", "open_by_handle_at", "socket"]
    assert [call(name) for name in refused] == [EPERM] * len(refused)
    assert [call(name) for name in ("io_uring_setup", "clone3", "memfd_create")] == [ENOSYS] * 3
    assert [call("clone", flags) for flags in (0x11, 0x3D0F00, 0x1000_0011, 0x8011)] == [0, 0, EPERM, EPERM]
    assert [call(name, 1, 2) for name in ("openat", "kill", "sendto", "truncate", "listen")] == [0] * 5


@pytest.mark.parametrize("machine", MACHINES)
def test_only_tcp(machine: str) -> None:
    """With ports, sockets of TCP over IP are opened and no others; none of them listens or connects by its first message."""
    call = calls(machine, tcp=True)
    opened = [(2, 1, 0), (10, 1, 6), (2, 0x80801, 0)]
    refused = [(1, 1, 0), (2, 2, 0), (2, 3, 0), (2, 1, 262), (16, 3, 0), (40, 1, 0)]
    assert [call("socket", *one) for one in opened] == [0] * len(opened)
    assert [call("socket", *one) for one in refused] == [EPERM] * len(refused)
    assert [call("sendto", 3, 0, 0, 0x2000_0000), call("sendmsg", 3, 0, 0x2000_0040), call("listen", 3, 1)] == [EPERM] * 3
    assert [call("sendto", 3, 0, 0, 0x4000), call("sendmsg", 3, 0, 0)] == [0, 0]


def test_other_architectures() -> None:
    """Numbers of another architecture mean other calls: the process ends, or is told that there is no such call."""
    code = program("x86_64", tuple(refusals(owned=False, tcp=False, epoll=False, signals=False, truncation=False)))
    native = ARCHITECTURE["x86_64"]
    assert [verdict(code, 41, 0x4000_0003), verdict(code, 0x4000_0029, native), verdict(code, 39, native)] == [-1, ENOSYS, 0]
