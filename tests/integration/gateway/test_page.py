"""The files of the web page. Its behaviour is tested in tests/browser."""

from __future__ import annotations

import gzip
import hashlib
import re

import httpx

from ioa_gateway.static_page import FOLDER

VENDORED = {
    "lit-html/LICENSE": "2b66f9390afde29edfe4314daff93f01fb182e1178053e228120178987e5db75",
    "lit-html/directive-helpers.js": "f7fb1154b8f72ed2cc08b05eaeed71c99270e9ad2d48620ed24688a1af4c2b62",
    "lit-html/directive.js": "3344c4f41c69cd0701d3937e8f9ef90bd845614bf6456d0b8314b7c51d415b9d",
    "lit-html/directives/repeat.js": "083140026ecd8665fedd15b17769f9d516252a9f1502f1e91e6967686ee82626",
    "lit-html/lit-html.js": "b878e7f95dec8a9b6e9b217faca6b6a11bad82ebc44c0caa77419ed83edd81f2",
    "marked/LICENSE": "8e3a3f82f59a60958f56ca08f445647c32a4733dc7ca6c2c46f6eb898471ab9c",
    "marked/marked.esm.js": "5371fea86fd0656b4fc7bea7c94c663109d82789b69433eeee78d42895aa44de",
}
"""What npm's lit-html-3.3.3.tgz (sha512-FHfa+lmNjQZfJ…) and marked-18.2.1.tgz (sha512-ii4bxCTCqqwp…) hold."""

_STATIC_IMPORT = re.compile(r'\bfrom ?"(\.[^"]+)"')
_MAX_BYTES = 48_000


async def test_views_are_one_document_without_a_key(http: httpx.AsyncClient) -> None:
    """A link to a goal opens the page, which then requests its data."""
    root = str(http.base_url).removesuffix("/v1/")
    found = [await http.get(root + path, headers={"Authorization": ""}) for path in ("/", "/goals/any", "/agents", "/policies")]
    assert {one.status_code for one in found} == {200}
    assert len({one.content for one in found}) == 1
    assert "script-src 'self'" in found[0].headers["content-security-policy"]
    assert (await http.get(f"{root}/nowhere")).status_code == 404


async def test_unchanged_file_of_the_page_is_not_sent_again(http: httpx.AsyncClient) -> None:
    """A browser revalidates each file, so that a page never mixes two releases."""
    url = str(http.base_url).removesuffix("/v1/") + "/page/room.js"
    first = await http.get(url)
    again = await http.get(url, headers={"If-None-Match": first.headers["etag"]})
    assert (first.headers["content-type"], first.headers["content-encoding"]) == ("text/javascript; charset=utf-8", "gzip")
    assert (first.headers["cache-control"], again.status_code, again.content) == ("no-cache", 304, b"")


def test_vendored_files_are_unchanged() -> None:
    """lit-html and marked equal the packages of npm."""
    folder = FOLDER / "vendor"
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    assert {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in found.items()} == VENDORED


def test_page_is_small() -> None:
    """The files that a room needs first are below 48 kB, also on a slow line; other files are loaded later."""
    found = {FOLDER / name for name in ("index.html", "ioa.css", "icon.svg", "icons.svg")}
    modules = [FOLDER / "app.js", FOLDER / "views" / "room.js"]
    while modules:
        module = modules.pop().resolve()
        if module not in found:
            found.add(module)
            modules += [module.parent / name for name in _STATIC_IMPORT.findall(module.read_text(encoding="utf-8"))]
    assert sum(len(gzip.compress(path.read_bytes())) for path in found) < _MAX_BYTES
