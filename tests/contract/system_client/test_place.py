"""Where programs look for a system."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ioa.adapters.system_folder import PRIVATE_URL, note_password, remove_password
from ioa.errors import InvalidInputError
from ioa.hosting.place import Place, listens, places, wait_for_place
from ioa.runtime.settings import DEFAULT_URL


def test_named_server_is_the_only_location(tmp_path: Path) -> None:
    """An option wins over the environment, and either over everything that is likely."""
    environment = {"IOA_NATS_URL": "nats://there:1"}
    assert places("nats://here:1", environment, tmp_path) == [Place("nats://here:1", "--url")]
    assert places(None, environment, tmp_path) == [Place("nats://there:1", "IOA_NATS_URL")]


def test_a_system_of_this_folder_is_tried_before_the_default(tmp_path: Path) -> None:
    """The folder's note comes first, then the default address; without a note only the default."""
    before = places(None, {}, tmp_path)
    note_password(tmp_path, "nats://127.0.0.1:4999", "secret")
    during = places(None, {}, tmp_path)
    remove_password(tmp_path)
    assert (before, [place.url for place in during], places(None, {}, tmp_path)) == (
        [Place(DEFAULT_URL, "the default")],
        ["nats://127.0.0.1:4999", DEFAULT_URL],
        before,
    )


@pytest.mark.parametrize("reader", ["another", "its owner"])
def test_url_in_a_folder_open_to_others_is_not_used(tmp_path: Path, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as `/tmp/.ioa` of another user, or a folder of an unpacked archive, which all users may read."""
    note_password(tmp_path, "nats://elsewhere.example:4222", "secret")
    if reader == "another":
        monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    else:
        tmp_path.chmod(0o755)
    with pytest.raises(InvalidInputError, match="could write the address of another system"):
        places(None, {}, tmp_path)


async def test_a_server_that_listens_is_seen(nats_url: str) -> None:
    """One of several addresses is enough; a closed port or a broken address is none."""
    found = [await listens(url) for url in (nats_url, f"nats://127.0.0.1:9,{nats_url}", "nats://127.0.0.1:9", "nats://[broken")]
    assert found == [True, True, False, False]


async def test_a_system_that_starts_later_is_found(nats_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search is printed once, and repeated until `ioa up` has written its address; a named server is not searched for."""
    told, there = list[str](), f"nats://{nats_url.rpartition('@')[2]}"

    def start_system(text: str) -> None:
        told.append(text)
        note_password(tmp_path, there, "secret")

    monkeypatch.setattr("ioa.hosting.place.DEFAULT_URL", "nats://127.0.0.1:9")
    environment = {"IOA_DATA": str(tmp_path)}
    found = await wait_for_place(None, environment, start_system)
    named = await wait_for_place("nats://127.0.0.1:9", environment, start_system)
    assert (found, named) == (Place(there, str(tmp_path / PRIVATE_URL)), Place("nats://127.0.0.1:9", "--url"))
    assert len(told) == 1 and "127.0.0.1:9 " in told[0]
