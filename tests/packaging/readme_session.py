"""Turns a Markdown page into one shell session that does what a reader would do, from top to bottom.

Conventions, for whoever writes the page:

- Fences are `sh`, `python`, or of a kind that is only read (`text`, `json`, `mermaid`). Any other, or none, is an error.
- All `sh` blocks run in one session (bash, first failure ends it), so `cd` and an activated environment last. One command per
  line; a line that ends in a backslash goes on.
- `git clone URL` clones the tree under test instead, into the folder that URL names.
- A command that stays (`ioa up &`, `ioa agent run greeter.py:agent &`) ends in `&`. It must print a line that begins with `ready`,
  or log `agent_ready`, which the session waits for; it is ended with SIGTERM when the page is over, and must then exit 0.
- `make test` and `make check` are not run, since each takes minutes: `.ci/run` must hold the same line instead.
- A `python` block that begins with a comment that names a file (`# greeter.py`) is saved there, and imported. Any other is run. The
  Python is that of the folder's `.venv`, if it has one.
- `nats pub` and `nats sub` are NATS's own command line. Where it is not installed, `nats_command.py` stands in.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

_TIMEOUT_SECONDS = 540
READ_ONLY = {"text", "json", "mermaid"}
RUN_BY_CI = {"make test", "make check"}
_FENCE = re.compile(r"^(?P<fence>`{3,})(?P<kind>[^\n]*)\n(?P<body>.*?)^(?P=fence)\s*$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"#\s*(?P<name>\w+\.py)\s*\n")

# `start` is called with the command as text. It waits until it is ready, and gives up when it ends before or takes a minute.
_PRELUDE = """set -euo pipefail
logs=$(mktemp -d); stay=()
block_python() { if [ -x .venv/bin/python ]; then .venv/bin/python "$@"; else python3 "$@"; fi; }
start() {
  local log="$logs/${#stay[@]}"
  : >"$log"  # before anybody looks into it
  bash -c "$1" >>"$log" 2>&1 & stay+=($!)
  for _ in $(seq 600); do
    grep -Eq '^ready|"agent_ready"' "$log" && return
    kill -0 "${stay[-1]}" 2>/dev/null || break
    sleep 0.1
  done
  echo "'$1' did not say that it is ready:"; cat "$log"; return 1
}
finish() {
  local status=$?
  for pid in "${stay[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${stay[@]}"; do wait "$pid" || { echo "a command that stays ended with $?"; cat "$logs"/*; status=1; }; done
  rm -rf "$logs"; exit "$status"
}
trap finish EXIT
"""


@dataclass(frozen=True)
class Block:
    """A fenced block of a Markdown page."""

    kind: str
    body: str
    line: int


def blocks_of(markdown: str, also: Collection[str] = ()) -> list[Block]:
    """Return the page's fenced blocks, in order.

    Args:
        markdown: The page.
        also: Kinds that a page may have which is not run as a session.

    Raises:
        ValueError: A fence is of a kind that nobody decided how to check.
    """
    blocks = []
    for match in _FENCE.finditer(markdown):
        block = Block(match["kind"].strip(), match["body"], markdown.count("\n", 0, match.start()) + 1)
        if block.kind not in READ_ONLY | {"sh", "python", *also}:
            raise ValueError(f"line {block.line}: a fence of kind {block.kind!r}; write sh, python, text, json or mermaid")
        blocks.append(block)
    return blocks


def shown_output(markdown: str) -> list[str]:
    """Return the lines that the page shows as output: of each `text` block that stands behind an `sh` block."""
    blocks = blocks_of(markdown)
    shown = [block for before, block in pairwise(blocks) if (before.kind, block.kind) == ("sh", "text")]
    return [line for block in shown for line in block.body.splitlines() if line.strip()]


def commands_of(block: Block) -> list[str]:
    """Return the commands of an `sh` block, without comments and prompts' blank lines."""
    commands, open_quote = list[str](), ""
    for line in block.body.replace("\\\n", " ").splitlines():
        if not open_quote and (not line.strip() or line.lstrip().startswith("#")):
            continue
        command = f"{open_quote}\n{line}" if open_quote else line.strip()
        if _is_complete(command):
            commands.append(command.rstrip())
            open_quote = ""
        else:
            open_quote = command
    return [*commands, *filter(None, [open_quote])]


def _is_complete(command: str) -> bool:
    """Return False if a quote is open, so that the next line belongs to the command."""
    try:
        shlex.split(command)
    except ValueError:
        return False
    return True


def left_to_ci(markdown: str) -> set[str]:
    """Return the commands of the page that `.ci/run` has to run, since the session can't."""
    commands = {_bare(command) for block in blocks_of(markdown) if block.kind == "sh" for command in commands_of(block)}
    return commands & RUN_BY_CI


def session_of(markdown: str, clone_from: str) -> str:
    """Return the bash script that goes through the page; `clone_from` is what stands in for the URL of `git clone`."""
    lines = [_PRELUDE]
    for block in blocks_of(markdown):
        if block.kind == "sh":
            lines += [_run(command, block.line, clone_from) for command in commands_of(block)]
        elif block.kind == "python":
            lines.append(_python(block))
    return "\n".join(lines) + "\n"


def _run(command: str, line: int, clone_from: str) -> str:
    shown = f"echo {shlex.quote(f'[line {line}] $ {command}')}"
    command = _bare(command)
    if command in RUN_BY_CI:
        return f"{shown} '(left to .ci/run)'"
    if command.endswith("&") and not command.endswith("&&"):
        return f"{shown}\nstart {shlex.quote(command.removesuffix('&').strip())}"
    return f"{shown}\n{_with_local_clone(command, clone_from)}"


def _bare(command: str) -> str:
    """Return the command without its comment."""
    return re.sub(r"\s+#\s.*$", "", command)


def _with_local_clone(command: str, clone_from: str) -> str:
    def local(match: re.Match[str]) -> str:
        folder = match["url"].rstrip("/").rsplit("/", 1)[-1].removesuffix(".git")
        return f"git clone --quiet {shlex.quote(clone_from)} {shlex.quote(folder)}"

    return re.sub(r"git clone (?P<url>[^\s&;]+)", local, command)


def _python(block: Block) -> str:
    shown = f"echo '[line {block.line}] python'"
    named = _FILE.match(block.body)
    if named is None:
        return f"{shown}\nblock_python - <<'END_OF_BLOCK'\n{block.body}END_OF_BLOCK"
    module = named["name"].removesuffix(".py")
    return f"{shown}\ncat > {named['name']} <<'END_OF_BLOCK'\n{block.body}END_OF_BLOCK\nblock_python -W error -c 'import {module}'"


def go_through(markdown: str, clone_from: Path, folder: Path, variables: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run the page's session in `folder`; return its exit code and everything it printed. Nothing of it is left running."""
    folder.mkdir()
    tools = folder.parent / "tools"
    tools.mkdir()
    if shutil.which("nats") is None:
        command = tools / "nats"
        command.write_text(
            f'#!/bin/sh\nexec {sys.executable} {Path(__file__).with_name("nats_command.py")} "$@"\n', encoding="utf-8"
        )
        command.chmod(0o755)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("IOA_", "PYTHON", "VIRTUAL_ENV", "MAKE"))
    }
    environment |= variables or {}
    environment["PATH"] = f"{environment['PATH']}:{tools}"
    script = folder.parent / "session.sh"
    script.write_text(session_of(markdown, str(clone_from)), encoding="utf-8")
    log = folder.parent / "session.log"
    with log.open("wb") as output:
        session = subprocess.Popen(
            ["bash", script], cwd=folder, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        session.wait(_TIMEOUT_SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(session.pid, signal.SIGKILL)  # what the session left behind, if anything
        session.wait()
    return session.returncode, log.read_text(encoding="utf-8", errors="replace")


def pip_from(wheels: Path) -> dict[str, str]:
    """Settings by which pip installs from a folder alone, the wheel under test among others, and compiles what is imported."""
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_NO_COMPILE": "1"}
