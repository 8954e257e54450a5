"""Read a web page, or a local HTML file, as text.

The page's text is attached as a `.txt` file, so that later tasks can summarise or search it. Only text is read, at most 5 MB and
for at most 20 seconds.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

from html_text import Page, read_html
from ioa import Agent, InvalidInputError, NotFoundError, TaskContext, TaskError
from task_files import decode, have, pick_inputs
from text_measures import words_of
from words import account_for

agent = Agent(
    "web-reader",
    description="Fetches web pages by URL and turns HTML into readable text, with title, headings and links.",
    skills=["fetch a web page", "HTML to text", "extract headings and links"],
    examples=[
        "read https://example.org/article", "fetch the page http://localhost:8000/index.html and extract its text",
        "what are the headings of page.html", "list the links on https://example.org", "download this web page as text",
        "get the title of the page", "convert page.html to plain text",
    ],
    tags=["web", "html", "http"],
    may_team_up=False,
)  # fmt: skip
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
    rest = re.sub(r"\S+\.html?\b|\b[a-z][a-z0-9+.-]*://\S+", " ", task, flags=re.IGNORECASE)
    account_for(rest, _WORDS, "Say 'read', 'the headings of' or 'the links of' and an address; another task can work on its text.")
    if other := re.search(r"\b(?!https?:)[a-z][a-z0-9+.-]*://\S+", task, re.IGNORECASE):
        raise InvalidInputError(f"{other[0]} is not a web page.", hint="Only http and https addresses can be read.")
    pages = [(url, fetch(url)) for url in _urls(task)]
    if not pages:
        pages = [(file.name, read_html(file.path.read_bytes())) for file in pick_inputs(task, ctx, (".html", ".htm"))]
    pages = pages or [(url, fetch(url)) for url in _urls(ctx.goal)]
    if not pages:
        raise InvalidInputError("The task names no web page.", hint=f"Give its address, starting with https://. {have(ctx)}")
    answers = []
    for number, (source, page) in enumerate(pages, 1):
        if not page.text:
            raise InvalidInputError(f"{source} holds no text.", hint="The page may be drawn by a script, which is not run here.")
        name = re.sub(r"[^a-z0-9]+", "-", (page.title or urlsplit(source).netloc or source).lower()).strip("-")[:60] or "page"
        name = f"{name}.txt" if number == 1 else f"{name}-{number}.txt"
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

    seconds = limits.timeout.total_seconds()
    deadline, data = time.monotonic() + seconds, b""
    headers = {"User-Agent": "ioa-web-reader", "Accept": "text/html, text/*;q=0.8"}
    try:
        with (
            httpx.Client(follow_redirects=True, max_redirects=limits.max_redirects, timeout=seconds) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            kind = response.headers.get("content-type", "")
            if response.status_code in (404, 410):
                raise NotFoundError(f"{url} does not exist ({response.status_code}).", hint="Check the address.")
            if response.status_code >= 400:
                raise TaskError(f"{url} answered {response.status_code} {response.reason_phrase}.")
            if kind and not _TEXT_TYPES.match(kind):
                raise InvalidInputError(f"{url} is {kind.split(';')[0]}, not text.", hint="Only pages of text can be read.")
            for chunk in response.iter_bytes():
                data += chunk
                if len(data) > limits.max_bytes:
                    raise TaskError(f"{url} is larger than {limits.max_bytes} bytes.")
                if time.monotonic() > deadline:
                    raise TaskError(f"{url} did not arrive within {seconds:g} seconds.")
    except httpx.TimeoutException:
        raise TaskError(f"{url} did not answer within {seconds:g} seconds.", hint="Try again later.") from None
    except httpx.TooManyRedirects:
        raise TaskError(f"{url} redirects more than {limits.max_redirects} times.") from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise InvalidInputError(f"{url} is not a web address: {error}.") from None
    except httpx.HTTPError as error:
        raise TaskError(f"{url} cannot be reached: {error}.", hint="Check the address and the network.") from None
    try:
        text = data.decode(response.charset_encoding) if response.charset_encoding else None
    except (LookupError, UnicodeDecodeError):
        text = None
    if "html" in kind.lower() or (not kind and data.lstrip()[:1] == b"<"):
        return read_html(text or data, str(response.url))
    return Page(response.url.path.rsplit("/", 1)[-1], (text or decode(data)).strip())


def _urls(text: str) -> list[str]:
    return list(dict.fromkeys(url.rstrip(".,;:!?)]}") for url in _URL.findall(text)))


def _describe(task: str, source: str, page: Page, name: str) -> str:
    lines = [f"{source}: '{page.title or 'untitled'}', {len(words_of(page.text))} words, attached as {name}."]
    if re.search(r"\b(?:headings?|outline|structure)\b", task, re.IGNORECASE):
        lines += [f"Headings ({len(page.headings)}):", *(f"- {'  ' * (level - 1)}{text}" for level, text in page.headings[:_SHOWN])]
    if re.search(r"\blinks?\b", task, re.IGNORECASE):
        lines += [f"Links ({len(page.links)}):", *(f"- {text or address}: {address}" for text, address in page.links[:_SHOWN])]
    return "\n".join(lines)


if __name__ == "__main__":
    agent.run()
