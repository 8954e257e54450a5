"""Measure and condense texts: `.txt`, `.md` and `.html` files, text in the request itself, or what earlier tasks found.

    summarise notes.txt in 3 sentences
    count the words and sentences in it
    the 10 most frequent words of notes.txt
    key phrases of page.html
    how often does "water" occur in notes.txt
    how many words are in "to be or not to be"

A request is one or several of the phrases of `_MEASURES`, joined by commas and `and`; words of `_COUNT_FOR_NOTHING` may stand
around them, and any other word is refused by name. A summary is extractive: it quotes the text's own sentences and adds nothing.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from html_text import read_html
from ioa import Agent, InvalidInputError, TaskContext
from task_files import decode, have, named_in, read_text, upstream_files, with_suffix
from text_measures import (
    WORDS_PER_MINUTE,
    frequent_words,
    key_phrases,
    occurrences,
    paragraphs_of,
    readability,
    sentences_of,
    summarise,
    words_of,
)
from words import NUMBER_WORDS, format_number

agent = Agent(
    "text-analyst",
    description="Analyses texts: summaries of a chosen number of sentences, key phrases, most frequent words, counts of words, "
    "sentences, paragraphs and characters, readability and reading time, occurrences of a word.",
    skills=["extractive summary of a text", "word count and text statistics", "key phrases and keywords"],
    examples=[
        "summarise notes.txt in 3 sentences",
        "count the words in it",
        "what are the ten most frequent words in the article?",
        "extract the key phrases of this document",
        "how many sentences and paragraphs does the text have",
        "how often does the word 'water' occur in notes.txt",
        "reading time and readability of the text",
        "give a summary of the page",
        "number of unique words and average sentence length",
    ],
    tags=["text", "summary", "words"],
    may_team_up=False,
)
_SUFFIXES = (".txt", ".md", ".markdown", ".html", ".htm", ".rst", ".log", ".text")
_QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”|«([^»]+)»|(?<!\w)\'([^\']+)\'(?!\w)|`([^`]+)`')
_ADDRESS = re.compile(r"https?://[^\s]+")
_TERM = re.compile(r"\bthe (?:word|term) (\w+) (?=occurs?\b|appears?\b)", re.IGNORECASE)
_JOINT = re.compile(r"[,;?!]|\.(?=\s|$)|\band\b", re.IGNORECASE)
_COUNT_FOR_NOTHING = frozenset(
    "a all also an are article by compute count do document does extract file files find for from get give has have how in into is "
    "it its list make many me measure much number of on page please result results show tell text texts that the them then there "
    "these this those to was what which".split()
)
_ANY = "“…”"
"""Stands for a quoted word."""


@dataclass(frozen=True)
class _Source:
    name: str
    text: str


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Answer for every text the task is about."""
    sources = _sources(task, ctx)
    answers = []
    for source in sources:
        ctx.progress(f"reading {source.name}")
        lines = _answer(task, source, ctx)
        answers.append(
            f"{source.name}: {lines[0]}" if len(lines) == 1 else f"{source.name}:\n" + "\n".join(f"- {line}" for line in lines)
        )
    return "\n\n".join(answers)


def _sources(task: str, ctx: TaskContext) -> list[_Source]:
    if quoted := [text for text in _quotes(task) if len(text.split()) > 2 and not named_in(text, ctx.inputs)]:
        return [_Source("the quoted text", text) for text in quoted]
    if named := with_suffix(named_in(task, ctx.inputs), _SUFFIXES):
        return [_Source(file.name, _read(file.path)) for file in named]
    if earlier := upstream_files(ctx, _SUFFIXES):
        return [_Source(file.name, _read(file.path)) for file in earlier]
    files = with_suffix(ctx.inputs, _SUFFIXES)
    files = [file for file in files if re.search(rf"\b{re.escape(file.path.stem)}\b", task, re.IGNORECASE)] or files
    if files and not (ctx.results and re.search(r"\b(?:it|that|this|them|both|results?|answers?|findings?)\b", task)):
        return [_Source(file.name, _read(file.path)) for file in files]
    if ctx.results:
        return [_Source(f"the result of '{result.task_desc}'", result.content) for result in ctx.results if result.content.strip()]
    _, colon, after = task.partition(":")
    if colon and len(after.split()) > 2:
        return [_Source("the text", after.strip())]
    raise InvalidInputError("There is no text to analyse.", hint=f"Send a text file, or put the text in quotes. {have(ctx)}")


def _quotes(task: str) -> list[str]:
    return [next(group for group in match.groups() if group) for match in _QUOTED.finditer(task)]


def _read(path: Path) -> str:
    if path.suffix.lower() not in (".html", ".htm"):
        return read_text(path)
    page = read_html(decode(path.read_bytes()))
    if not page.text:
        raise InvalidInputError(f"{path.name} holds no text.")
    return page.text


def _answer(task: str, source: _Source, ctx: TaskContext) -> list[str]:
    """Run every measure that the task asks for, in its order."""
    wish = _TERM.sub(r'"\1" ', _ADDRESS.sub(" ", task))
    for file in (*ctx.inputs, *upstream_files(ctx, _SUFFIXES)):
        wish = wish.replace(file.name, " ")
    if source.name == "the quoted text":
        wish = _QUOTED.sub(lambda match: " " if source.text in match.group() else match.group(), wish)
    terms = [term for term in _quotes(wish) if len(term.split()) < 3]
    parts = [part for part in map(_understood, _JOINT.split(_QUOTED.sub(f" {_ANY} ", wish))) if part is not None]
    if not parts or sum(measure is _term for measure, _ in parts) != len(terms):
        raise InvalidInputError("It is not clear what to do with the text.", hint=_HINT)
    left = iter(terms)
    return [measure(source.text, number, next(left) if measure is _term else "", ctx) for measure, number in parts]


def _understood(part: str) -> tuple[Callable[..., str], int] | None:
    """The measure that a part of a task asks for, and how many of it; None if the part says nothing.

    Raises:
        InvalidInputError: A word of it is not understood.
    """
    words = [word for word in re.findall(rf"[^\W_]+|{_ANY}", part.lower()) if word not in _COUNT_FOR_NOTHING]
    numbers = [word for word in words if word.isdigit() or word in NUMBER_WORDS]
    phrase = " ".join(word for word in words if word not in numbers)
    if not words:
        return None
    measure, takes_number = _PHRASES.get(phrase, (None, False))
    known = {word for one in _PHRASES for word in one.split()}
    wrong = [word for word in phrase.split() if word not in known] or (phrase.split() if measure is None else [])
    if measure is not None:
        wrong += numbers[takes_number:]
    if measure is None or wrong:
        raise InvalidInputError(
            f"{', '.join(map(repr, wrong or words))} {'is' if len(wrong or words) == 1 else 'are'} not understood.", hint=_HINT
        )
    return measure, (NUMBER_WORDS.get(numbers[0], 0) or int(numbers[0])) if numbers else 0


def _term(text: str, number: int, term: str, ctx: TaskContext) -> str:
    found = occurrences(text, term)
    excerpts = "".join(f"\n  … {excerpt} …" for excerpt in found[:5])
    return f"'{term}' occurs {len(found)} {'time' if len(found) == 1 else 'times'}{excerpts}"


def _summary(text: str, number: int, term: str, ctx: TaskContext) -> str:
    return f"summary: {' '.join(summarise(text, number or 3))}"


def _phrases(text: str, number: int, term: str, ctx: TaskContext) -> str:
    return f"key phrases: {', '.join(phrase for phrase, _ in key_phrases(text, number or 8)) or 'none'}"


def _frequent(text: str, number: int, term: str, ctx: TaskContext) -> str:
    words = frequent_words(text, number or 10)
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([("word", "count"), *words])
    ctx.artifact("frequent-words.csv", table.getvalue(), "text/csv")
    return f"most frequent words (without words such as 'the'): {', '.join(f'{word} ({count})' for word, count in words)}"


def _longest(text: str, number: int, term: str, ctx: TaskContext) -> str:
    words = sorted(set(words_of(text)), key=lambda word: (-len(word), word))
    return f"longest words: {', '.join(f'{word} ({len(word)})' for word in words[: number or 1])}"


def _time(text: str, number: int, term: str, ctx: TaskContext) -> str:
    minutes = len(words_of(text)) / WORDS_PER_MINUTE
    return f"reading time: {format_number(round(minutes, 1))} minutes at {WORDS_PER_MINUTE} words a minute"


def _readability(text: str, number: int, term: str, ctx: TaskContext) -> str:
    ease, grade = readability(text)
    return f"readability: Flesch reading ease {ease:.1f}, Flesch-Kincaid grade {grade:.1f}"


def _figure(name: str, measure: Callable[[str], int | float]) -> Callable[..., str]:
    return lambda text, number, term, ctx: f"{name}: {format_number(measure(text))}"


def _mean(total: int, count: int) -> float:
    return total / count if count else 0.0


_MEASURES: list[tuple[str, Callable[..., str], bool]] = [
    ("words|word", _figure("words", lambda text: len(words_of(text))), False),
    ("sentences|sentence", _figure("sentences", lambda text: len(sentences_of(text))), False),
    ("paragraphs|paragraph", _figure("paragraphs", lambda text: len(paragraphs_of(text))), False),
    ("lines|line", _figure("lines", lambda text: len(text.splitlines())), False),
    ("characters|letters", _figure("characters", len), False),
    (
        "unique words|distinct words|different words",
        _figure("unique words", lambda text: len({*map(str.lower, words_of(text))})),
        False,
    ),
    (
        "average sentence length|average length sentences|average words per sentence",
        _figure("average sentence length in words", lambda text: _mean(len(words_of(text)), len(sentences_of(text)))),
        False,
    ),
    (
        "average word length|average length words",
        _figure("average word length in characters", lambda text: _mean(sum(map(len, words_of(text))), len(words_of(text)))),
        False,
    ),
    ("longest word|longest words", _longest, True),
    ("most frequent words|frequent words|most common words|common words|most used words|top words|word frequency", _frequent, True),
    ("key phrases|keyphrases|key words|keywords|key terms|topics", _phrases, True),
    (
        "summarise|summarize|summary|summarise sentences|summarise sentence|summarize sentences|sentence summary|summary sentences",
        _summary,
        True,
    ),
    ("reading time|time read|long take read", _time, False),
    ("readability|flesch reading ease|grade level", _readability, False),
    (
        "|".join(
            phrase.replace("X", _ANY)
            for phrase in "X|often X occur|often X appear|often X occurs|often X appears|often word X occur|often word X occurs"
            "|times X occur|times X appear|times word X occur|times word X appear|occurrences X|word X|mention X|mentions X".split(
                "|"
            )
        ),
        _term,
        False,
    ),
]
_PHRASES = {phrase: (measure, takes_number) for phrases, measure, takes_number in _MEASURES for phrase in phrases.split("|")}
_HINT = (
    "Texts are summarised, counted (words, sentences, paragraphs, lines, characters), searched for a word in quotes, and measured: "
    "most frequent words, key phrases, unique words, longest words, reading time, readability. Say it without other words."
)


if __name__ == "__main__":
    agent.run()
