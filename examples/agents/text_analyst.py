"""Read, search and measure texts: `.txt`, `.md` and `.html` files, those of earlier tasks, too.

A request is one or several of the phrases of `_MEASURES`, joined by commas and `and`; words of `_COUNT_FOR_NOTHING` may stand
around them, and any other word is refused by name. What needs understanding, such as a summary, is for a model. No sentences are
told apart: behind `Dr.` or `5 p.m.` no rule knows whether one ends.
"""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from ioa import Agent, DeclinedError, InputFile, InvalidInputError, TaskContext
from ioa.files import came, missing, named_in, of_results, read_and_tell, text_of_html, with_suffix
from request import are_not, of_length
from text_measures import occurrences, unspaced, without_name

agent = Agent(
    "text-analyst",
    description="Reads text and HTML files, shows, searches and measures them: counts of words, paragraphs, lines and characters, "
    "how often a word occurs, and lines that mention it.",
    skills=["read a text file", "word count and text statistics", "find a word in a text"],
    examples=[
        "count the words in notes.txt", "count the words in it", "how many lines has the file",
        "read minutes.txt", "how many words and paragraphs does the text have", "read page.html",
        "how often does the word 'water' occur in notes.txt", "which lines mention 'harbour'", "show me the page",
        "number of words in the text", "read letter.txt and tell me how many words it has",
    ],
    tags=["text", "words"], declines=True, may_team_up=False,
)  # fmt: skip
_PAGES, _OF_A_PAGE = (".html", ".htm"), "its text, without menus and the addresses of links"
_SUFFIXES = (".txt", ".md", ".markdown", ".rst", ".log", ".text", *_PAGES)
_QUOTED = re.compile(r'"([^"]+)"|„([^„“”]+)[“”]|“([^“”]+)”|«([^«»]+)»|(?<!\w)\'((?:[^\']|(?<=\w)\'(?=\w))+)\'(?!\w)|`([^`]+)`')
_WRITTEN = re.compile(r"([^:]*:)\s+(\S.*)", re.DOTALL)
_WORD = re.compile(r"^\w|\w$")
_JOINT = re.compile(r"[,;?!]|\.(?=\s|$)|\band\b", re.IGNORECASE)
_COUNT_FOR_NOTHING = frozenset(
    "a all also an are article by compute contain contains count do document does extract file files find for from get give has "
    "have how in into is it its list make many me measure much number of on page please result results search tell text texts "
    "that the them then there these this those to was what where which".split()
)
_COUNTED = re.compile(r"(?i)how many|numbers? of|\bcounts?\b|measure")
_LISTS = re.compile(r"(?i)\b(?:list|show|number|extract|make)\b")
_ANY = "“…”"  # stands for a quoted word
_TOKEN = re.compile(rf"[^\W_]+|{_ANY}")
_SHOWN, _LINES_SHOWN = 3_000, 25
Measure = Callable[[str, str, TaskContext], str]
"""Answers of a text, for some words: for none if it is of the whole."""
_HINT = (
    "Texts are read ('read FILE'), counted ('how many words': words, paragraphs, lines, characters), and searched, for what stands "
    "in quotes: how often does 'WORD' occur, which lines mention 'WORD'. All else, such as a summary, is for a language model."
)
_COLON = " A text itself stands behind a colon: 'how many words has this text: …'."


class _Text(NamedTuple):
    name: str
    content: str
    assumed: str = ""
    """The encoding in which it was read, if nothing tells that it is the right one."""
    is_page: bool = False


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Answer for every text the task is about."""
    if address := re.search(r"https?://\S+", task):
        raise InvalidInputError(f"{address[0]} is not fetched here.", hint="Save the page and send it as a file, as page.html.")
    answers = []
    for name, text, assumed, is_page in _texts(task, ctx):
        asked = _asked(task.removesuffix(text), ctx)
        if is_page and any(measure is _count_of_lines for measure, _ in asked):
            raise InvalidInputError(
                f"{name} is a page: how many lines it has depends on who shows it.", hint="Count its paragraphs."
            )
        if assumed and (strange := [what for _, what in asked if what.encode(assumed, "replace").decode(assumed) != what]):
            said = f"{strange[0]!r} cannot stand in {name}, which is no UTF-8 and is read as {assumed}."
            raise InvalidInputError(said, hint="If it is written in another encoding, save it as UTF-8.")
        told = ", ".join(filter(None, (_OF_A_PAGE * is_page, f"read as {assumed}" * bool(assumed))))
        lines, name = [measure(text, what, ctx) for measure, what in asked], f"{name} ({told})".removesuffix(" ()")
        answers.append(f"{name}: {lines[0]}" if len(lines) == 1 else "\n- ".join([f"{name}:", *lines]))
    if others := ", ".join(file.name for file in _not_read(task, ctx)):
        answers.append(f"Not read, since no name says so and they do not end as texts: {others}")
    return "\n\n".join(answers)


def _not_read(task: str, ctx: TaskContext) -> list[InputFile]:
    """The files beside the texts that came, of a task that names none and is of no earlier result."""
    texts = with_suffix(ctx.inputs, _SUFFIXES)
    if re.search(r"\bfiles\b", task) or named_in(task, ctx.inputs) or of_results(ctx, _SUFFIXES) or not texts:
        return []
    return [file for file in ctx.inputs if file not in texts]


def _texts(task: str, ctx: TaskContext) -> list[_Text]:
    """The texts that a task is about: named, attached by earlier tasks, or all that came."""
    suffixes = ("",) if re.search(r"\bfiles\b", task) else _SUFFIXES  # `which files mention` is asked of tables, too
    files, named = with_suffix(ctx.inputs, suffixes), named_in(task, ctx.inputs)
    if named and not with_suffix(named, suffixes):
        _decline_others(task, ctx)
        suffixes = ("",)  # what is asked of a text may be asked of any file that is one
    refers = ctx.results and re.search(r"\b(?:it|that|this|them|both|results?|answers?|findings?)\b", task)
    if fitting := with_suffix(named, suffixes) or of_results(ctx, _SUFFIXES) or ([] if refers else files):
        return [*map(_read, fitting)]
    if written := _WRITTEN.fullmatch(task):
        return [_Text("The text", written[2])]
    _decline_others(task, ctx)  # a text would not help
    said = "What an earlier task answered is no text file, and only files are read here." if ctx.results else ""
    hint = f"Send a text file, or write the text behind a colon: 'how many words has this text: …'. {came(ctx)}"
    raise DeclinedError(said or "No text file came, and no text stands behind a colon.", hint=hint)


def _decline_others(task: str, ctx: TaskContext) -> None:
    try:
        _asked(task, ctx)
    except InvalidInputError as error:
        raise DeclinedError(error.message, hint=error.hint) from None


def _read(file: InputFile) -> _Text:
    """The text of a file; of a page its paragraphs, apart by blank lines."""
    is_page = bool(with_suffix([file], _PAGES))
    text, assumed = read_and_tell(file.path, is_page=is_page)
    if is_page and not (text := text_of_html(text, before_cells="\n").replace("\n", "\n\n")):
        raise InvalidInputError("The page holds no text.")
    return _Text(file.name, text, assumed, is_page)


def _asked(task: str, ctx: TaskContext) -> list[tuple[Measure, str]]:
    """Every measure that the task asks for, in its order, and of which words."""
    names = [file.name for file in (*ctx.inputs, *of_results(ctx, _SUFFIXES))]
    of_length(task, hint=_HINT + _COLON)
    if said := missing(_QUOTED.sub(" ", task), _SUFFIXES, names):
        raise InvalidInputError(said, hint=came(ctx))
    for name in names:
        task = without_name(task, name)
    terms = [term for match in _QUOTED.finditer(task) if (term := next(filter(None, match.groups())).strip())]
    parts = _JOINT.split(_QUOTED.sub(f" {_ANY} ", task))
    if any(re.search(r"\blines?\b", before) and part.strip() == _ANY for before, part in pairwise(parts)):
        hint = "Ask for each: which lines mention 'WORD', which lines mention 'OTHER'."
        raise InvalidInputError("It is not clear whether lines with each of the words are meant, or with any.", hint=hint)
    measures = list(filter(None, map(_understood, parts)))
    if not measures or measures.count(_term) != len(terms):
        raise InvalidInputError("It is not clear what to do with the text.", hint=_HINT)
    return [(measure, terms.pop(0) if measure is _term else "") for measure in measures]


def _understood(part: str) -> Measure | None:
    """The measure that a part of a task asks for; None if it says nothing. What is no request is refused."""
    words = [word for word in _TOKEN.findall(part) if word.lower() not in _COUNT_FOR_NOTHING]
    words = words[1:] if len(words) > 1 and words[0].lower() == "show" else words  # alone it is a request
    if not words:
        return None
    for phrases, measure in _MEASURES:
        if " ".join(words).lower() in phrases:
            if measure in _COUNTS and _LISTS.search(part) and not _COUNTED.search(part):
                raise InvalidInputError(f"{' '.join(part.split())!r} is no request: it may mean a count or a list.", hint=_HINT)
            return measure
    if unknown := [word for word in words if word.lower() not in _KNOWN]:
        refusal = DeclinedError if len(unknown) == len(words) else InvalidInputError
        raise refusal(are_not(unknown, "understood"), hint=_HINT)
    hint = _HINT + _COLON * (_ANY in part)
    raise InvalidInputError(f"Each word is known, but {' '.join(part.split())!r} is no request.", hint=hint)


def _term(text: str, term: str, ctx: TaskContext) -> str:
    count, written = occurrences(text, term), occurrences(text, term, in_any_case=False)
    told = ["whole words"] * bool(_WORD.search(term) and not unspaced(term)) + [f"{written} in this case"] * (written < count)
    whole = f" ({'; '.join(told)})" * bool(told)
    lines = [(many, f"\n  {at}: {line}") for at, line in enumerate(_lines(text), 1) if (many := occurrences(line, term))]
    more = f"\n  … and {len(lines) - _LINES_SHOWN} more" if len(lines) > _LINES_SHOWN else ""
    said = f"{count} {'time' if count == 1 else 'times'}{whole}, in {len(lines)} {'line' if len(lines) == 1 else 'lines'}"
    said += f", and {over} over the end of one" if (over := count - sum(many for many, _ in lines)) else ""
    shown = "".join(line for _, line in lines[:_LINES_SHOWN])
    return f"'{term}' occurs {said}{shown}{more}"


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")  # as editors and `wc -l` do: a form feed ends none


def _whole(text: str, term: str, ctx: TaskContext) -> str:
    ctx.artifact("text.txt", text, "text/plain")
    more = len(text) - _SHOWN
    return f"\n\n{text[:_SHOWN]}".strip() + (f" … and {more} more characters in text.txt" if more > 0 else "")


def _words(text: str, term: str, ctx: TaskContext) -> str:
    """Words as `wc -w` counts them, except that a word holds a letter or a digit."""
    if letter := unspaced(text):
        raise InvalidInputError(f"No rule tells the words of this text apart: it has letters such as {letter!r}, without blanks.")
    signs = [word for word in text.split() if not re.search(r"[^\W_]", word)]
    left_out = f" (left out: {len(signs)} without a letter or digit, such as {signs[0]!r})" if signs else ""
    return f"words: {len(text.split()) - len(signs)}{left_out}"


def _paragraphs(text: str, term: str, ctx: TaskContext) -> str:
    blocks = [block for block in re.split(r"\n\s*\n", text) if block.strip()]
    return f"paragraphs (what stands between blank lines, headings and lists, too): {len(blocks)}"


def _count_of_lines(text: str, term: str, ctx: TaskContext) -> str:
    return f"lines: {len(_lines(text))}"


_OCCUR = ("", " occur", " occurs", " appear", " appears")
_OFTEN = ("", "often ", "often word ", "times ", "times word ", "word ", "mention ", "line ", "lines mention ", "lines ")
_MEASURES: list[tuple[list[str], Measure]] = [
    (["words", "word"], _words),
    (["paragraphs", "paragraph"], _paragraphs),
    (["lines", "line"], _count_of_lines),
    (["characters", "character"], lambda text, term, ctx: f"characters: {len(text)}"),
    (["show", "read", "open", "contents", "content"], _whole),
    ([f"{head}{_ANY}{verb}" for head in _OFTEN for verb in _OCCUR], _term),
]
_COUNTS = [measure for phrases, measure in _MEASURES if phrases[-1] in ("word", "paragraph", "line", "character")]
_KNOWN = {word for phrases, _ in _MEASURES for phrase in phrases for word in phrase.split()}
