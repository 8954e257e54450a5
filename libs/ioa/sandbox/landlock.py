"""What Landlock is told: which rights exist in which version of its interface, and which of them a sandbox leaves (landlock(7))."""

from __future__ import annotations

import ctypes
import struct
import sys
from dataclasses import dataclass

_CREATE_RULESET, _VERSION = 444, 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, MAKE_CHAR, MAKE_BLOCK, TRUNCATE, IOCTL_DEV = (
    1 << bit for bit in (0, 1, 2, 3, 6, 11, 14, 15)
)
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""Rights that a rule on a file may hold; the others are of folders."""
READ = EXECUTE | READ_FILE | READ_DIR
DEVICE = READ_FILE | WRITE_FILE
CONNECT_TCP = 2

_RIGHTS = (0, 13, 14, 15, 15, 16)
_NETWORK_FROM, _SCOPES_FROM, _TRUNCATE_FROM = 4, 6, 3


@dataclass(frozen=True)
class Abi:
    """What a version of the interface can do; 0 is a kernel without Landlock."""

    version: int

    @property
    def rights(self) -> int:
        """All rights on files and folders that it knows; to name another is an error."""
        return (1 << _RIGHTS[min(self.version, len(_RIGHTS) - 1)]) - 1

    @property
    def box(self) -> int:
        """The rights in the box: all but those that make or steer devices."""
        return self.rights & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV)

    @property
    def confines_tcp(self) -> bool:
        """Whether connections can be limited to ports."""
        return self.version >= _NETWORK_FROM

    @property
    def confines_signals(self) -> bool:
        """Whether signals stay inside."""
        return self.version >= _SCOPES_FROM

    @property
    def confines_truncation(self) -> bool:
        """Whether truncating is a right of its own."""
        return self.version >= _TRUNCATE_FROM

    def ruleset(self, *, files: bool) -> bytes:
        """Write `struct landlock_ruleset_attr`: all that is confined; TCP and what has a scope too where the version knows them.

        Args:
            files: Whether files are confined as well. Where they are not, what is confined may still mount.
        """
        attributes = [self.rights if files else 0]
        if self.confines_tcp:
            attributes.append(0b11)
        if self.confines_signals:
            attributes.append(0b11 if files else 0)
        return struct.pack(f"={len(attributes)}Q", *attributes)


def this_kernel() -> Abi:
    """Ask this machine's kernel."""
    if sys.platform != "linux":
        return Abi(0)
    libc = ctypes.CDLL(None)
    return Abi(max(0, libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)))
