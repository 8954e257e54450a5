"""Markdown and tables as pages show them: as HTML of our own making, in which nothing that an agent wrote is markup.

A process of its own draws each, within bounds: few characters may take seconds, and a thread would take them from everybody.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from html import escape
from signal import SIGKILL

from ioa.cancellation import fail_after
from ioa.children import send_signal
from ioa.foreign_text import shown, shown_in_line
from ioa.protocol.goals import Artifact
from ioa_gateway import drawing_child
from ioa_gateway.drawing_child import MARKDOWN

MOST_DRAWN_BYTES = 64_000
"""How much of a file is drawn."""
_PATIENCE_SECONDS = 5.0
"""How long a drawing may take where the machine has other things to do."""
_MARKDOWN, _TABLES = ("text/markdown", "text/x-markdown"), {"text/csv": ",", "text/tab-separated-values": "\t"}
_KEPT = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH")
_STYLE = (
    ":root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}body{margin:1rem;overflow-wrap:anywhere}"
    "table{border-collapse:collapse}td,th{border:1px solid #8886;padding:.2em .6em;text-align:left;vertical-align:top}"
    "pre{overflow:auto;background:#8881;padding:.8em}img{max-width:100%}"
)


def is_drawn(artifact: Artifact) -> bool:
    """Whether a file is shown as something else than its text."""
    return artifact.media_type in _MARKDOWN or artifact.media_type in _TABLES


async def drawing(artifact: Artifact, data: bytes) -> str:
    """Draw the beginning of a file; what is not shown of it is said. What takes too much is shown as it was written."""
    text = shown(data.decode("utf-8-sig", "replace").replace("\r\n", "\n"))
    kind = MARKDOWN if artifact.media_type in _MARKDOWN else _TABLES[artifact.media_type]
    body = await _drawn(text.encode(), kind, is_cut=len(data) < artifact.size_bytes)
    if body is None:
        body = f"<p><em>It takes too much to draw this; here is the beginning as it was written.</em></p><pre>{escape(text)}</pre>"
    title = escape(shown_in_line(artifact.name))
    return f"<!doctype html><meta charset=utf-8><title>{title}</title><style>{_STYLE}</style>{body}"


async def _drawn(text: bytes, kind: str, *, is_cut: bool) -> str | None:
    """Have a process draw a text; None if it takes too long, or becomes too much."""
    command = (sys.executable, "-P", drawing_child.__file__, kind, "cut" if is_cut else "whole")
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}  # and no secret of the gateway
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=asyncio.subprocess.DEVNULL, env=kept)
    try:
        async with fail_after(_PATIENCE_SECONDS):
            said, _ = await process.communicate(text)
    except TimeoutError:
        return None
    finally:
        send_signal(process, SIGKILL)
        await process.wait()
    return said.decode() if process.returncode == 0 else None
