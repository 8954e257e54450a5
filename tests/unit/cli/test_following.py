"""Writing files that agents named."""

from __future__ import annotations

import pytest

from ioa.cli.following import _file_name, _free_name, size


@pytest.mark.parametrize(
    ("name", "safe"),
    [("a.txt", "a.txt"), ("../../etc/passwd", "passwd"), ("C:\\x\\y.csv", "y.csv"), ("..", "file"), ("/", "file"), ("a/", "a")],
)
def test_a_file_stays_in_its_folder(name: str, safe: str) -> None:
    """Whatever an agent calls a file, only the last part of it counts."""
    assert _file_name(name) == safe


def test_two_files_of_one_name_both_stay() -> None:
    """The second gets a number before its suffix."""
    assert (_free_name("a.txt", set()), _free_name("a.txt", {"a.txt", "a-2.txt"})) == ("a.txt", "a-3.txt")


@pytest.mark.parametrize(("count", "shown"), [(0, "0 B"), (999, "999 B"), (34_279, "34.3 kB"), (2_500_000, "2.5 MB")])
def test_sizes_are_short(count: int, shown: str) -> None:
    """Bytes, kilobytes, megabytes."""
    assert size(count) == shown
