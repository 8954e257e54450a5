"""The filter of system calls: what no other part of a sandbox stops, written as BPF (seccomp(2), linux/filter.h). Pure.

It is a list of what is refused, so that a program meets no refusal that this list does not explain:

- sockets, since Landlock lets a process connect to a UNIX socket anywhere; with ports allowed, all but TCP; of pairs all but
  streams, since one of datagrams can be sent from to any address;
- whatever outlives the process group or its limits: sessions and groups of one's own, System V and POSIX queues, memory without a
  mapping, the kernel's key rings;
- memory, semaphores and queues of others (System V), which have numbers to try and no path for Landlock, and the removal of POSIX
  queues;
- what the kernel counts for a user, or for all, on the whole machine, in other containers too: watches of epoll and of folders
  (inotify), asynchronous reading (aio);
- room on the disk that nobody has written: RLIMIT_FSIZE bounds neither `fallocate` behind a file's end, nor what file systems offer
  by `ioctl`, nor attributes of a file; so of `ioctl` only what terminals and descriptors of any kind have is let through;
- leases of files, whose next opener waits, and word of what others do in a folder (fcntl(2));
- ways round what is checked elsewhere: `io_uring`, handles of files, other architectures' numbers, new user namespaces;
- without namespaces, what Landlock leaves to the owner of a file or process: modes, times, attributes, priorities, limits;
- children given to whoever started the sandbox, whose they would stay when they have ended;
- on older kernels, signals to others (also from a file that tells its owner of news) and the truncation of files, which their
  Landlock does not know.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from errno import ENOSYS, ENOTTY, EOPNOTSUPP, EPERM

SELF = 0x1DEA_5E1F
"""Stands for the process's own id, which the launcher puts in its place."""

_AUDIT = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
MACHINES = tuple(_AUDIT)
_X32 = 0x4000_0000

_X86_64 = {
    "open": 2, "ioctl": 16, "shmget": 29, "socket": 41, "sendto": 44, "sendmsg": 46, "listen": 50, "clone": 56, "kill": 62,
    "semget": 64, "msgget": 68, "fcntl": 72, "truncate": 76, "ptrace": 101, "setpgid": 109, "setsid": 112, "rt_sigqueueinfo": 129,
    "pivot_root": 155, "chroot": 161, "mount": 165, "umount2": 166, "tkill": 200, "tgkill": 234, "mq_open": 240, "add_key": 248,
    "request_key": 249, "keyctl": 250, "openat": 257, "unshare": 272, "rt_tgsigqueueinfo": 297, "perf_event_open": 298,
    "open_by_handle_at": 304, "sendmmsg": 307, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
    "memfd_create": 319, "bpf": 321, "userfaultfd": 323, "socketpair": 53, "inotify_init": 253, "inotify_init1": 294,
    "fanotify_init": 300, "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "utime": 132, "utimes": 235,
    "fchownat": 260, "futimesat": 261, "fchmodat": 268, "utimensat": 280, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190,
    "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "setpriority": 141, "sched_setparam": 142,
    "sched_setscheduler": 144, "sched_setaffinity": 203, "ioprio_set": 251, "prlimit64": 302, "sched_setattr": 314,
    "io_setup": 206, "epoll_create": 213, "epoll_create1": 291, "shmat": 30, "shmctl": 31, "semop": 65, "semctl": 66, "msgsnd": 69,
    "msgrcv": 70, "msgctl": 71, "semtimedop": 220, "mq_unlink": 241, "fallocate": 285,
}  # fmt: skip
_AARCH64 = {
    "fcntl": 25, "ioctl": 29, "umount2": 39, "mount": 40, "pivot_root": 41, "truncate": 45, "chroot": 51, "openat": 56,
    "unshare": 97, "ptrace": 117, "kill": 129, "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138, "setpgid": 154, "setsid": 157,
    "mq_open": 180, "msgget": 186, "semget": 190, "shmget": 194, "socket": 198, "listen": 201, "sendto": 206, "sendmsg": 211,
    "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "rt_tgsigqueueinfo": 240, "perf_event_open": 241,
    "open_by_handle_at": 265, "setns": 268, "sendmmsg": 269, "process_vm_readv": 270, "process_vm_writev": 271,
    "memfd_create": 279, "bpf": 280, "userfaultfd": 282, "inotify_init1": 26, "socketpair": 199, "fanotify_init": 262,
    "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55, "utimensat": 88, "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7,
    "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16, "ioprio_set": 30, "sched_setparam": 118, "sched_setscheduler": 119,
    "sched_setaffinity": 122, "setpriority": 140, "prlimit64": 261, "sched_setattr": 274,
    "io_setup": 0, "epoll_create1": 20, "mq_unlink": 181, "msgctl": 187, "msgrcv": 188, "msgsnd": 189, "semctl": 191,
    "semtimedop": 192, "semop": 193, "shmctl": 195, "shmat": 196, "fallocate": 47,
}  # fmt: skip
_EVERYWHERE = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "open_tree": 428, "move_mount": 429, "fsopen": 430, "clone3": 435,
    "openat2": 437, "pidfd_getfd": 438, "mount_setattr": 442, "memfd_secret": 447, "fchmodat2": 452, "setxattrat": 463,
    "removexattrat": 466, "file_setattr": 469,
}  # fmt: skip
NUMBERS = {"x86_64": {**_X86_64, **_EVERYWHERE}, "aarch64": {**_AARCH64, **_EVERYWHERE}}

_REFUSED = """
    setsid setpgid shmget semget msgget mq_open add_key request_key keyctl
    shmat shmctl semop semtimedop semctl msgsnd msgrcv msgctl mq_unlink
    open_by_handle_at ptrace process_vm_readv process_vm_writev pidfd_getfd
    unshare setns mount umount2 pivot_root chroot open_tree move_mount fsopen mount_setattr bpf perf_event_open userfaultfd
""".split()
_UNKNOWN = "io_uring_setup clone3 memfd_create memfd_secret io_setup inotify_init inotify_init1 fanotify_init".split()
"""Told to be no system calls of this kernel, so that libraries take their other way."""
_PRETENDED = "chmod fchmod fchmodat chown fchown lchown fchownat utime utimes futimesat utimensat".split()
"""They do nothing and succeed, since copying and unpacking files fails where it cannot set their modes and times."""
_ATTRIBUTES = "setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr".split()
"""Told to be nothing that this file system has: `cp`, `install` and `sed` set a mode by one of them, and by `chmod` where there is
none, and take any other refusal for a failure."""
_NEWER_ATTRIBUTES = "setxattrat removexattrat file_setattr".split()
_EPOLL = "epoll_create epoll_create1".split()
_OF_PROCESSES = {"prlimit64": 0, "sched_setparam": 0, "sched_setscheduler": 0, "sched_setaffinity": 0, "sched_setattr": 0,
                 "setpriority": 1, "ioprio_set": 1}  # fmt: skip
"""What may be changed of another process of the same user, and which argument names it."""
_SIGNALS = {"kill": 0, "tgkill": 0, "rt_sigqueueinfo": 0, "rt_tgsigqueueinfo": 0}

_LEASE_OR_WATCH = (1024, 1026)
"""F_SETLEASE and F_NOTIFY of `fcntl`: a lease is had of any file of the same user that may be read."""
_OF_OWNERS = (8, 10, 15)
"""Whom a file sends which signal when there is news: F_SETOWN, F_SETSIG, F_SETOWN_EX (fcntl(2))."""
_CLONES = (0x4004_9409, 0x4020_940D)
"""FICLONE and FICLONERANGE: Python and others copy in another way where the file system is said to lack them."""
_TERMINALS, _ALL_BUT_NUMBER = 0x5400, 0xFFFF_FF00
"""TCGETS, FIONREAD, FIONBIO, FIOCLEX and the others of <asm-generic/ioctls.h> that carry no size."""

_CLONE_PARENT, _CLONE_NEWUSER = 0x8000, 0x1000_0000
_MSG_FASTOPEN = 0x2000_0000
_O_ACCMODE, _O_TRUNC = 0o3, 0o1000
_INET, _STREAM, _ANY_OR_TCP = (2, 10), (1,), (0, 6)


@dataclass(frozen=True)
class Refusal:
    """A system call that fails with `errno`: always, or where an argument's masked value is none `allowed`, or one `refused`."""

    name: str
    errno: int = EPERM
    argument: int = 0
    mask: int = 0xFFFF_FFFF
    allowed: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()


def refusals(*, owned: bool, tcp: bool, epoll: bool, signals: bool, truncation: bool) -> Iterator[Refusal]:
    """List what is refused.

    Args:
        owned: Whether files and processes of the same user are in reach, of which neither modes nor priorities may be changed.
        tcp: Whether sockets of TCP may be opened, to ports that somebody else checks; else no socket at all.
        epoll: Whether epoll may be used, of which the kernel counts the watches for a user on the whole machine.
        signals: Whether signals to others have to be refused, since nobody else confines them.
        truncation: The same of truncating files.
    """
    yield from (Refusal(name) for name in _REFUSED)
    yield from (Refusal(name, ENOSYS) for name in _UNKNOWN)
    yield from (Refusal(name, EOPNOTSUPP) for name in _ATTRIBUTES)
    yield from (Refusal(name, ENOSYS) for name in _NEWER_ATTRIBUTES)
    yield Refusal("fallocate", EOPNOTSUPP, argument=1, allowed=(0,))
    yield Refusal("ioctl", EOPNOTSUPP, argument=1, refused=_CLONES)
    yield Refusal("ioctl", ENOTTY, argument=1, mask=_ALL_BUT_NUMBER, allowed=(_TERMINALS,))
    if not epoll:
        yield from (Refusal(name, ENOSYS) for name in _EPOLL)
    if owned:
        yield from (Refusal(name, 0) for name in _PRETENDED)
        yield Refusal("fchmodat2", ENOSYS)
        yield from (Refusal(name, argument=place, allowed=(0, SELF)) for name, place in _OF_PROCESSES.items())
        yield Refusal("setpriority", allowed=(0,))  # of one process, not of all of its user
        yield Refusal("ioprio_set", allowed=(1,))
    if not tcp:
        yield Refusal("socket")
    if signals:
        yield from (Refusal("pidfd_send_signal"), Refusal("tkill"))
    if truncation:
        yield from (Refusal("truncate"), Refusal("openat2", ENOSYS))
    yield Refusal("clone", mask=_CLONE_PARENT | _CLONE_NEWUSER, allowed=(0,))
    yield Refusal("fcntl", argument=1, refused=_LEASE_OR_WATCH)
    yield Refusal("socketpair", argument=1, mask=0xF, allowed=_STREAM)
    if tcp:
        yield Refusal("socket", argument=0, allowed=_INET)
        yield Refusal("socket", argument=1, mask=0xF, allowed=_STREAM)
        yield Refusal("socket", argument=2, allowed=_ANY_OR_TCP)
        yield Refusal("listen")
        # A first message may open a connection, which Landlock does not see.
        for name, argument in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
            yield Refusal(name, argument=argument, mask=_MSG_FASTOPEN, allowed=(0,))
    if signals:
        yield from (Refusal(name, argument=place, allowed=(0, SELF)) for name, place in _SIGNALS.items())
        yield Refusal("fcntl", argument=1, refused=_OF_OWNERS)
    if truncation:  # opening a file to read may truncate it
        reading = tuple(way | cut for cut in (0, _O_TRUNC) for way in range(4) if way | cut != _O_TRUNC)
        yield Refusal("open", argument=1, mask=_O_ACCMODE | _O_TRUNC, allowed=reading)
        yield Refusal("openat", argument=2, mask=_O_ACCMODE | _O_TRUNC, allowed=reading)


def program(machine: str, refused: Sequence[Refusal]) -> bytes:
    """Assemble the filter for a machine of `MACHINES`, as `struct sock_filter`s; a call it does not have is left out."""
    code = [_load(4), _jump(_JEQ, _AUDIT[machine], 1, 0), _return(_KILL), _load(0)]
    if machine == "x86_64":
        code += [_jump(_JGE, _X32, 0, 1), _return(_ERRNO | ENOSYS)]
    # Those that need no argument read the number once.
    for one in sorted(refused, key=lambda refusal: bool(refusal.allowed or refusal.refused)):
        number = NUMBERS[machine].get(one.name)
        if number is None:
            continue
        block = [_return(_ERRNO | one.errno)]
        if one.allowed or one.refused:
            # An allowed value jumps behind the refusal, a refused one to it; behind the last refused one it is jumped over.
            tests = [_jump(_JEQ, value, len(one.allowed) - index, 0) for index, value in enumerate(one.allowed)]
            last = len(one.refused) - 1
            tests += [_jump(_JEQ, value, last - index, index == last) for index, value in enumerate(one.refused)]
            block = [_load(16 + 8 * one.argument), struct.pack("=HBBI", _AND, 0, 0, one.mask), *tests, *block]
            code.append(_load(0))
        code += [_jump(_JEQ, number, 0, len(block)), *block]
    return b"".join([*code, _return(_ALLOW)])


_LD, _JEQ, _JGE, _AND, _RET = 0x20, 0x15, 0x35, 0x54, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF_0000, 0x0005_0000, 0x8000_0000


def _load(offset: int) -> bytes:
    """Load 32 bits of `struct seccomp_data`: the number at 0, the architecture at 4, the lower half of argument n at 16 + 8n."""
    return struct.pack("=HBBI", _LD, 0, 0, offset)


def _jump(test: int, value: int, then: int, otherwise: int) -> bytes:
    return struct.pack("=HBBI", test, then, otherwise, value)


def _return(what: int) -> bytes:
    return struct.pack("=HBBI", _RET, 0, 0, what)
