"""Measure and condense texts: `.txt`, `.md` and `.html` files, text in the request itself, or what earlier tasks found.

A request is one or several of the phrases of `_MEASURES`, joined by commas and `and`; words of `_COUNT_FOR_NOTHING` may stand
around them, and any other word is refused by name. A summary is extractive: it quotes the text's own sentences and adds nothing.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sized
from pathlib import Path

from html_text import read_html
from ioa import Agent, InvalidInputError, TaskContext
from task_files import decode, have, named_in, read_text, upstream_files, with_suffix
from text_measures import frequent_words, key_phrases, occurrences, paragraphs_of, sentences_of, summarise, words_of
from words import NUMBER_WORDS, QUOTED, quotations

agent = Agent(
    "text-analyst",
    description="Analyses texts: summaries of a chosen number of sentences, key phrases, most frequent words, counts of words, "
    "sentences, paragraphs and characters, unique words, occurrences of a word.",
    skills=["extractive summary of a text", "word count and text statistics", "key phrases and keywords"],
    examples=[
        "summarise notes.txt in 3 sentences", "count the words in it", "what are the ten most frequent words in the article?",
        "extract the key phrases of this document", "how many sentences and paragraphs does the text have",
        "how often does the word 'water' occur in notes.txt", "give a summary of the page",
        "number of unique words in the text", "read letter.txt and tell me how many words it has",
    ],
    tags=["text", "summary", "words"],
    may_team_up=False,
)  # fmt: skip
_SUFFIXES = (".txt", ".md", ".markdown", ".html", ".htm", ".rst", ".log", ".text")
_TERM = re.compile(r"\bthe (?:word|term) (\w+) (?=occurs?\b|appears?\b)", re.IGNORECASE)
_JOINT = re.compile(r"[,;?!]|\.(?=\s|$)|\band\b", re.IGNORECASE)
_COUNT_FOR_NOTHING = frozenset(
    "a all also an are article by compute count do document does extract file files find for from get give has have how in into is "
    "it its list make many me measure much number of on page please result results show tell text texts that the them then there "
    "these this those to was what which".split()
)
_ANY = "“…”"
"""Stands for a quoted word."""
_SUMMARISE = ("summarise", "summarize", "summary")
_OFTEN = ("", "often", "often word", "times", "times word", "occurrences", "word", "mentions", "mention")
_OCCUR = ("", "occur", "occurs", "appear", "appears")
_HINT = (
    "Texts are summarised, counted (words, unique words, sentences, paragraphs, lines, characters), searched for a word in quotes, "
    "and asked for their most frequent words and key phrases. Say it without other words."
)


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Answer for every text the task is about."""
    answers = []
    for name, text in _texts(task, ctx):
        ctx.progress(f"reading {name}")
        lines = _answer(task, name, text, ctx)
        answers.append(f"{name}: {lines[0]}" if len(lines) == 1 else "\n- ".join([f"{name}:", *lines]))
    return "\n\n".join(answers)


def _texts(task: str, ctx: TaskContext) -> list[tuple[str, str]]:
    """The texts that a task is about, with their names: in quotes, named, of earlier results, or all that came."""
    if quoted := [text for text in quotations(task) if len(text.split()) > 2 and not named_in(text, ctx.inputs)]:
        return [("the quoted text", text) for text in quoted]
    files = with_suffix(ctx.inputs, _SUFFIXES)
    refers = ctx.results and re.search(r"\b(?:it|that|this|them|both|results?|answers?|findings?)\b", task)
    fitting = with_suffix(named_in(task, ctx.inputs), _SUFFIXES) or upstream_files(ctx, _SUFFIXES) or ([] if refers else files)
    if fitting:
        return [(file.name, _read(file.path)) for file in fitting]
    if ctx.results:
        return [(f"the result of '{result.task_desc}'", result.content) for result in ctx.results if result.content.strip()]
    raise InvalidInputError("There is no text to analyse.", hint=f"Send a text file, or put the text in quotes. {have(ctx)}")


def _read(path: Path) -> str:
    if path.suffix.lower() not in (".html", ".htm"):
        return read_text(path)
    text = read_html(decode(path.read_bytes())).text
    if not text:
        raise InvalidInputError(f"{path.name} holds no text.")
    return text


def _answer(task: str, name: str, text: str, ctx: TaskContext) -> list[str]:
    """Run every measure that the task asks for, in its order."""
    wish = _TERM.sub(r'"\1" ', re.sub(r"https?://\S+", " ", task))
    for file in (*ctx.inputs, *upstream_files(ctx, _SUFFIXES)):
        wish = wish.replace(file.name, " ")
    if name == "the quoted text":
        wish = QUOTED.sub(lambda match: " " if text in match[0] else match[0], wish)
    terms = iter(quotations(wish))
    parts = [part for part in map(_understood, _JOINT.split(QUOTED.sub(f" {_ANY} ", wish))) if part]
    if not parts or sum(measure is _term for measure, _ in parts) != len(quotations(wish)):
        raise InvalidInputError("It is not clear what to do with the text.", hint=_HINT)
    return [measure(text, next(terms) if measure is _term else number, ctx) for measure, number in parts]


def _understood(part: str) -> tuple[Callable[..., str], int] | None:
    """The measure that a part of a task asks for, and how many of it; None if the part says nothing.

    Raises:
        InvalidInputError: A word of it is not understood.
    """
    words = [word for word in re.findall(rf"[^\W_]+|{_ANY}", part.lower()) if word not in _COUNT_FOR_NOTHING]
    numbers = [word for word in words if word.isdecimal() or word in NUMBER_WORDS]
    rest = [word for word in words if word not in numbers]
    if not words:
        return None
    for phrases, measure, most_numbers in _MEASURES:
        if " ".join(rest) in phrases and len(numbers) <= most_numbers:
            return measure, (NUMBER_WORDS.get(numbers[0], 0) or int(numbers[0])) if numbers else 0
    known = {word for phrases, *_ in _MEASURES for phrase in phrases for word in phrase.split()}
    wrong = [word for word in rest if word not in known] or words
    raise InvalidInputError(f"{', '.join(map(repr, wrong))} {'is' if len(wrong) == 1 else 'are'} not understood.", hint=_HINT)


def _term(text: str, term: str, ctx: TaskContext) -> str:
    found = occurrences(text, term)
    excerpts = "".join(f"\n  … {excerpt} …" for excerpt in found[:5])
    return f"'{term}' occurs {len(found)} {'time' if len(found) == 1 else 'times'}{excerpts}"


def _summary(text: str, number: int, ctx: TaskContext) -> str:
    return f"summary: {' '.join(summarise(text, number or 3))}"


def _phrases(text: str, number: int, ctx: TaskContext) -> str:
    return f"key phrases: {', '.join(key_phrases(text, number or 8)) or 'none'}"


def _frequent(text: str, number: int, ctx: TaskContext) -> str:
    words, table = frequent_words(text, number or 10), io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([("word", "count"), *words])
    ctx.artifact("frequent-words.csv", table.getvalue(), "text/csv")
    return f"most frequent words (without words such as 'the'): {', '.join(f'{word} ({count})' for word, count in words)}"


def _count(name: str, parts: Callable[[str], Sized]) -> Callable[..., str]:
    return lambda text, number, ctx: f"{name}: {len(parts(text))}"


_MEASURES: list[tuple[list[str], Callable[..., str], int]] = [
    (["words", "word"], _count("words", words_of), 0),
    (["sentences", "sentence"], _count("sentences", sentences_of), 0),
    (["paragraphs", "paragraph"], _count("paragraphs", paragraphs_of), 0),
    (["lines", "line"], _count("lines", str.splitlines), 0),
    (["characters"], _count("characters", str), 0),
    (["unique words", "distinct words", "different words"], _count("unique words", lambda text: {*words_of(text.lower())}), 0),
    (["most frequent words", "frequent words", "most common words", "most used words", "top words"], _frequent, 1),
    (["key phrases", "keywords", "key words"], _phrases, 1),
    ([f"{verb}{of}" for verb in _SUMMARISE for of in ("", " sentences", " sentence")] + ["sentence summary"], _summary, 1),
    ([" ".join(filter(None, (head, _ANY, verb))) for head in _OFTEN for verb in _OCCUR], _term, 0),
]


if __name__ == "__main__":
    agent.run()
