"""Read, search and measure texts: plain ones and pages of HTML, those of earlier tasks, too.

A request is a whole form of `_LANGUAGE` (docs/questions.md tells of it); what is none is refused. What needs understanding, as a
summary does, is for a model.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from ioa import Agent, DeclinedError, InputFile, InvalidInputError, TaskContext
from ioa.files import came, missing, named_in, of_results, read_and_tell, text_of_html, with_suffix
from request import are_not, of_length
from text_measures import Token, forms, occurrences, other_format, tokens_of, unspaced

agent = Agent(
    "text-analyst",
    description="Reads text and HTML files, shows, searches and measures them: counts of words, paragraphs, lines and characters, "
    "how often a word occurs, and lines that mention it.",
    skills=["read a text file", "word count and text statistics", "find a word in a text"],
    examples=[
        "count the words in notes.txt", "count the words in it", "how many lines has the file",
        "read minutes.txt", "how many words and paragraphs does the text have", "read page.html",
        "how often does the word 'water' occur in notes.txt", "which lines mention 'harbour'", "show me the page",
        "number of words in the text", "tell me how many words letter.txt has",
    ],
    tags=["text", "words"], declines=True, may_team_up=False,
)  # fmt: skip
_PAGES, _OF_A_PAGE = (".html", ".htm"), "its text, without menus and the addresses of links"
_SUFFIXES = (".txt", ".md", ".markdown", ".rst", ".log", ".text", *_PAGES)
_KINDS, _SHOWN, _LINES_SHOWN = ("word", "paragraph", "line", "character"), 3_000, 25
_HINT = (
    "Texts are read ('read FILE'), counted ('how many words': words, paragraphs, lines, characters), and searched, for what stands "
    "in quotes: how often does 'WORD' occur, which lines mention 'WORD'. Each is a sentence of its own that names its text. "
    "All else, such as a summary, is for a language model."
)
_LANGUAGE = """
AND     , [and] [also] | and [also]
FILES   [[the] file] FILE (AND [in | of] [[the] file] FILE)*
TEXT    FILES | (the | this | that | text | all)* (pages? | texts? | files?) [FILE] | it | them | this | that | the result
PLACE   (in | of | from | on | for) TEXT
UNIT    [how many | [the] number of] [the | all] (words? | paragraphs? | lines? | characters?)
OF_TEXT (does | do | has | have) TEXT [have | contain] | TEXT (has | have | contains?) | [is | are] [there] [PLACE | in | of]
WHAT    [[the] (words? | phrases?)] TERM
OCCURS  [do | does | is | are] WHAT (AND WHAT)* [occurs? | appears? | mentioned | found] [PLACE]
LINED   [the | all] lines? [PLACE] [are there] [that | which]
SOME    LINED | [the | all] (files? | texts?) [PLACE] [that | which]
MENTION (mentions? | mentioning | contains? | containing | has | have | with) WHAT [PLACE]
LINES   [in | on] (which | what) (lines? | SOME) | where
BEGIN   [in FILES [,]] [please] [(can | could) you] [please] [(tell | show | give) me | i need | i want to know] [what (is | are)]
READ    BEGIN ((read | open | show | print) [me] [[the] (contents? | text) (of | in)] [TEXT] | what is in TEXT)
COUNT   BEGIN ((count | how many | [the] number of) UNIT (AND UNIT)* [OF_TEXT] | [the] UNIT count [PLACE | TEXT])
FIND    BEGIN [count | find] (how often | how many times | [all] occurrences of | LINES | in how many LINED) OCCURS [AND LINES]
SEARCH  BEGIN ((find | count | search [for] | search TEXT for | does | do | is | are) OCCURS [AND LINES] | (do | does) TEXT MENTION)
LIST    BEGIN ([which | what | find | show | list] SOME | (how many | count | number of) LINED) MENTION
"""
_FORMS = forms(_LANGUAGE)
_KNOWN = {word.removesuffix(end) for word in re.findall("[a-z]+|TERM|FILE", _LANGUAGE) for end in ("", "s")}


class _Text(NamedTuple):
    name: str
    content: str
    assumed: str = ""
    """The encoding in which it was read, if nothing tells that it is the right one."""
    is_page: bool = False


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Answer for every text the task is about."""
    there = [*{file.name: file for file in (*of_results(ctx, _SUFFIXES), *ctx.inputs)}.values()]
    tokens = tokens_of(of_length(task, hint=_HINT).rstrip(" .?!"), [file.name for file in there])
    if said := missing(" ".join(token.said for token in tokens if token.form != "TERM"), _SUFFIXES, [file.name for file in there]):
        raise InvalidInputError(said, hint=came(ctx))
    measures = _measures(tokens, ctx)
    return "\n\n".join(_answer(_read(file, ctx), measures) for file in _files(tokens, there, ctx))


def _answer(text: _Text, measures: list[Callable[[_Text], str]]) -> str:
    told = ", ".join(filter(None, (_OF_A_PAGE * text.is_page, f"read as {text.assumed}" * bool(text.assumed))))
    name, lines = f"{text.name} ({told})".removesuffix(" ()"), [measure(text) for measure in measures]
    return f"{name}: {lines[0]}" if len(lines) == 1 else "\n- ".join([f"{name}:", *lines])


def _measures(tokens: list[Token], ctx: TaskContext) -> list[Callable[[_Text], str]]:
    """What a request asks of a text. What is none of the forms is refused."""
    text = "".join(f"{token.form} " for token in tokens)
    form = next((name for name, form in _FORMS.items() if form.fullmatch(text)), None)
    if form == "READ":
        return [partial(_whole, ctx=ctx)]
    if form == "COUNT":
        return [partial(_count, kind=kind) for token in tokens if (kind := token.form.removesuffix("s")) in _KINDS]
    if form:
        return [partial(_term, term=token.said[1:-1].strip()) for token in tokens if token.form == "TERM"]
    unknown = [token.said for token in tokens if token.form not in _KNOWN and re.search(r"\w", token.form)]
    said = f"{' '.join(token.said for token in tokens)!r} is not read as one request."
    raise DeclinedError(are_not(unknown, "understood"), hint=_HINT) if unknown else InvalidInputError(said, hint=_HINT)


def _files(tokens: list[Token], there: list[InputFile], ctx: TaskContext) -> list[InputFile]:
    """The texts that are asked about: named, attached by earlier tasks, or all that came."""
    words, texts = {token.form for token in tokens}, with_suffix(ctx.inputs, _SUFFIXES)
    named = named_in(" ".join(token.said for token in tokens if token.form == "FILE"), there)
    is_said = "files" in words or len(ctx.inputs) == max(1, len(texts))
    refers = ctx.results and words & {"it", "that", "this", "them", "result"}
    if files := named or of_results(ctx, _SUFFIXES) or ([*ctx.inputs] if is_said and not refers else []):
        return files
    said = "It is not said which text file is meant, or none came, and only files are read here."
    raise (InvalidInputError if texts else DeclinedError)(said, hint=f"Name it. {came(ctx)} {_HINT}")


def _read(file: InputFile, ctx: TaskContext) -> _Text:
    """The text of a file; of one that an earlier task has read, as it was read from the file that came."""
    is_page, is_text = bool(with_suffix([file], _PAGES)), bool(with_suffix([file], _SUFFIXES))
    if said := other_format(file.path, "" if is_text else file.media_type, is_page=is_page):
        raise InvalidInputError(f"{file.name} is {said}. Plain texts and pages (.html) are read here.", hint="Save it as one.")
    text, assumed = read_and_tell(file.path, is_page=is_page)
    if is_page and not (text := text_of_html(text, before_cells="\n")):
        raise InvalidInputError("The page holds no text.")
    for source in ctx.inputs if file not in ctx.inputs else ():
        with suppress(InvalidInputError):
            if f"{source.name.removesuffix('.txt')}.txt" == file.name and (read := _read(source, ctx)).content == text:
                return read
    return _Text(file.name, text, assumed, is_page)


def _whole(text: _Text, ctx: TaskContext) -> str:
    name, more = f"{text.name.removesuffix('.txt')}.txt", len(text.content) - _SHOWN
    ctx.artifact(name, text.content, "text/plain")
    return f"\n\n{text.content[:_SHOWN]}".strip() + (f" … and {more} more characters in {name}" if more > 0 else "")


def _term(text: _Text, term: str) -> str:
    if text.assumed and term.encode(text.assumed, "replace").decode(text.assumed) != term:
        said = f"{term!r} cannot stand in {text.name}, which is no UTF-8 and is read as {text.assumed}."
        raise InvalidInputError(said, hint="If it is written in another encoding, save it as UTF-8.")
    count, written = occurrences(text.content, term), occurrences(text.content, term, in_any_case=False)
    is_word = re.search(r"^\w|\w$", term) and not unspaced(term)
    told = "; ".join(["whole words"] * bool(is_word) + [f"{written} in this case"] * (written < count))
    numbered = enumerate(text.content.removesuffix("\n").split("\n"), 1)  # as editors and `wc -l` do: a form feed ends no line
    lines = [(many, f"\n  {at}: {line}") for at, line in numbered if (many := occurrences(line, term))]
    more = f"\n  … and {len(lines) - _LINES_SHOWN} more" if len(lines) > _LINES_SHOWN else ""
    said = f"{count} {'time' if count == 1 else 'times'}{f' ({told})' * bool(told)}"
    said += f", in {len(lines)} {'line' if len(lines) == 1 else 'lines'}"
    said += f", and {over} over the end of one" if (over := count - sum(many for many, _ in lines)) else ""
    shown = "".join(line for _, line in lines[:_LINES_SHOWN])
    return f"'{term}' occurs {said}{shown}{more}"


def _count(text: _Text, kind: str) -> str:
    """Words are counted as `wc -w` does, except that one holds a letter or a digit, and lines as editors do."""
    if kind == "character":
        return f"characters: {len(text.content)}"
    if kind == "word":
        if letter := unspaced(text.content):
            raise InvalidInputError(f"No rule tells the words of a text apart that has letters such as {letter!r}, without blanks.")
        words = text.content.split()
        signs = [word for word in words if not re.search(r"[^\W_]", word)]
        left_out = f" (left out: {len(signs)} without a letter or digit, such as {signs[0]!r})" if signs else ""
        return f"words: {len(words) - len(signs)}{left_out}"
    if text.is_page:
        said = f"{text.name} is a page: how many lines and paragraphs it has depends on who shows it."
        raise InvalidInputError(said, hint="Count its words or characters.")
    if kind == "line":
        return "lines: " + str(text.content.removesuffix("\n").count("\n") + 1)
    blocks = [block for block in re.split(r"\n\s*\n", text.content) if block.strip()]
    return f"paragraphs (what stands between blank lines, headings and lists, too): {len(blocks)}"
