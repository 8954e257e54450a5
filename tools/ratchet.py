"""Ratchet: compare code size and unclear phrases with the bounds in pyproject.toml; a bound may only fall.

`python -m tools.ratchet` fails if a figure is above its bound. `--list [PATH ...]` prints every unclear phrase, `--write` lowers
the bounds to the present figures. A commit that has to raise a bound gives the reason.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

PRODUCT, TESTS = ("libs", "services"), ("tests",)
PROSE = ("libs", "services", "README.md", "CONTRIBUTING.md", "docs")
NOT_PROSE = "docs/adr/"
"""Each decision is short and is read as a whole by its reviewer."""
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
_STATEMENT_ENDS = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
_SHORTEST_ERROR_CHARS = 12
_RULES = [
    (rule["advice"], re.compile(rule["pattern"], re.IGNORECASE | re.MULTILINE))
    for rule in tomllib.loads(Path(__file__).with_name("unclear_phrases.toml").read_text(encoding="utf-8"))["rules"]
]
_UNCLEAR_NAME = re.compile(
    r"^_?(?:of|.*_of|told|tell|said|given|kept|left|heard|asked|whom?|what|nobody|somebody|.*_told|.*_who|.*_whom)$"
    r"|_(?:who|whom|whoever|nobody|somebody|told)_"
)


class Phrase(NamedTuple):
    """An unclear phrase: its place, the text around it, and what to write instead."""

    path: Path
    line: int
    advice: str
    text: str


def tracked(folders: tuple[str, ...], suffixes: tuple[str, ...] = (".py",)) -> list[Path]:
    """Return the tracked files in these folders that exist."""
    listed = subprocess.run(["git", "ls-files", "-z", "--", *folders], capture_output=True, text=True, check=True).stdout
    return [path for name in listed.split("\0") if name.endswith(suffixes) and (path := Path(name)).is_file()]


def count_tokens(source: str) -> int:
    """Count the tokens of code, without comments, docstrings and layout."""
    count, begins_statement = 0, True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in _STATEMENT_ENDS:
            begins_statement = True
        elif token.type not in _LAYOUT:
            count += not (begins_statement and token.type == tokenize.STRING)
            begins_statement = False
    return count


def prose_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of the prose in a file: Markdown, docstrings, comments, error messages and help texts."""
    source = path.read_text(encoding="utf-8")
    yield from _prose_of_markdown(source) if path.suffix == ".md" else _prose_of_python(source)


def _prose_of_markdown(source: str) -> Iterator[tuple[int, str]]:
    source = re.sub(r"```.*?```", lambda match: "\n" * match.group().count("\n"), source, flags=re.DOTALL)
    source = re.sub(r"`[^`\n]*`", "`x`", source)
    yield from ((number, line) for number, line in enumerate(source.splitlines(), 1) if line.strip())


def _prose_of_python(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr):
            for number, text in _strings_in([node.value]):
                yield from ((number + offset, line) for offset, line in enumerate(text.splitlines()))
        elif isinstance(node, ast.Raise) and node.exc is not None:
            for number, text in _strings_in(ast.walk(node.exc)):
                if " " in text and len(text) > _SHORTEST_ERROR_CHARS:
                    yield number, text
        elif isinstance(node, ast.keyword) and node.arg in {"help", "hint", "description"}:
            yield from _strings_in([node.value])
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string[1:].strip()


def _strings_in(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def unclear_names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of functions, classes and modules whose names hide their purpose."""
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and _UNCLEAR_NAME.search(node.name):
                yield node.lineno, node.name
        if _UNCLEAR_NAME.search(path.stem):
            yield 1, path.stem


def unclear_phrases(paths: list[Path]) -> tuple[list[Phrase], int]:
    """Return the unclear phrases in files, and the number of words of prose."""
    found, words = list[Phrase](), 0
    for path in paths:
        for line, text in prose_of(path):
            words += len(text.split())
            for advice, pattern in _RULES:
                found += [Phrase(path, line, advice, text.strip()) for _ in pattern.finditer(text)]
        found += [Phrase(path, line, "name the thing or the action", name) for line, name in unclear_names(path)]
    return found, words


def figures() -> dict[str, int]:
    """Return the present figures under the names that pyproject.toml uses."""
    prose = [path for path in tracked(PROSE, (".py", ".md")) if not str(path).startswith(NOT_PROSE)]
    phrases, words = unclear_phrases(prose)
    return {
        "product_tokens": sum(count_tokens(path.read_text(encoding="utf-8")) for path in tracked(PRODUCT)),
        "test_tokens": sum(count_tokens(path.read_text(encoding="utf-8")) for path in tracked(TESTS)),
        "unclear_phrases_per_10000_words": -(-10_000 * len(phrases) // max(words, 1)),
    }


def main() -> int:
    """Read the command line, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", help="files or folders for --list")
    parser.add_argument("--list", action="store_true", help="print every unclear phrase")
    parser.add_argument("--write", action="store_true", help="lower the bounds to the present figures")
    options = parser.parse_args()
    if options.list:
        for phrase in unclear_phrases(tracked(tuple(options.paths or PROSE), (".py", ".md")))[0]:
            sys.stdout.write(f"{phrase.path}:{phrase.line}: {phrase.advice}: {phrase.text}\n")
        return 0
    settings = Path("pyproject.toml")
    text = settings.read_text(encoding="utf-8")
    bounds: dict[str, int] = tomllib.loads(text)["tool"]["ioa"]["ratchet"]
    above = False
    for name, figure in figures().items():
        above |= figure > bounds[name]
        mark = ": ABOVE" if figure > bounds[name] else ""
        sys.stdout.write(f"{name}: {figure:,} (bound {bounds[name]:,}{mark})\n")
        if options.write and figure < bounds[name]:
            text = re.sub(rf"^{name} = .*$", f"{name} = {figure:_}", text, flags=re.MULTILINE)
    if options.write:
        settings.write_text(text, encoding="utf-8")
    return int(above)


if __name__ == "__main__":
    sys.exit(main())
