"""What a request speaks of: its words, made comparable with names in the data, and its files."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence

from ioa import DeclinedError, InputFile, TaskContext

DRAW, CHART_KIND, CHART = "make|draw|create", "bar|line", "chart|plot|graph|visualise|visualize"
TABLES = (".csv", ".tsv", ".tab", ".json")


def with_suffix(files: Iterable[InputFile], suffixes: Sequence[str]) -> list[InputFile]:
    """Keep the files whose name ends in one of `suffixes`."""
    return [file for file in files if file.name.lower().endswith(tuple(suffixes))]


def upstream_files(ctx: TaskContext, suffixes: Sequence[str]) -> list[InputFile]:
    """The fitting files that earlier tasks attached, in order."""
    return [file for result in ctx.results for file in with_suffix(result.artifacts, suffixes)]


def named_in(text: str, files: Iterable[InputFile]) -> list[InputFile]:
    """The files whose name stands in `text`."""
    return [file for file in files if re.search(rf"(?<![\w.-]){re.escape(fold(file.name))}(?!\w)", fold(text))]


def pick_inputs(task: str, ctx: TaskContext, suffixes: Sequence[str]) -> list[InputFile]:
    """The inputs with a fitting name that the task names; all fitting ones if it names none; declines if it names only others."""
    named = named_in(task, ctx.inputs)
    if named and not with_suffix(named, suffixes):
        raise DeclinedError(f"{named[0].name} is not one of {', '.join(suffixes)}.", hint=have(ctx))
    return with_suffix(named or ctx.inputs, suffixes)


def words_of_names(text: str) -> list[str]:
    """The words of a text, with the points and hyphens in them, as names of files are written."""
    return re.findall(r"[\w.-]*\w", text)


def have(ctx: TaskContext) -> str:
    """Say which inputs came with the goal."""
    names = ", ".join(file.name for file in ctx.inputs)
    return f"The goal came with: {names}." if names else "The goal came with no files."


def fold(text: str) -> str:
    """Drop case and accents: `Zürich` and `ZURICH` become equal."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def slug(title: str) -> str:
    """What a title says as the name of a file."""
    signs = {"<=": "at most", ">=": "at least", "<": "below", ">": "above"}
    return re.sub(r"[^a-z0-9]+", "-", re.sub("[<>]=?", lambda sign: signs[sign[0]], title.lower())).strip("-")[:120]


def format_number(value: float) -> str:
    """Write a number with at most four decimals, or, when it is below one, six digits."""
    return f"{value + 0.0:.6g}" if abs(value) < 1 else f"{value:.4f}".rstrip("0").rstrip(".")


def account_for(text: str, known: Collection[str], hint: str = "") -> None:
    """Decline a request with a word that its agent does not know (in lower case): it may be a wish that would not be fulfilled."""
    if unknown := [word for word in re.findall(r"\w+", text.lower()) if word not in known]:
        raise DeclinedError(are_not(unknown, "understood here"), hint=hint)


def not_there(words: Iterable[str], suffixes: Sequence[str]) -> str:
    """Say of words that are names of files of such a kind that no such file is there; empty if none is."""
    names = [word for word in words if word.lower().endswith(tuple(suffixes))]
    return f"{', '.join(map(repr, names))} did not come with the goal." if names else ""


def are_not(words: Collection[str], what: str) -> str:
    """Say of words what they are not."""
    return f"{', '.join(map(repr, words))} {'is' if len(words) == 1 else 'are'} not {what}."
