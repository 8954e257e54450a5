"""What the documentation's build does beside its configuration (mkdocs.yml): the hooks of `make docs`.

- The changelog and the page for contributors lie outside of `docs/`, where everybody looks for them, and are pages all the same.
- Pages link to files of the repository, which a website does not have: such a link becomes the file's path.
- Every decision in `docs/adr/` is in the navigation.
- Diagrams are drawn in the browser by the mermaid.js of a locked package: nothing is loaded from another host, which is checked.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "README.md": "index.md"}
"""Files of the repository that have a page; the front page is not README.md, but says the same to a reader."""
DRAWING = "assets/javascripts/mermaid.js"

_LINK = re.compile(r"\[(?P<text>[^\]\n]+)\]\((?P<path>[^()\s#:]+)(?P<anchor>#[^()\s]*)?\)")
_LOADED = re.compile(r"""<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=["']?(?:https?:)?//[^>]*>""", re.IGNORECASE)
_NO_ASSET = re.compile(r"""\brel=["']?(?:canonical|alternate|next|prev)\b""", re.IGNORECASE)


def for_the_site(markdown: str, source: str, page: str) -> str:
    """Turn the links that leave `docs/` into links between pages, or into the path of the file that they lead to.

    Args:
        markdown: The text of a page.
        source: The file it comes from, from the root of the repository.
        page: The page it becomes, from the root of the site.

    Raises:
        ValueError: A link leads to a file that is not there.
    """

    def rewritten(link: re.Match[str]) -> str:
        path = normpath(PurePosixPath(source).parent / link["path"])
        if path in PAGES:
            target = PAGES[path]
        elif path.startswith("docs/"):
            target = path.removeprefix("docs/")
        elif (ROOT / path).exists():
            return f"`{path}`" if _is_path(link["text"], path) else f"{link['text']} (`{path}`)"
        else:
            raise ValueError(f"{source} links to {path}, which is not there.")
        return f"[{link['text']}]({relpath(target, PurePosixPath(page).parent)}{link['anchor'] or ''})"

    return _LINK.sub(rewritten, markdown)


def _is_path(text: str, path: str) -> bool:
    """Whether a link's text says no more than where it leads."""
    return text.startswith("`") or path.endswith(text)


def loaded_from_elsewhere(html: str) -> list[str]:
    """Return the elements of a page for which a browser would ask another host."""
    return [found for found in _LOADED.findall(html) if not _NO_ASSET.search(found)]


def with_decisions(nav: list[Any], decisions: list[str]) -> list[Any]:
    """Put the decisions behind the page that lists them."""
    return [_with_decisions(entry, decisions) for entry in nav]


def _with_decisions(entry: Any, decisions: list[str]) -> Any:
    match entry:
        case {"Decisions": str(index)}:
            return {"Decisions": [index, *decisions]}
        case {**section} if section:
            [(title, below)] = section.items()
            return {title: with_decisions(below, decisions)} if isinstance(below, list) else entry
        case _:
            return entry


def on_config(config: Any) -> Any:
    """Complete the navigation."""
    decisions = sorted(f"adr/{file.name}" for file in (ROOT / "docs" / "adr").glob("[0-9]*.md"))
    config.nav = with_decisions(config.nav, decisions)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that come from outside of `docs/`."""
    from properdocs.structure.files import File

    for source, page in PAGES.items():
        if files.get_file_from_path(page) is None:
            files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_rest: Any) -> str:
    """Make the page's links fit for a website; a page that stands alone needs no list of its neighbours."""
    from properdocs.exceptions import PluginError

    if page.parent is None:
        page.meta.setdefault("hide", ["navigation"])
    name = page.file.src_uri
    source = {made: file for file, made in PAGES.items() if page.file.generated_by}.get(name, f"docs/{name}")
    try:
        return for_the_site(markdown, source, name)
    except ValueError as error:
        raise PluginError(str(error)) from None


def on_page_content(html: str, page: Any, **_rest: Any) -> str:
    """Load what draws diagrams where there are some, before the theme looks for it in the network."""
    if '<pre class="mermaid">' not in html:
        return html
    depth = page.file.url.count("/")
    return f'{html}\n<script src="{"../" * depth}{DRAWING}"></script>'


def on_post_page(output: str, page: Any, **_rest: Any) -> str:
    """Refuse a page that would load something from another host."""
    from properdocs.exceptions import PluginError

    if elsewhere := loaded_from_elsewhere(output):
        raise PluginError(f"{page.file.src_uri} would load from another host: {elsewhere[0]}")
    return output


def on_post_build(config: Mapping[str, Any]) -> None:
    """Put what draws diagrams beside the theme's own scripts."""
    package = find_spec("mermaidx")
    assert package is not None and package.origin is not None
    shutil.copyfile(Path(package.origin).with_name("assets") / "mermaid.js", Path(config["site_dir"]) / DRAWING)
