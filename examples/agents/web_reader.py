"""Read a web page, or a local HTML file, as text.

    read https://example.org/article.html
    get the headings of http://localhost:8000/
    extract the text and the links of page.html

The page's text is attached as a `.txt` file, so that later tasks can summarise or search it. Only text is read, at most 5 MB and
for at most 20 seconds.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from html_text import Page, read_html
from ioa import Agent, InvalidInputError, NotFoundError, TaskContext, TaskError
from task_files import decode, have, pick_inputs
from text_measures import words_of
from words import account_for

if TYPE_CHECKING:
    import httpx

agent = Agent(
    "web-reader",
    description="Fetches web pages by URL and turns HTML into readable text, with title, headings and links.",
    skills=["fetch a web page", "HTML to text", "extract headings and links"],
    examples=[
        "read https://example.org/article",
        "fetch the page http://localhost:8000/index.html and extract its text",
        "what are the headings of page.html",
        "list the links on https://example.org",
        "download this web page as text",
        "get the title of the page",
        "convert page.html to plain text",
    ],
    tags=["web", "html", "http"],
    may_team_up=False,
)
_URL = re.compile(r"https?://[^\s<>\"'`]+", re.IGNORECASE)
_TEXT_TYPES = re.compile(r"text/|application/(?:xhtml\+xml|xml|json|.*\+json|.*\+xml)", re.IGNORECASE)
_SHOWN = 40
_WORDS = frozenset(
    "please fetch read get download open load extract show list give me tell what are is the a an of on in at from this that page "
    "web website site article html htm text plain readable content contents as to convert turn into and its it title heading "
    "headings outline structure link links all how many which does have has there".split()
)


@dataclass(frozen=True)
class Limits:
    """How much and how long a page may take."""

    timeout: timedelta = timedelta(seconds=20)
    max_bytes: int = 5_000_000
    max_redirects: int = 5


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Read every page the task names and attach its text."""
    _check_words(task)
    pages = [(url, fetch(url)) for url in _urls(task)]
    if not pages and (other := re.search(r"\b(?!https?:)[a-z][a-z0-9+.-]*://\S+", task, re.IGNORECASE)):
        raise InvalidInputError(f"{other[0]} is not a web page.", hint="Only http and https addresses can be read.")
    if not pages:
        files = pick_inputs(task, ctx, (".html", ".htm"))
        pages = [(file.name, read_html(file.path.read_bytes())) for file in files]
    if not pages:
        pages = [(url, fetch(url)) for url in _urls(ctx.goal)]
    if not pages:
        raise InvalidInputError("The task names no web page.", hint=f"Give its address, starting with https://. {have(ctx)}")
    answers = []
    for index, (source, page) in enumerate(pages):
        if not page.text:
            raise InvalidInputError(f"{source} holds no text.", hint="The page may be drawn by a script, which is not run here.")
        name = f"{_file_name(source, page)}{'' if index == 0 else f'-{index + 1}'}.txt"
        ctx.artifact(name, page.text + "\n", "text/plain")
        answers.append(_describe(task, source, page, name))
    return "\n\n".join(answers)


def fetch(url: str, limits: Limits = Limits()) -> Page:
    """Fetch a page and extract its text.

    Raises:
        NotFoundError: The server has no such page.
        TaskError: The server does not answer in time, refuses, or sends too much.
        InvalidInputError: The address is no web page, or holds no text.
    """
    import httpx  # here, since an agent that has nothing to do yet should not take 3 MB for it

    deadline = time.monotonic() + limits.timeout.total_seconds()
    try:
        with (
            httpx.Client(
                follow_redirects=True, max_redirects=limits.max_redirects, timeout=limits.timeout.total_seconds()
            ) as client,
            client.stream("GET", url, headers={"User-Agent": "ioa-web-reader", "Accept": "text/html, text/*;q=0.8"}) as response,
        ):
            _check(url, response)
            data = b""
            for chunk in response.iter_bytes():
                data += chunk
                if len(data) > limits.max_bytes:
                    raise TaskError(f"{url} is larger than {limits.max_bytes} bytes.")
                if time.monotonic() > deadline:
                    raise TaskError(f"{url} did not arrive within {limits.timeout.total_seconds():g} seconds.")
            kind, charset, address = response.headers.get("content-type", ""), response.charset_encoding, str(response.url)
    except httpx.TimeoutException:
        raise TaskError(
            f"{url} did not answer within {limits.timeout.total_seconds():g} seconds.", hint="Try again later."
        ) from None
    except httpx.TooManyRedirects:
        raise TaskError(f"{url} redirects more than {limits.max_redirects} times.") from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise InvalidInputError(f"{url} is not a web address: {error}.") from None
    except httpx.HTTPError as error:
        raise TaskError(f"{url} cannot be reached: {error}.", hint="Check the address and the network.") from None
    return _page(data, kind, charset, address)


def _check(url: str, response: httpx.Response) -> None:
    if response.status_code in (404, 410):
        raise NotFoundError(f"{url} does not exist ({response.status_code}).", hint="Check the address.")
    if response.status_code >= 400:
        raise TaskError(f"{url} answered {response.status_code} {response.reason_phrase}.")
    kind = response.headers.get("content-type", "text/html")
    if not _TEXT_TYPES.match(kind):
        raise InvalidInputError(f"{url} is {kind.split(';')[0]}, not text.", hint="Only pages of text can be read.")


def _page(data: bytes, kind: str, charset: str | None, address: str) -> Page:
    try:
        text = data.decode(charset) if charset else None
    except (LookupError, UnicodeDecodeError):
        text = None
    if "html" in kind.lower() or (not kind and data.lstrip()[:1] == b"<"):
        return read_html(text if text is not None else data, address)
    return Page(title=urlsplit(address).path.rsplit("/", 1)[-1], text=(text or decode(data)).strip(), headings=(), links=())


def _urls(text: str) -> list[str]:
    return list(dict.fromkeys(url.rstrip(".,;:!?)]}") for url in _URL.findall(text)))


def _check_words(task: str) -> None:
    rest = re.sub(r"\S+\.html?\b|\b[a-z][a-z0-9+.-]*://\S+", " ", task, flags=re.IGNORECASE)
    account_for(rest, _WORDS, "Say 'read', 'the headings of' or 'the links of' and an address; another task can work on its text.")


def _describe(task: str, source: str, page: Page, name: str) -> str:
    lines = [f"{source}: '{page.title or 'untitled'}', {len(words_of(page.text))} words, attached as {name}."]
    if re.search(r"\bheadings?\b|\boutline\b|\bstructure\b", task, re.IGNORECASE):
        lines += [f"Headings ({len(page.headings)}):", *(f"- {'  ' * (level - 1)}{text}" for level, text in page.headings[:_SHOWN])]
    if re.search(r"\blinks?\b", task, re.IGNORECASE):
        lines += [f"Links ({len(page.links)}):", *(f"- {text or address}: {address}" for text, address in page.links[:_SHOWN])]
    return "\n".join(lines)


def _file_name(source: str, page: Page) -> str:
    return re.sub(r"[^a-z0-9]+", "-", (page.title or urlsplit(source).netloc or source).lower()).strip("-")[:60] or "page"


if __name__ == "__main__":
    agent.run()
