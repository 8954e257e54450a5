"""Read, search and measure texts: plain ones and pages of HTML, those of earlier tasks, too.

A request is one or several whole forms of `_LANGUAGE` (docs/questions.md tells of it), joined by commas and `and`; what is none is
refused by name. What needs understanding, such as a summary, is for a model. No sentences are told apart: behind `Dr.` or `5 p.m.`
no rule knows whether one ends.
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
        "number of words in the text", "read letter.txt and tell me how many words it has",
    ],
    tags=["text", "words"], declines=True, may_team_up=False,
)  # fmt: skip
_PAGES, _OF_A_PAGE = (".html", ".htm"), "its text, without menus and the addresses of links"
_SUFFIXES = (".txt", ".md", ".markdown", ".rst", ".log", ".text", *_PAGES)
_WRITTEN, _WORD = re.compile(r"([^:]*):\s+(\S.*)", re.DOTALL), re.compile(r"^\w|\w$")
_SHOWN, _LINES_SHOWN = 3_000, 25
_HINT = (
    "Texts are read ('read FILE'), counted ('how many words': words, paragraphs, lines, characters), and searched, for what stands "
    "in quotes: how often does 'WORD' occur, which lines mention 'WORD'. All else, such as a summary, is for a language model. "
    "A text itself stands behind a colon: 'how many words has this text: …'."
)
_LANGUAGE = """
AND       , [and] [also] | and [also]
FILES     [[the] file] FILE (AND [in | of] [[the] file] FILE)*
NOUN      pages? | documents? | texts? | files?
TEXT      FILES | (the | this | that | following | attached | text | all)* NOUN [FILE] | it | them | this | that | the result
PLACE     (in | of | from | on | for) TEXT
UNIT      [how many | [the] number of] [the | all | its] (words? | paragraphs? | lines? | characters?)
UNITS     UNIT (AND UNIT)*
OF_TEXT   [(does | do | has | have) TEXT [have | contain] | TEXT (has | have | contains?) | [is | are] [there] [PLACE | in | of]]
WHAT      [[the] (words? | phrases?)] TERM
TERMS     WHAT (AND WHAT)* [occurs? | appears? | mentioned | found] [PLACE]
MENTION   (mentions? | mentioning | contains? | containing | has | have | with) WHAT [PLACE]
SOME      [the | all] (lines? | files? | texts?) [PLACE] [are there] [that | which]
LINED     [the | all] lines? [PLACE] [are there] [that | which]
HOW_OFTEN how often | how many times | [the] number of times | [the | all] [number of] occurrences of
SEARCH    [count | find] (HOW_OFTEN | where | (in | on) ((which | what) SOME | how many LINED)) [do | does | is | are] TERMS
FOUND     (find | count | search [for] | search TEXT for | do | does | is | are) TERMS | [HOW_OFTEN] (do | does) TEXT MENTION
COUNT_OF  [the] (word | paragraph | line | character) count [PLACE | TEXT]
BEGIN     [in FILES [,]] [please] [(can | could) you] [please] [(tell | show | give) me | i need | i want to know] [what (is | are)]
END       [in total] [please]
READ      BEGIN ((read | open | show | print) [me] [[the] (contents? | text) (of | in)] [TEXT] | what is in TEXT) END
COUNT     BEGIN ((count | how many | [the] number of) UNITS OF_TEXT | COUNT_OF) END
COUNT_TOO UNITS [PLACE] END
FIND      BEGIN (SEARCH | FOUND) END
FIND_TOO  (TERMS | [in | on] (which | what) lines? [(does it | do they) (occur | appear)] | where) END
LINES     BEGIN ((which | what | find | show | print | list) SOME | (how many | count | number of) LINED) MENTION END
FIRST     BEGIN SOME MENTION END
"""
_FORMS, _JOINT = forms(_LANGUAGE), re.compile("(?:[,;.?!] )*(?:(?:and|then|also) (?!$))*")
_KNOWN = {word.removesuffix(end) for word in re.findall("[a-z]+|TERM|FILE", _LANGUAGE) for end in ("", "s")}


class _Text(NamedTuple):
    name: str
    content: str
    assumed: str = ""
    """The encoding in which it was read, if nothing tells that it is the right one."""
    is_page: bool = False


class _Ask(NamedTuple):
    said: str
    measures: list[Callable[[_Text], str]]
    files: list[InputFile]
    """Those that it names."""


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Answer for every text the task is about."""
    if address := re.search(r"https?://\S+", task):
        raise InvalidInputError(f"{address[0]} is not fetched here.", hint="Save the page and send it as a file, as page.html.")
    asks, written = list[_Ask](), _WRITTEN.fullmatch(task)
    if written and (not ctx.inputs or re.search(r"\b(?:this|that|following|it)\b", written[1])):
        with suppress(InvalidInputError):
            asks = _asks(of_length(written[1]), ctx)
    if asks and written and not any(ask.files for ask in asks):
        return _answer(_Text("The text", written[2]), asks)
    asks = _asks(of_length(task, hint=_HINT), ctx)
    files = _files(asks, ctx)
    answers = [_answer(_read(file, ctx), [ask for ask in asks if file in (ask.files or files)]) for file in files]
    if not of_results(ctx, _SUFFIXES) and not any(ask.files for ask in asks) and len(files) < len(ctx.inputs):
        others = ", ".join(file.name for file in ctx.inputs if file not in files)
        answers.append(f"Not read, since no name says so and they do not end as texts: {others}")
    return "\n\n".join(answers)


def _answer(text: _Text, asks: list[_Ask]) -> str:
    told = ", ".join(filter(None, (_OF_A_PAGE * text.is_page, f"read as {text.assumed}" * bool(text.assumed))))
    name, lines = f"{text.name} ({told})".removesuffix(" ()"), [measure(text) for ask in asks for measure in ask.measures]
    return f"{name}: {lines[0]}" if len(lines) == 1 else "\n- ".join([f"{name}:", *lines])


def _asks(task: str, ctx: TaskContext) -> list[_Ask]:
    """What a task asks, in its order. What is none of the forms is refused."""
    there = {file.name: file for file in (*of_results(ctx, _SUFFIXES), *ctx.inputs)}
    tokens, last, asks = tokens_of(task, there), "", list[_Ask]()
    if said := missing(" ".join(token.said for token in tokens if token.form != "TERM"), _SUFFIXES, there):
        raise InvalidInputError(said, hint=came(ctx))
    while tokens:
        text = "".join(f"{token.form} " for token in tokens)
        may = {"COUNT_TOO": last == "COUNT", "FIND_TOO": last == "FIND", "FIRST": not asks}
        fitting = ((name, form.match(text)) for name, form in _FORMS.items() if may.get(name, True))
        last, found = next(((name.removesuffix("_TOO"), found) for name, found in fitting if found), (last, None))
        if not found:
            raise _refusal(tokens, last, has_text=bool(with_suffix(named_in(task, there.values()) or there.values(), _SUFFIXES)))
        covered, joint = tokens[: found[0].count(" ")], _JOINT.match(text, found.end())
        asks.append(_Ask(found[0], _measures(last, covered, ctx), [there[name] for token in covered for name in token.names]))
        tokens = tokens[text[: joint.end() if joint else None].count(" ") :]
    return asks


def _measures(form: str, tokens: list[Token], ctx: TaskContext) -> list[Callable[[_Text], str]]:
    if form == "READ":
        return [partial(_whole, ctx=ctx)]
    if form.startswith("COUNT"):
        return [_COUNTS[kind] for token in tokens if (kind := token.form.removesuffix("s")) in _COUNTS]
    return [partial(_term, term=token.said[1:-1].strip()) for token in tokens if token.form == "TERM"]


def _refusal(tokens: list[Token], last: str, *, has_text: bool) -> InvalidInputError:
    """Why a request is not read from some word on."""
    if last in ("LINES", "FIRST") and tokens[0].form == "TERM":
        hint = "Ask for each: which lines mention 'WORD', which lines mention 'OTHER'."
        return InvalidInputError("It is not clear whether lines with each of the words are meant, or with any.", hint=hint)
    unknown = [token.said for token in tokens if token.form not in _KNOWN and re.search(r"\w", token.form)]
    said = f"Each word is known, but {' '.join(token.said for token in tokens)!r} is no request."
    is_ours = has_text and any(token.form.removesuffix("s") in _OURS for token in tokens)
    return (InvalidInputError if is_ours else DeclinedError)(are_not(unknown, "understood") if unknown else said, hint=_HINT)


def _files(asks: list[_Ask], ctx: TaskContext) -> list[InputFile]:
    """The texts that are asked about: named, attached by earlier tasks, or all that came."""
    meant = {(*ask.files, *({"files", "texts", "pages"} & {*ask.said.split()})) for ask in asks} - {()}
    if len(meant) > 1 and not all(ask.files for ask in asks):
        raise InvalidInputError("Of which of the texts each thing is asked is not said.", hint="Name the text with each.")
    every = {word for ask in asks for word in ask.said.split()}
    refers = ctx.results and every & {"it", "that", "this", "them", "result"}
    came_so = [] if refers else with_suffix(ctx.inputs, ("",) if "files" in every or len(ctx.inputs) == 1 else _SUFFIXES)
    files = [*dict.fromkeys(file for ask in asks for file in ask.files)] or of_results(ctx, _SUFFIXES) or came_so
    if not files:
        told = "What an earlier task answered is no text file, and only files are read here." if ctx.results else ""
        raise DeclinedError(
            told or "No text file came, and none stands behind a colon.", hint=f"Send a text file. {came(ctx)} {_HINT}"
        )
    if "total" in every and len(files) > 1:
        raise InvalidInputError("What several texts have in total is not added up.", hint="Without 'in total' each is told.")
    return files


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
            if _name_as_text(source.name) == file.name and (read := _read(source, ctx)).content == text:
                return read
    return _Text(file.name, text, assumed, is_page)


def _name_as_text(name: str) -> str:
    return f"{name.removesuffix('.txt')}.txt"


def _whole(text: _Text, ctx: TaskContext) -> str:
    name, more = _name_as_text(text.name), len(text.content) - _SHOWN
    ctx.artifact(name, text.content, "text/plain")
    return f"\n\n{text.content[:_SHOWN]}".strip() + (f" … and {more} more characters in {name}" if more > 0 else "")


def _term(text: _Text, term: str) -> str:
    if text.assumed and term.encode(text.assumed, "replace").decode(text.assumed) != term:
        said = f"{term!r} cannot stand in {text.name}, which is no UTF-8 and is read as {text.assumed}."
        raise InvalidInputError(said, hint="If it is written in another encoding, save it as UTF-8.")
    count, written = occurrences(text.content, term), occurrences(text.content, term, in_any_case=False)
    told = ["whole words"] * bool(_WORD.search(term) and not unspaced(term)) + [f"{written} in this case"] * (written < count)
    whole = f" ({'; '.join(told)})" * bool(told)
    lines = [(many, f"\n  {at}: {line}") for at, line in enumerate(_lines(text), 1) if (many := occurrences(line, term))]
    more = f"\n  … and {len(lines) - _LINES_SHOWN} more" if len(lines) > _LINES_SHOWN else ""
    said = f"{count} {'time' if count == 1 else 'times'}{whole}, in {len(lines)} {'line' if len(lines) == 1 else 'lines'}"
    said += f", and {over} over the end of one" if (over := count - sum(many for many, _ in lines)) else ""
    shown = "".join(line for _, line in lines[:_LINES_SHOWN])
    return f"'{term}' occurs {said}{shown}{more}"


def _lines(text: _Text) -> list[str]:
    return text.content.removesuffix("\n").split("\n")  # as editors and `wc -l` do: a form feed ends none


def _words(text: _Text) -> str:
    """Words as `wc -w` counts them, except that a word holds a letter or a digit."""
    if letter := unspaced(text.content):
        raise InvalidInputError(f"No rule tells the words of this text apart: it has letters such as {letter!r}, without blanks.")
    words = text.content.split()
    signs = [word for word in words if not re.search(r"[^\W_]", word)]
    left_out = f" (left out: {len(signs)} without a letter or digit, such as {signs[0]!r})" if signs else ""
    return f"words: {len(words) - len(signs)}{left_out}"


def _of_layout(text: _Text, kind: str) -> str:
    if text.is_page:
        said = f"{text.name} is a page: how many lines and paragraphs it has depends on who shows it."
        raise InvalidInputError(said, hint="Count its words or characters.")
    if kind == "line":
        return f"lines: {len(_lines(text))}"
    blocks = [block for block in re.split(r"\n\s*\n", text.content) if block.strip()]
    return f"paragraphs (what stands between blank lines, headings and lists, too): {len(blocks)}"


_COUNTS: dict[str, Callable[[_Text], str]] = {"word": _words, "character": lambda text: f"characters: {len(text.content)}"}
_COUNTS |= {kind: partial(_of_layout, kind=kind) for kind in ("line", "paragraph")}
_OURS = {*_COUNTS, "text", "read", "occur", "mention"}
