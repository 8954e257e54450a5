"""The prompts as versioned assets, and how data of others is put into them.

A version of the prompts is a folder; a change of wording that changes what a model decides is a new folder, so that runs can be
compared. Data is fenced by tags, and what looks like such a tag inside the data is defused.
"""

from __future__ import annotations

import re
from importlib.resources import files
from string import Template

VERSION = "v1"
_TAGS = (
    "goal",
    "inputs",
    "contacts",
    "searches",
    "found",
    "agent",
    "team",
    "task",
    "tasks",
    "messages",
    "message",
    "results",
    "refusals",
)
_TAG = re.compile(rf"<(\s*+/?+\s*+(?:{'|'.join(_TAGS)})\b)", re.IGNORECASE)


class Prompts:
    """One version of the prompts, read once."""

    def __init__(self, version: str = VERSION) -> None:
        self.version = version
        folder = files("ioa.agent.model").joinpath("prompts", version)
        self._texts = {entry.name.removesuffix(".md"): entry.read_text("utf-8") for entry in folder.iterdir() if entry.is_file()}
        acts = folder.joinpath("acts")
        self._acts = {entry.name.removesuffix(".md"): entry.read_text("utf-8").strip() for entry in acts.iterdir()}

    def fill(self, name: str, **values: object) -> str:
        """Fill a prompt's placeholders. Values are put in as they are and never read for placeholders themselves."""
        filled = Template(self._texts[name]).substitute({key: str(value) for key, value in values.items()})
        return re.sub(r"\n{3,}", "\n\n", filled).strip()

    def act(self, kind: str) -> str:
        """Describe one kind of message to a speaker."""
        return self._acts[kind]


def fenced(tag: str, text: str, **attributes: object) -> str:
    """Put data between tags it cannot close; nothing at all for no text."""
    if not text:
        return ""
    named = "".join(f' {key}="{str(value).replace(chr(34), chr(39))}"' for key, value in attributes.items())
    return f"<{tag}{named}>\n{text}\n</{tag}>"


def defused(text: str) -> str:
    """Take the force out of anything in the data that looks like one of the prompts' own tags."""
    return _TAG.sub(r"‹\1", text)


def clipped(text: str, most: int) -> str:
    """Keep the beginning and the end of a text that is too long, with a mark between them."""
    if len(text) <= most:
        return text
    mark = f" [… {len(text) - most} characters left out …] "
    room = max(0, most - len(mark))
    return text[: room - room // 3] + mark + (text[-(room // 3) :] if room // 3 else "")
