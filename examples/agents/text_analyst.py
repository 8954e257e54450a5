"""Measure and condense texts: `.txt`, `.md` and `.html` files, text in the request itself, or what earlier tasks found.

    summarise notes.txt in 3 sentences
    count the words and sentences in it
    the 10 most frequent words of notes.txt
    key phrases of page.html
    how often does "water" occur in notes.txt
    how many words are in "to be or not to be"

A summary is extractive: it quotes the text's own sentences and adds nothing.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from html_text import read_html
from ioa import Agent
from ioa.agent.sdk import TaskContext
from ioa.errors import InvalidInputError
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
_COUNT_FOR_NOTHING = frozenset(
    """a an the of in to for from and then also it its this that them these those text texts file files document page article
    result results is are was has have does do there please me i you give tell show find get make compute count extract list what
    which how many much number by with at word words sentence sentences phrase phrases occur occurs appear appears analyse analyze
    read""".split()
)
_NUMBER = rf"(\d+|{'|'.join(NUMBER_WORDS)})"


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
    """Run every measure the task asks for, in the order of the table below."""
    wish = _QUOTED.sub(lambda match: match[0] if len(match[0].split()) < 3 else " ", task)
    wish = _ADDRESS.sub(" ", wish)
    for file in (*ctx.inputs, *upstream_files(ctx, _SUFFIXES)):
        wish = wish.replace(file.name, " ")
    lines, rest = [], wish
    for pattern, measure in _MEASURES:
        if match := re.search(pattern, rest, re.IGNORECASE):
            lines.append(measure(source.text, match, wish, ctx))
            rest = _without(match, rest)  # `top 5 words` asks for no count of words
    if not lines and re.search(r"analy[sz]|statistic|describ|profile|overview|measure|how long|length", wish, re.IGNORECASE):
        lines = [_counts(source.text), _time(source.text, None, "", ctx), _readability(source.text, None, "", ctx)]
        lines += [_frequent(source.text, None, "", ctx), _phrases(source.text, None, "", ctx)]
    if not lines:
        raise InvalidInputError(
            "It is not clear what to do with the text.",
            hint="It can be summarised, counted (words, sentences, paragraphs, characters), searched for a word, "
            "or measured: frequent words, key phrases, readability, reading time.",
        )
    _check_all_is_said(
        rest if not source.name.startswith("the text") else rest.partition(":")[0],
        source,
        {line.partition(":")[0] for line in lines},
    )
    return lines


def _without(match: re.Match[str], rest: str) -> str:
    """Cut what was matched out of a wish, and the words that it begins or ends in."""
    start, end = match.span()
    while start > 0 and rest[start - 1].isalpha() and rest[start].isalpha():
        start -= 1
    while end < len(rest) and rest[end].isalpha() and rest[end - 1].isalpha():
        end += 1
    return f"{rest[:start]} | {rest[end:]}"


def _check_all_is_said(rest: str, source: _Source, asked: set[str]) -> None:
    """Refuse a wish of which words are left over: they would have changed what was asked.

    Raises:
        InvalidInputError: Words are left; it names them.
    """
    plain = _QUOTED.sub(" ", rest).replace(source.name, " ").lower()
    plain = re.sub(rf"\b{_NUMBER}[ -]*(?=\|)", " ", plain)  # `3 key phrases`
    if "summary" in asked:
        plain = re.sub(rf"\b{_NUMBER}[ -]sentences?\b", " ", plain)
    left = [word for word in re.findall(r"[^\W_]+", plain) if word not in _COUNT_FOR_NOTHING]
    if left:
        raise InvalidInputError(
            f"{', '.join(map(repr, left[:5]))} {'is' if len(left) == 1 else 'are'} not understood.",
            hint="Texts are summarised, counted, searched for a word in quotes, and measured; say it without these words.",
        )


def _number(wish: str, nouns: str, default: int) -> int:
    match = re.search(rf"\b{_NUMBER}[ -](?:\w+[ -]){{0,2}}(?:{nouns})", wish, re.IGNORECASE) or re.search(
        rf"\b(?:top|first)\s+{_NUMBER}\b", wish, re.IGNORECASE
    )
    if not match:
        return default
    return NUMBER_WORDS.get(match[1].lower(), 0) or int(match[1])


def _term(text: str, match: re.Match[str] | None, wish: str, ctx: TaskContext) -> str:
    quoted = _quotes(wish)
    term = quoted[0] if quoted else (match["term"] if match else "")
    found = occurrences(text, term)
    excerpts = "".join(f"\n  … {excerpt} …" for excerpt in found[:5])
    return f"'{term}' occurs {len(found)} {'time' if len(found) == 1 else 'times'}{excerpts}"


def _summary(text: str, match: re.Match[str] | None, wish: str, ctx: TaskContext) -> str:
    count = _number(wish, "sentences?", 1 if re.search(r"\bsingle sentence|\ba sentence", wish) else 3)
    return f"summary: {' '.join(summarise(text, count))}"


def _phrases(text: str, match: re.Match[str] | None, wish: str, ctx: TaskContext) -> str:
    phrases = key_phrases(text, _number(wish, "key|phrases?|topics?|terms?", 8))
    return f"key phrases: {', '.join(phrase for phrase, _ in phrases) or 'none'}"


def _frequent(text: str, match: re.Match[str] | None, wish: str, ctx: TaskContext) -> str:
    everything = bool(re.search(r"stop ?words|all words", wish))
    words = frequent_words(text, _number(wish, "(?:most )?(?:frequent|common|used)|words?|terms?", 10), with_stop_words=everything)
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([("word", "count"), *words])
    ctx.artifact("frequent-words.csv", table.getvalue(), "text/csv")
    kept = "" if everything else " (without words such as 'the')"
    return f"most frequent words{kept}: {', '.join(f'{word} ({count})' for word, count in words)}"


def _counts(text: str) -> str:
    figures = (("words", words_of), ("sentences", sentences_of), ("paragraphs", paragraphs_of), ("characters", str))
    return ", ".join(f"{len(measure(text))} {name}" for name, measure in figures)


def _time(text: str, match: re.Match[str] | None, wish: str, ctx: TaskContext) -> str:
    minutes = len(words_of(text)) / WORDS_PER_MINUTE
    return f"reading time: {format_number(round(minutes, 1))} minutes at {WORDS_PER_MINUTE} words a minute"


def _readability(text: str, match: re.Match[str] | None, wish: str, ctx: TaskContext) -> str:
    ease, grade = readability(text)
    return f"readability: Flesch reading ease {ease:.1f}, Flesch-Kincaid grade {grade:.1f}"


def _count_of(name: str, measure: Callable[[str], int | float]) -> Callable[..., str]:
    return lambda text, match, wish, ctx: f"{name}: {format_number(measure(text))}"


def _mean(total: int, count: int) -> float:
    return total / count if count else 0.0


def _unique(text: str) -> int:
    return len({word.lower() for word in words_of(text)})


def _longest(text: str, match: re.Match[str] | None, wish: str, ctx: TaskContext) -> str:
    words = sorted(set(words_of(text)), key=lambda word: (-len(word), word))
    return f"longest words: {', '.join(f'{word} ({len(word)})' for word in words[: _number(wish, 'longest', 1)])}"


_COUNT = r"(?:\b(?:how many|number of|count(?: of| the)?|counts|total|and|the)\s+(?:the\s+|of\s+)?|[|,]\s*(?:and\s+)?(?:the\s+)?)"
_MEASURES: list[tuple[str, Callable[..., str]]] = [
    (
        r"\bsummar|condense|\bin short\b|\bgist\b|tl;?dr|main (?:points|ideas?)|what\b.{0,40}\babout\b|shorten|\babstract\b",
        _summary,
    ),
    (r"key ?-?phrases?|key ?-?words?|\btopics?\b|key terms|themes|(?:most )?important (?:words|terms|phrases)", _phrases),
    (
        (
            r"frequen\w* (?:\w+ )?words?"
            r"|most (?:common|used|frequent)(?: (?:\w+ )?words?)?|word frequenc|top (?:\w+ )?words?|frequency of words"
        ),
        _frequent,
    ),
    (
        (
            r"(?:occurrences? of|how (?:often|many times)(?: does| do| is| are)?|times (?:does )?(?:the word )?"
            r"|count (?:of )?(?:the )?word )"
            r"\s*(?:the (?:word|term|phrase)s? |word |phrase )?(?P<term>[^\s?.,]+)"
        ),
        _term,
    ),
    (r"\b(?:unique|distinct|different) words?|vocabulary", _count_of("unique words", _unique)),
    (
        r"(?:average |mean )?(?:sentence length|words per sentence|length of (?:the |a )?sentences?)",
        _count_of("average sentence length in words", lambda text: _mean(len(words_of(text)), len(sentences_of(text)))),
    ),
    (
        r"(?:average |mean )?(?:word length|length of (?:the |a )?words?)",
        _count_of("average word length in characters", lambda text: _mean(sum(map(len, words_of(text))), len(words_of(text)))),
    ),
    (r"longest words?", _longest),
    (rf"{_COUNT}words?\b|\bword ?-?count|\bwords? in\b", _count_of("words", lambda text: len(words_of(text)))),
    (rf"{_COUNT}sentences?\b|sentence count", _count_of("sentences", lambda text: len(sentences_of(text)))),
    (r"paragraphs?\b", _count_of("paragraphs", lambda text: len(paragraphs_of(text)))),
    (r"\b(?:characters?|letters?|chars)\b", _count_of("characters", len)),
    (rf"{_COUNT}lines?\b|line count", _count_of("lines", lambda text: len(text.splitlines()))),
    (r"reading time|how long .{0,20}read|time to read", _time),
    (r"readab|flesch|how (?:hard|easy|difficult)|grade level|complexity", _readability),
]


if __name__ == "__main__":
    agent.run()
