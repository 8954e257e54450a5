"""Take a goal apart into requests, where its writer has put a mark for it; see docs/goals.md. Works on covered text (`masking`).

Nothing is guessed. What begins like no request leaves the goal whole: one agent gets all of it, and does it or says what it does
not understand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ioa.agent.rules.text.masking import INPUT, MASKED

VERBS = frozenset(
    "add analyse analyze answer average build calculate chart check collect compare compute convert count create describe display "
    "divide double download draft draw email explain extract fetch find get give graph identify list look make measure merge "
    "multiply name plot prepare print produce put rank read report round run search send show sort subtract sum summarise "
    "summarize tell total translate turn visualise visualize work write".split()
)
"""What a request begins with, if it is no question."""
_FIGURES = frozenset("bottom earliest highest largest latest lowest maximum median minimum number smallest standard top".split())
"""With what else a question for a figure begins (docs/questions.md). Within a sentence nothing is parted there: they are nouns."""
PICTURE = r"(?:chart|plot|graph|diagram|histogram|picture)"
DOCUMENT = r"(?:report|summary|document|briefing|memo|note|article|headline|email|table)"
_ASKS = frozenset(
    "what which who whose whom when where why how is are was were does do did can could should would will has have had".split()
)
_OBJECTS = frozenset(
    "a an the my our your its their it them this that these those both all each every how what which who me us everything".split()
)
"""What can follow a verb that may be a noun too: `and list the files`, but not `and list price`."""
_GOVERNORS = frozenset(
    "that which who whose whom how why whether if when where what can could should would will must may let".split()
)
"""What a later verb may depend on: `a script that reads a file and prints it`."""
_CONTAINERS = frozenset("with including containing covering comprising namely between".split())
"""What makes things part of what is asked for: `a briefing with a chart and a report`."""
_SAYS_NOTHING = frozenset(
    "a about an and answer are as attached based calculate called comes compute data do file files following for from give "
    "given got have here i in is it me my named need on our page please questions show steps table tables take task tasks tell "
    "text the there these things this three to todo two us use using want we with you".split()
)
"""Of such words an announcement consists: `Using these two files, please do the following:`."""

_ORDINAL = rf"(?:first|second|third|next)(?=[,:]| (?:{'|'.join(sorted(VERBS | _ASKS))})\b)"
"""Tells which request it is, and is no part of one such as `second highest price`."""
_OPENING = re.compile(
    rf"(?:(?:hello|hi|hey|there|dear all|please|kindly|firstly|secondly|thirdly|then|now|also|finally|lastly|{_ORDINAL}"
    r"|and|after that|afterwards|in addition|additionally|(?:can|could|would|will) you|i (?:want|need|would like) you to"
    r"|i['’]d (?:also )?like(?: you to)?|i (?:also )?(?:need|want)|your task is to|help me(?: to)?)\b[ ,:!]*+)++",
    re.IGNORECASE,
)
_IS_MORE, _DIGIT = re.compile(r"and\b", re.IGNORECASE), re.compile(rf"\(?(?:\d|(?!{INPUT}){MASKED})")
_LATER = re.compile(r"\b(?:then|next|after that|afterwards|finally|lastly)\b", re.IGNORECASE)
_COURTESY = re.compile(
    r"(?:hello|hi|hey|(?:many )?thanks|thank you|cheers)\b(?: (?:there|all|everybody|a lot|very much|in advance|again))*+[ .,!]*+",
    re.IGNORECASE,
)
_POLITE = re.compile(rf"(?:{_COURTESY.pattern}|(?:please|kindly|(?:can|could|would|will) you)\b[ ,:!]*+)++", re.IGNORECASE)
_ITEM = re.compile(r"(?:[-*•–]|\(?\d{1,2}[.)]|\(?[a-h]\)) (?=\S)")
_END = re.compile(r"(?<=[.!?])[)\"'”’]*+ (?=\S)| ?; ?(?=\S)")
_JOINT = re.compile(r"(?: ?, ?(?:and )?| and )(?P<then>(?:then|also|afterwards|finally) )?(?=\S)| (?P<later>then) ", re.IGNORECASE)
_HERE_IS = re.compile(r"(?:here (?:is|are)|this is|attached (?:is|are)|(?:i|we) have|you are given)\b", re.IGNORECASE)
"""Shows files that came, as one that says nothing else does: `Here is the North list, sales.csv` may say which rows are meant."""
_COLON = re.compile(rf": ?(?!{MASKED}$)\S")
_TO_DO = re.compile(r"\bto ([^\W\d_]++)", re.IGNORECASE)
_GIVE = r"(?:show|tell|give|send|print|display|return)(?: me| us)?"
_TELLS = re.compile(rf"{_GIVE} (?:the|its|that|this) (?:results?|outputs?|answers?|outcomes?)", re.IGNORECASE)
"""Asks to be told what the request before comes to, and nothing else."""
_HANDS_OVER = re.compile(
    rf"{_GIVE} (?:the|its) files?(?: (?:that )?(?:it|the \w++) (?:writes|wrote|makes|made))?[ .!?]*+$", re.IGNORECASE
)
"""Asks for what the request before makes, and nothing else: who does that knows whether it made any."""
_PRODUCT = re.compile(
    rf"(?:an?|one) (?:[\w-]++ ){{0,3}}?(?:{DOCUMENT}$|{PICTURE}(?=$| and an? )"
    rf"|(?:{PICTURE}|{DOCUMENT}) (?:of|from|about|on|with) "
    r"(?:it|them|that|this|these|those|both|all|everything|the results?)\b)",
    re.IGNORECASE,
)
"""What is made of what is there by then: `a bar chart of it`, `a chart`, `a short report`."""
_MAKES = re.compile(rf"(?:[^\W\d_]++ )?{_PRODUCT.pattern}", re.IGNORECASE)
_LAST_WORDS = re.compile(
    r"[,.!]? (?:please|as well|too|(?:many )?thanks(?: a lot)?|thank you(?: very much)?)(?=[.!?]*+$)", re.IGNORECASE
)
_WORD, _FIRST_WORD = re.compile(rf"[^\W_]++|(?!{INPUT}){MASKED}"), re.compile(r"[^\W\d_]++")
_INPUT, _MASKED, _SAYS_SOMETHING = re.compile(INPUT), re.compile(MASKED), re.compile(rf"\w|{MASKED}")
_NAMES_AT_ONCE = re.compile(rf"\d|{MASKED}")


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes:
        text: What it says.
        later: Whether it is said to come after what is before it.
        listed: Whether it is an item of a list.
        given: The inputs that were named for it beforehand.
        shown: Whether these were named to show what there is (`Here is sales.csv.`), and not for what to use them.
    """

    text: str
    later: bool = False
    listed: bool = False
    given: str = ""
    shown: bool = False


def without_courtesy(covered: str) -> str:
    """Leave out the greeting, thanks and please around a goal, for every agent alike; what is nothing else stays."""
    polite = _POLITE.match(covered)
    text = covered[polite.end() :] if polite else covered
    while (shorter := _LAST_WORDS.sub("", text)) != text:
        text = shorter
    return text.strip() or covered


def requests_of(covered: str) -> list[Request] | None:
    """Take a goal apart; None if it is not certain where its requests begin and end."""
    found: list[Request] = []
    given, given_at, shown = "", 0, False
    for piece, listed in _pieces(covered):
        opening = _OPENING.match(piece)
        text = piece[opening.end() :] if opening else piece
        if _says_nothing(text, listed=listed):
            continue
        if _INPUT.search(text) and _only_names(text):
            before = _INPUT.findall(given) if given_at == len(found) else []
            shown = (shown or not before) and bool(_HERE_IS.match(text))
            given, given_at = " and ".join(dict.fromkeys([*before, *_INPUT.findall(text)])), len(found)
            continue
        if found and not listed and _TELLS.fullmatch(_tidy(text)):
            continue  # which is done in any case
        if text.endswith(":") and not listed:
            return None  # `Compute for 2024:` says of which rows all below it is
        announced, text = _announced(text)
        if _INPUT.search(announced):
            given, shown = " and ".join(dict.fromkeys(_INPUT.findall(announced))), False
        parts = [part for part in _parts(text) if not _TELLS.fullmatch(_tidy(part[0]))]
        made = any(_PRODUCT.match(part) for part, _ in parts[1:])
        if not (
            listed
            or made
            or _begins(text, is_more=bool(opening and _IS_MORE.match(opening.group())))
            or (opening and opening.group().rstrip(" ,:!").lower().endswith(("need", "want", "like")))
        ):
            return None
        later = bool(opening and _LATER.search(opening.group()))
        found += [Request(_tidy(part), then or (later and not at), listed, given, shown) for at, (part, then) in enumerate(parts)]
    if given and not any(request.given for request in found):  # named behind them, it is of all
        found = [replace(request, given=given, shown=shown) for request in found]
    return found if not given or any(request.given == given for request in found) else None


def _pieces(covered: str) -> Iterator[tuple[str, bool]]:
    """Yield the items of lists, and the sentences of everything else. One line alone is no list: `- 5 + 8`, `12. 5 % of 80`."""
    lines = [" ".join(line.split()) for line in covered.split("\n") if line.strip()]
    for line in lines:
        item = _ITEM.match(line) if len(lines) > 1 else None
        for sentence in _END.split(line[item.end() :] if item else line):
            if sentence.strip():
                yield sentence.strip(), item is not None


def _announced(text: str) -> tuple[str, str]:
    """Part from a sentence what only names inputs: `Using sales.csv, …`, `Please answer these questions about notes.txt: …`."""
    for mark in (":", ","):
        head, found, rest = text.partition(f"{mark} ")
        if found and _words(head) <= _SAYS_NOTHING and not (mark == "," and _INPUT.search(rest)):
            return head, rest.lstrip()
    return "", text


def _only_names(text: str) -> bool:
    """Whether a piece says nothing but names; `Show notes.txt` asks for it, `Show the following of notes.txt:` does not."""
    return _words(text) <= _SAYS_NOTHING and (text.rstrip().endswith(":") or _first(text) not in VERBS)


def _words(text: str) -> set[str]:
    """Its words in lower case, and what is covered and no input: a quotation, or what stands in brackets, says something."""
    return set(_WORD.findall(text.lower()))


def _says_nothing(text: str, *, listed: bool) -> bool:
    """Whether a piece is a greeting, or announces a list and names nothing."""
    if not _SAYS_SOMETHING.search(text) or _COURTESY.fullmatch(text):
        return True
    return not listed and text.endswith(":") and not _MASKED.search(text) and _words(text) <= _SAYS_NOTHING


def _begins(text: str, *, is_more: bool) -> bool:
    """Whether a text begins like a request. `And minus 3?`, by its question mark alone, does not: it goes on with another."""
    asks = text.endswith("?") and (not is_more or _DIGIT.match(text))
    return _first(text) in VERBS | _ASKS | _FIGURES or bool(asks) or bool(_PRODUCT.match(text))


def _first(text: str) -> str:
    found = _FIRST_WORD.match(text)
    return found.group().lower() if found else ""


def _parts(sentence: str) -> Iterator[tuple[str, bool]]:
    """Cut a sentence where another request plainly begins; yield each, and whether it is said to come later."""
    start, then = 0, False
    for joint in _JOINT.finditer(sentence):
        left, right = sentence[start : joint.start()], sentence[joint.end() :]
        later = bool(joint["then"] or joint["later"])
        # What stands behind is looked at first: it is a few words, and what stands before may be all of the goal.
        if _continues(left, joint.group(), right, sentence, later=later) and len(left.split()) > 1 and not _governs(left, right):
            yield left, then
            start, then = joint.end(), later
    yield sentence[start:], then


def _governs(left: str, right: str) -> bool:
    """Whether what comes behind a text may depend on a word in it; what is made of a result does not, of `where x is 1`.

    `May`, with a capital and within a text, is the month.
    """
    words = (
        _words(left.replace(" May ", " ")) - ({_first(left)} & _ASKS) - ({"where"} if _MAKES.match(right.rstrip(" .!?")) else set())
    )
    return (
        bool(_COLON.search(left))
        or bool(words & _GOVERNORS)
        or any(verb.lower() in VERBS | {"load"} for verb in _TO_DO.findall(left))
    )


def _continues(left: str, joint: str, right: str, sentence: str, *, later: bool) -> bool:
    """Whether a request begins behind a joint."""
    verb = _first(right)
    if verb in _ASKS:
        return sentence.endswith("?") and "," in joint and _first(left) in _ASKS
    if verb in VERBS and not _HANDS_OVER.match(right):
        behind = right[len(verb) :].lstrip()
        return later or _first(behind) in _OBJECTS or bool(_NAMES_AT_ONCE.match(behind))
    return bool(_PRODUCT.match(right.rstrip(" .!?"))) and not _words(left) & _CONTAINERS


def _tidy(text: str) -> str:
    return _LAST_WORDS.sub("", text.strip()).rstrip(" .,;:!") or text
