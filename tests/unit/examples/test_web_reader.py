"""The web reader against a real HTTP server on the loopback interface."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ioa.errors import InvalidInputError, IoaError, NotFoundError, TaskError
from tests.unit.examples.agent_run import Run
from web_reader import Limits, agent, fetch

PAGE = (
    "<html><head><title>Grüße</title></head><body><nav>menu</nav>"
    "<h1>Hallo</h1><p>Ein Satz.</p><a href='/next'>weiter</a></body></html>"
)


class _Site(BaseHTTPRequestHandler):
    released = threading.Event()

    def do_GET(self) -> None:
        answers = {
            "/page": (200, "text/html; charset=utf-8", PAGE.encode()),
            "/latin": (200, "text/html; charset=iso-8859-1", PAGE.encode("latin-1")),
            "/meta": (200, "text/html", b"<meta charset='windows-1252'>" + PAGE.encode("cp1252")),
            "/plain": (200, "text/plain", b"just text"),
            "/image": (200, "image/png", b"\x89PNG"),
            "/large": (200, "text/plain", b"x" * 5000),
            "/gone": (404, "text/html", b"no"),
            "/broken": (500, "text/html", b"no"),
            "/blank": (200, "text/html", b"<html><script>draw()</script></html>"),
        }
        if self.path == "/slow":
            self.released.wait(30)
            return
        if self.path in ("/old", "/loop"):
            self.send_response(302)
            self.send_header("Location", "/page" if self.path == "/old" else "/loop")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        status, kind, body = answers[self.path]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Keep quiet: the tests read the answers, not the log."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """A web site with good, bad, slow and endless pages."""
    _Site.released.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Site) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        _Site.released.set()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("path", ["/page", "/latin", "/meta", "/old"])
def test_reads_a_page(path: str, run: Run, site: str) -> None:
    """A page's title and readable text arrive, in any encoding and through redirects; the text is attached."""
    done = run(agent, f"read {site}{path}.")
    assert done.text == f"{site}{path}: 'Grüße', 3 words, attached as gr-e.txt."
    assert done.files["gr-e.txt"].decode() == "Hallo\n\nEin Satz.\n"


def test_headings_and_links(run: Run, site: str) -> None:
    """Headings and links come when they are asked for, links with their full address."""
    text = run(agent, f"list the headings and links of {site}/page").text
    assert text.splitlines()[1:] == ["Headings (1):", "- Hallo", "Links (1):", f"- weiter: {site}/next"]


def test_plain_text(run: Run, site: str) -> None:
    """Plain text is taken as it is."""
    assert run(agent, f"read {site}/plain").files["plain.txt"] == b"just text\n"


def test_local_file(run: Run, data: Path) -> None:
    """A local HTML file is read like a page: its menu, script and footer are left out."""
    done = run(agent, "extract the text of page.html", [data / "page.html"])
    text = done.files["how-a-sundial-tells-the-time.txt"].decode()
    assert text.startswith("How a sundial tells the time\n\nA sundial has two parts")
    assert not any(word in text for word in ("All clocks", "console", "font-family", "clock museum"))


@pytest.mark.parametrize(
    ("path", "error", "said"),
    [
        ("/gone", NotFoundError, "does not exist (404)"),
        ("/broken", TaskError, "answered 500"),
        ("/image", InvalidInputError, "image/png, not text"),
        ("/blank", InvalidInputError, "holds no text"),
        ("/loop", TaskError, "redirects more than 5 times"),
    ],
)
def test_refusals(path: str, error: type[IoaError], said: str, run: Run, site: str) -> None:
    """A page that cannot be read is an error that says whose fault it is."""
    with pytest.raises(error) as caught:
        run(agent, f"read {site}{path}")
    assert said in str(caught.value)


def test_too_large(site: str) -> None:
    """Reading stops at the limit of size."""
    with pytest.raises(TaskError, match="larger than 1000 bytes"):
        fetch(f"{site}/large", Limits(max_bytes=1000))


def test_too_slow(site: str) -> None:
    """A server that does not answer is given up at the limit of time."""
    with pytest.raises(TaskError, match=r"did not answer within 0\.2 seconds"):
        fetch(f"{site}/slow", Limits(timeout=timedelta(seconds=0.2)))


def test_nobody_listens(run: Run) -> None:
    """A server that is not there is the network's fault."""
    with pytest.raises(TaskError, match="cannot be reached"):
        run(agent, "read http://127.0.0.1:9/")


@pytest.mark.parametrize(
    ("task", "said"), [("read ftp://127.0.0.1/x", "is not a web page"), ("read the page", "names no web page")]
)
def test_no_address(task: str, said: str, run: Run) -> None:
    """Without a web address the error says what one looks like."""
    with pytest.raises(InvalidInputError, match=said):
        run(agent, task)


@pytest.mark.parametrize("task", ["translate page.html into French", "count the words on page.html", "summarise page.html"])
def test_what_is_no_reading_is_refused(task: str, run: Run, data: Path) -> None:
    """A page's text is no translation of it, so a wish that is not fulfilled is refused by its word."""
    with pytest.raises(InvalidInputError, match=r"not understood here.*another task can work on its text"):
        run(agent, task, [data / "page.html"])
