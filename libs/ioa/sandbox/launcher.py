"""Confine this process and become the command: `python -I -S launcher.py PLAN PROGRAM…`.

A program of its own, since Landlock and seccomp bind the thread that asks for them, and between fork and exec of a process with
threads hardly anything is allowed. It imports little, so that it starts in milliseconds, and decides nothing: its plan, made by
`ioa.sandbox.confined_process`, says all. The order matters: what is readable is opened while the process may still,
PR_SET_PDEATHSIG would not survive a change of the user, and from then on no module can be imported that lies where the new user
may not go.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import resource
import stat
import struct
import sys

TYPE_CHECKING = False  # `typing` takes longer to import than all of this takes to run
if TYPE_CHECKING:
    from typing import Any

_PR_SET_PDEATHSIG, _PR_SET_KEEPCAPS, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 1, 8, 22, 38, 47
_SIGKILL, _FILTER, _AMBIENT_RAISE = 9, 2, 2
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_BENEATH, _PORT = 1, 2
_CAP_DAC_READ_SEARCH, _CAPABILITY_VERSION_3 = 2, 0x2008_0522

_libc = ctypes.CDLL(None, use_errno=True)


def confine(plan: dict[str, Any]) -> None:
    """Give up what the plan says.

    Raises:
        OSError: The kernel refuses. Nothing may be run then.
    """
    if sys.platform == "linux":
        _offer_itself()
    os.chdir(plan["box"])
    ruleset = _ruleset(plan["landlock"]) if plan["landlock"] else None
    for name, soft in plan["limits"].items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        most = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
        # A second after the signal that says so comes the one that cannot be ignored.
        resource.setrlimit(kind, (most, most + 1 if name == "RLIMIT_CPU" and most == soft else most))
    if plan["user"] is not None:
        _become(plan["user"], keep_search=plan["search"])
    if sys.platform == "linux":
        _prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    if os.getppid() != plan["parent"]:
        raise ProcessLookupError(0, "whoever wanted it has ended")
    if plan["unprivileged"]:
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if ruleset is not None:
        _syscall(_LANDLOCK_RESTRICT, ruleset, 0)
        os.close(ruleset)
    if plan["filter"]:
        code = bytes.fromhex(plan["filter"]).replace(struct.pack("=I", plan["self"]), struct.pack("=I", os.getpid()))
        buffer = ctypes.create_string_buffer(code, len(code))
        filter_program = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
        _prctl(_PR_SET_SECCOMP, _FILTER, filter_program)


def _offer_itself() -> None:
    """Have the kernel end this process and its children, and not whoever started it, where memory runs out."""
    with open("/proc/self/oom_score_adj", "w") as adjustment:  # noqa: PTH123 - pathlib takes longer to import
        adjustment.write("1000")


def _ruleset(plan: dict[str, Any]) -> int:
    """Open a Landlock ruleset; what is missing on this machine is left out."""
    attributes = bytes.fromhex(plan["ruleset"])
    ruleset = _syscall(_LANDLOCK_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0)
    for path, rights in plan["paths"]:
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        held = rights if stat.S_ISDIR(os.fstat(handle).st_mode) else rights & plan["of_files"]
        _syscall(_LANDLOCK_ADD, ruleset, _BENEATH, struct.pack("=Qi", held, handle), 0)
        os.close(handle)
    for port in plan["ports"]:
        _syscall(_LANDLOCK_ADD, ruleset, _PORT, struct.pack("=QQ", plan["connect"], port), 0)
    return ruleset


def _become(user: int, *, keep_search: bool) -> None:
    """Change to an unprivileged user for good; of root's capabilities at most the one to read and search anything stays."""
    if keep_search:
        _prctl(_PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    if keep_search:
        header, kept = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), [1 << _CAP_DAC_READ_SEARCH] * 3
        if _libc.capset(header, struct.pack("=6I", *kept, 0, 0, 0)) == 0:
            _prctl(_PR_CAP_AMBIENT, _AMBIENT_RAISE, _CAP_DAC_READ_SEARCH)
        else:  # this root never had it: names that are relative to the box still work
            _check(_libc.capset(header, bytes(24)))


def _syscall(number: int, *arguments: Any) -> int:
    return _check(_libc.syscall(number, *arguments))


def _prctl(option: int, first: int, second: int | bytes = 0) -> None:
    _check(_libc.prctl(option, ctypes.c_ulong(first), second if isinstance(second, bytes) else ctypes.c_ulong(second), 0, 0))


def _check(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


if __name__ == "__main__":
    try:
        confine(marshal.loads(bytes.fromhex(sys.argv[1])))  # noqa: S302 - by the same interpreter; json takes longer to import
        os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - what the plan is for
    except OSError as error:
        sys.exit(f"The sandbox cannot start {sys.argv[2]}: {error}.")
