"""What Landlock is asked for, by the version of its interface."""

from __future__ import annotations

import struct

import pytest

from ioa.sandbox.landlock import Abi


@pytest.mark.parametrize(("version", "rights"), [(0, 0), (1, 13), (2, 14), (3, 15), (4, 15), (5, 16), (6, 16), (7, 16), (99, 16)])
def test_rights(version: int, rights: int) -> None:
    """A kernel is asked for the rights it knows, since it refuses a ruleset with another one."""
    assert Abi(version).rights == (1 << rights) - 1


@pytest.mark.parametrize(("version", "words"), [(3, [0x7FFF]), (4, [0x7FFF, 3]), (5, [0xFFFF, 3]), (6, [0xFFFF, 3, 3])])
def test_ruleset(version: int, words: list[int]) -> None:
    """TCP is confined from version 4 on, signals and abstract sockets from 6 on; older kernels get a shorter structure."""
    assert Abi(version).ruleset(files=True) == struct.pack(f"={len(words)}Q", *words)


def test_ports_alone() -> None:
    """Beside bubblewrap only TCP is confined, since what has its files confined may not mount."""
    assert Abi(7).ruleset(files=False) == struct.pack("=3Q", 0, 3, 0)


def test_no_devices_in_the_box() -> None:
    """In the box all is allowed but to make devices and to steer them."""
    assert Abi(7).rights & ~Abi(7).box == 1 << 6 | 1 << 11 | 1 << 15
