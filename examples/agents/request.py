"""What the agents of this folder share: the files and results that a task names, numbers as text, and names of files."""

import re
from collections.abc import Sequence
from fractions import Fraction

from ioa import InputFile, InvalidInputError, TaskContext, UpstreamResult

_REFERENCE = re.compile(r"(?<![\w#])#(\d+)(?!\w)")


def results_by_number(task: str, ctx: TaskContext) -> dict[str, UpstreamResult]:
    """Return the results that a task names as `#1`, by their numbers."""
    numbers = list(dict.fromkeys(_REFERENCE.findall(task)))
    if numbers and len(numbers) != len(ctx.results):
        said = f"The task names {len(numbers)} results and receives {len(ctx.results)}."
        raise InvalidInputError(said, hint="#1 is the result of item 1 of a list, and is named in a later item.")
    return dict(zip(numbers, ctx.results, strict=bool(numbers)))


def named_file(name: str, ctx: TaskContext, suffixes: Sequence[str] = ("",)) -> InputFile:
    """Return the file with a name, or the only file of a kind if the name is empty; `#1` names the file of that result."""
    results = results_by_number(name, ctx)
    if name in [f"#{number}" for number in results]:
        files, place = [file for result in results.values() for file in result.artifacts], f"result {name}"
    else:
        files, place = [file for file in ctx.inputs if name in ("", file.name)], name or "the goal"
    files = [file for file in files if file.name.lower().endswith(tuple(suffixes))]
    if len(files) != 1:
        names = ", ".join(file.name for file in ctx.inputs) or "no file; send one with --input FILE"
        kind = " or ".join(filter(None, suffixes)) or "text"
        raise InvalidInputError(f"{place} has {len(files)} {kind} files; the task needs one. The goal came with {names}.")
    return files[0]


def read_text(file: InputFile) -> str:
    """Return the text of a UTF-8 file."""
    try:
        return file.path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInputError(f"{file.name} is not a text in UTF-8.", hint="Save it as UTF-8.") from None


def shown(value: Fraction) -> str:
    """Write a number exactly, or with six decimals after `≈`."""
    scaled = value * 10**6
    if scaled.denominator != 1:
        return f"≈ {float(value):.6f}" if abs(value) >= 1 else f"≈ {float(value):.6g}"
    digits = str(abs(scaled.numerator)).rjust(7, "0")
    return f"{'-' if value < 0 else ''}{digits[:-6]}.{digits[-6:]}".rstrip("0").rstrip(".")


def slug(title: str) -> str:
    """Return a title as the name of a file, without its suffix."""
    return re.sub(r"\W+", "-", title.lower()).strip("-")[:80] or "result"
