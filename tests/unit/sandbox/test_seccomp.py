"""The filter of system calls, run as the kernel runs it, for every machine that it is made for."""

from __future__ import annotations

import struct
from collections.abc import Callable
from errno import ENOSYS, ENOTTY, EOPNOTSUPP, EPERM

import pytest

from ioa.sandbox.seccomp import MACHINES, NUMBERS, SELF, program, refusals

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
def test_what_is_counted_for_the_whole_machine(machine: str) -> None:
    """Watches and asynchronous reading are unknown, so that other ways are taken; of these epoll alone may be had."""
    others = [name for name in ("inotify_init", "inotify_init1", "fanotify_init", "io_setup") if name in NUMBERS[machine]]
    epolls = [name for name in ("epoll_create", "epoll_create1") if name in NUMBERS[machine]]
    assert [calls(machine)(name) for name in (*others, *epolls)] == [ENOSYS] * len([*others, *epolls])
    assert [calls(machine, epoll=True)(name) for name in (*others, *epolls)] == [ENOSYS] * len(others) + [0] * len(epolls)


@pytest.mark.parametrize("machine", MACHINES)
def test_what_others_share_by_number(machine: str) -> None:
    """What exists is neither made, looked for, used nor removed, since its numbers can be tried and nothing else keeps it apart."""
    refused = "shmget shmat shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink".split()
    assert [calls(machine)(name) for name in refused] == [EPERM] * len(refused)


@pytest.mark.parametrize("machine", MACHINES)
def test_no_leases_and_no_word_of_folders(machine: str) -> None:
    """Nobody's opening of a file waits for the code, and it is not told of what others do; what else `fcntl` does is allowed."""
    assert [calls(machine)("fcntl", 3, command) for command in (1, 4, 6, 1024, 1026, 1030)] == [0, 0, 0, EPERM, EPERM, 0]


@pytest.mark.parametrize("machine", MACHINES)
def test_room_that_nobody_writes(machine: str) -> None:
    """It is had by what a limit on files bounds alone; of `ioctl` by nothing, and what descriptors of any kind have is allowed."""
    call = calls(machine)
    assert [call("fallocate", 1, mode) for mode in (0, 1, 3, 0x10, 0x40)] == [0] + [EOPNOTSUPP] * 4
    room = (0x4030_5828, 0x4030_582A, 0x4030_582B, 0x4030_5839, 0x4020_5820, 0x4008_6602)
    assert [call("ioctl", 1, request) for request in room] == [ENOTTY] * len(room)
    assert [call("ioctl", 1, request) for request in (0x4004_9409, 0x4020_940D)] == [EOPNOTSUPP] * 2
    assert [call("ioctl", 1, request) for request in (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)] == [0] * 6
    assert [call("ioctl", 1, request) for request in (0x8901, 0x8902)] == [ENOTTY] * 2
    assert [call(name) for name in ("setxattr", "fsetxattr", "fremovexattr")] == [EOPNOTSUPP] * 3
    assert [call(name) for name in ("setxattrat", "removexattrat", "file_setattr")] == [ENOSYS] * 3


@pytest.mark.parametrize("machine", MACHINES)
def test_what_an_owner_may(machine: str) -> None:
    """Modes and times of files stay as they are, without an error; limits and priorities can be set of oneself alone."""
    call = calls(machine, owned=True)
    assert [call(name) for name in ("fchmodat", "fchmod", "fchownat", "utimensat")] == [PRETENDED] * 4
    assert (call("fchmodat2"), calls(machine)("fchmodat2")) == (ENOSYS, 0)
    assert (
        [call("prlimit64", who) for who in (0, SELF, 1)]
        == [call("sched_setaffinity", who) for who in (0, SELF, 1)]
        == [0, 0, EPERM]
    )
    assert [call("setpriority", *one) for one in ((0, 0), (0, SELF), (0, 1), (2, 0))] == [0, 0, EPERM, EPERM]


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


@pytest.mark.parametrize("machine", MACHINES)
def test_older_kernels(machine: str) -> None:
    """Where Landlock confines neither signals nor truncation, the filter does: a process reaches itself and its group alone."""
    call = calls(machine, signals=True, truncation=True)
    assert [call("kill", who, 9) for who in (SELF, 0, 1, 0xFFFF_FFFF)] == [0, 0, EPERM, EPERM]
    assert [call("tgkill", SELF, 7, 6), call("tgkill", 1, 1, 9), call("pidfd_send_signal", 3, 9)] == [0, EPERM, EPERM]
    assert [call("fcntl", 3, command) for command in (1, 4, 8, 9, 10, 15, 1024, 1030)] == [0, 0, EPERM, 0, EPERM, EPERM, EPERM, 0]
    ways = {0o0: 0, 0o2: 0, 0o1001: 0, 0o1102: 0, 0o1000: EPERM, 0o2001000: EPERM}
    assert {flags: call("openat", 0, 0, flags) for flags in ways} == ways
    assert call("truncate") == EPERM


def test_other_architectures() -> None:
    """Numbers of another architecture mean other calls: the process ends, or is told that there is no such call."""
    code = program("x86_64", tuple(refusals(owned=False, tcp=False, epoll=False, signals=False, truncation=False)))
    native = ARCHITECTURE["x86_64"]
    assert [verdict(code, 41, 0x4000_0003), verdict(code, 0x4000_0029, native), verdict(code, 39, native)] == [-1, ENOSYS, 0]
