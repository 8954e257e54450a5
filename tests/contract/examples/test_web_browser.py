"""The tools over a web site: a real server, and each engine that is here."""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from browser import Browser
from country import make_country
from country_server import create_site
from ioa import InvalidInputError, UnavailableError
from ioa.adapters.ssrf import OutsideTransport
from web_browser import open_browser

COUNTRY = make_country(1)
TOWN = COUNTRY.towns[0]


class Forms(BaseHTTPRequestHandler):
    """A page with a form, a page that contains its address, and a redirect to another site."""

    def do_GET(self) -> None:
        self.send_response(302 if self.path == "/away" else 200)
        self.send_header("Location", "http://away.test/")
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        form = (
            "<form action=/sent><select name=unit><option value=k>km<option>mile</select><input type=checkbox name=no>"
            "<input type=hidden name=h value=1><button name=b value=2>Go</button></form><button>Script</button>"
        )
        script = "<p></p><script>document.querySelector('p').textContent = 'Scripts run.'</script>"
        self.wfile.write({"/": form, "/script": script}.get(self.path, self.path).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Log nothing."""


@contextmanager
def _serving(server: ThreadingHTTPServer) -> Iterator[str]:
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The pages of a country, on this machine."""
    with _serving(create_site(COUNTRY)) as address:
        yield address


@pytest.fixture
async def browser(site: str, tmp_path: Path) -> AsyncIterator[Browser]:
    """A browser at the site."""
    async with open_browser(site, tmp_path, inside=False) as opened:
        yield opened


async def test_browser_follows_links_forms_and_downloads(browser: Browser, site: str) -> None:
    """Links are followed, a form is filled in and sent, and its answer is read; a file is downloaded for the result."""
    home = await browser.open()
    assert f"{site}\nThe country" in home and "[1] North\n" in home
    assert "[6] Register of roads" in home
    register = await browser.click(6)
    assert register.splitlines()[-3:] == ["Town [1: field town = '']", "[2] Look up", "[3] Carts by month"]
    await browser.fill(1, TOWN.name)
    assert f"{TOWN.name} has {TOWN.road_km} km of roads." in await browser.click(2)
    brought = await browser.download("/carts.csv")
    assert brought.text.startswith("carts.csv, ") and [path.read_text() for path in brought.files] == [COUNTRY.carts]


async def test_impossible_action_is_an_error(browser: Browser) -> None:
    """Another site, a page that is not there, and a part that is not there."""
    for address in ("http://localhost:1/", "file:///etc/passwd"):
        with pytest.raises(InvalidInputError, match="Stay on this site"):
            await browser.open(address)
    with pytest.raises(UnavailableError, match="answers 404"):
        await browser.open("/nowhere")
    with pytest.raises(UnavailableError, match="answers 404"):
        await browser.download("/nowhere.zip")
    with pytest.raises(InvalidInputError, match=r"no \[99\]"):
        await browser.click(99)


async def test_name_of_this_machine_is_rejected(site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name of this machine is rejected, unless the operator permits it."""
    port, real = urlsplit(site).port, socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *of, **more: real("127.0.0.1", *of, **more))
    named = f"http://site.example:{port}/"
    async with open_browser(named, tmp_path, inside=False) as outside:
        for read in (outside.open, outside.download):
            with pytest.raises(InvalidInputError, match="leads into a private network or to this machine"):
                await read(named)
    async with open_browser(named, tmp_path, inside=True) as inside:
        assert "The country" in await inside.open()


async def test_request_goes_to_the_checked_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each request, at the first address that answers, under the site's name; and looked up again for the next one."""
    asked, told = list[tuple[str, ...]](), iter(["93.184.215.14", "93.184.215.15", "10.0.0.1"])
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda *of, **_: [(0, 0, 0, "", (one, of[1])) for one in ("93.184.215.13", next(told))]
    )

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append((request.url.host, request.headers["host"], request.extensions["sni_hostname"]))
        if request.url.host == "93.184.215.13":
            raise httpx.ConnectError("refused")
        return httpx.Response(200, text="Hello")

    transport = OutsideTransport("", httpx.MockTransport(answer))
    async with httpx.AsyncClient(transport=transport) as client:
        answers = [await client.get("https://site.example/a") for _ in range(2)]
        with pytest.raises(InvalidInputError, match="leads into a private network"):
            await client.get("https://site.example/a")
    places = ["93.184.215.13", "93.184.215.14", "93.184.215.13", "93.184.215.15"]
    assert (asked, str(answers[0].url)) == ([(one, "site.example", "site.example") for one in places], "https://site.example/a")


async def test_page_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    """A redirect is checked like an address of the model; scripts do not run."""
    with _serving(ThreadingHTTPServer(("127.0.0.1", 0), Forms)) as site:
        async with open_browser(site, tmp_path, inside=False) as browser:
            assert (await browser.open("/script")).partition("\n")[2] == ""
            with pytest.raises(InvalidInputError, match="Stay on this site"):
                await browser.open("/away")
