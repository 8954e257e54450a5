"""A browser of a single web site over httpx: links and forms work, scripts do not.

No other site is requested, since a page can name an address of the internal network.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx

from ioa import InvalidInputError, UnavailableError
from ioa.adapters.http_answers import UnfitAnswerError, pieces_of
from ioa.react import Observation, ReactTool, tool
from pages import Page

_MAX_BYTES = 10_000_000
_MAX_REDIRECTS = 5


class Browser:
    """The tools of a task: the pages of a site."""

    def __init__(self, client: httpx.AsyncClient, site: str, folder: Path) -> None:
        self._client = client
        self._site = site
        self._folder = folder
        self._page = Page(site, b"")

    @property
    def tools(self) -> list[ReactTool]:
        """All tools."""
        return [tool(one) for one in (self.open, self.click, self.fill, self.find, self.download)]

    async def open(self, address: str = "/") -> str:
        """Open a page and show it. Links, buttons and fields have numbers in brackets.

        Args:
            address: Its address, or its path on the site.
        """
        return await self._show("GET", urljoin(self._site, address))

    async def click(self, number: int) -> str:
        """Click a link or a button, and show the page that follows.

        Args:
            number: Its number on the open page.
        """
        method, where, sent = self._page.follow(number)
        address = urljoin(self._page.address, where)
        if method == "GET" and sent is not None:
            address, sent = urlsplit(address)._replace(query=sent).geturl(), None
        return await self._show(method, address, sent)

    async def fill(self, number: int, text: str) -> str:
        """Fill in a field, or choose from a list. A button sends it.

        Args:
            number: Its number on the open page.
            text: What to write or choose.
        """
        self._page.fill(number, text)
        return f"[{number}] is now {text!r}."

    async def find(self, words: str) -> str:
        """Show the lines of the open page with one of these words, each with its neighbours.

        Args:
            words: Words to look for; case does not count.
        """
        return f"{self._page.address}\n{await asyncio.to_thread(self._page.find, words)}"

    async def download(self, address: str) -> Observation:
        """Download a file, which becomes part of the task's result.

        Args:
            address: Its address, or its path on the site.
        """
        where = urljoin(self._page.address, address)
        _, data = await self._read("GET", where)
        path = self._folder / (re.sub(r"[^\w.-]", "_", urlsplit(where).path.rpartition("/")[2]).lstrip(".") or "file")
        await asyncio.to_thread(path.write_bytes, data)
        return Observation(f"{path.name}, {len(data):,} bytes, begins: {data[:500].decode(errors='replace')}", [path])

    async def _show(self, method: str, address: str, sent: str | None = None) -> str:
        response, body = await self._read(method, address, sent)
        if "html" not in response.headers.get("content-type", "html"):
            raise InvalidInputError(f"{address} is no page.", hint="Download it.")
        self._page = await asyncio.to_thread(Page, str(response.url), body)
        return f"{self._page.address}\n{await asyncio.to_thread(self._page.text)}"

    async def _read(self, method: str, address: str, sent: str | None = None) -> tuple[httpx.Response, bytes]:
        """Request an address of the site, and follow its redirects.

        Raises:
            InvalidInputError: An address is not on the site.
            UnavailableError: The site does not answer, or answers with an error.
        """
        form = {"Content-Type": "application/x-www-form-urlencoded"} if sent is not None else {}
        try:
            for _ in range(_MAX_REDIRECTS):
                if urlsplit(address)[:2] != urlsplit(self._site)[:2]:
                    raise InvalidInputError(f"{address} is not on {self._site}.", hint="Stay on this site.")
                async with self._client.stream(method, address, content=sent, headers=form) as response:
                    if response.is_redirect:
                        address, method, sent, form = urljoin(address, response.headers["location"]), "GET", None, {}
                        continue
                    if response.is_error:
                        raise UnavailableError(f"{address} answers {response.status_code} {response.reason_phrase}.")
                    return response, b"".join([piece async for piece in pieces_of(response, _MAX_BYTES)])
        except UnfitAnswerError as error:
            raise UnavailableError(f"{address} is not read: {error}.") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UnavailableError(f"{address} does not answer: {type(error).__name__} {error}.") from None
        raise UnavailableError(f"{address} redirects more than {_MAX_REDIRECTS} times.")
