"""Tell on whose results a request builds. Works on covered text (`masking`).

What is not certain is not decided: "summarise notes.txt and translate it" may mean the summary or the notes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ioa.agent.rules.text.clauses import DOCUMENT, PICTURE, VERBS, Request
from ioa.agent.rules.text.masking import INPUT, MASKED, NAMED

_VERB = f"(?:{'|'.join(sorted(VERBS))}|an?|one)"
_PICTURE = re.compile(rf"(?:chart|plot|graph|draw|visuali[sz]e)\b|{_VERB} (?:[\w-]++ ){{0,3}}?{PICTURE}s?\b", re.IGNORECASE)
_BARE_PICTURE = re.compile(rf"(?:{_VERB} )*+(?:an? |one )?(?:[\w-]++ )?{PICTURE}", re.IGNORECASE)
"""A picture of which nothing is said but its kind: of what is there by then."""
_DOCUMENT = re.compile(rf"report\b|{_VERB} (?:[\w-]++ ){{0,5}}?{DOCUMENT}\b", re.IGNORECASE)
_ENDS_IN_DOCUMENT = re.compile(rf"\b{DOCUMENT}$", re.IGNORECASE)
_OF, _GROUPED = re.compile(r"\bof\b", re.IGNORECASE), re.compile(r"\b(?:per|by|for each)\b", re.IGNORECASE)
_FETCHES = re.compile(rf"(?:read|fetch|download|get|open) (?:the (?:file|page|text) )?{INPUT}$", re.IGNORECASE)
"""What yields the very input that it names, so that `it` means the same either way."""
_ALL = re.compile(
    r"\b(?:both|everything|all of (?:it|them|this|that|these|those)|(?:it|them) all"
    r"|the (?:(?:two|three|four) )?(?:results|findings|figures)|the above)\b(?! (?:the|an?)\b)",
    re.IGNORECASE,
)
_RESULT = re.compile(r"\b(?:the|that|this) (?:result|output|answer|outcome)\b", re.IGNORECASE)
_COMPUTES = re.compile(
    r"(?:divide|multiply|double) (?:it|that)\b|(?:(?:add|subtract|calculate|compute|what is) )?"
    r"\d[\d.,]*+ ?(?:%|per ?cent)?(?: VAT)? (?:to|from|of) (?:it|that)\??$",
    re.IGNORECASE,
)
"""What is done with a figure, and with no file."""
_PRONOUN = re.compile(
    r"\b(?:it|them|they|(?:this|that|these|those|each)"
    r"(?=$| ?[.,;?!]| (?:of|in|into|to|as|with|by|from|on|per|for|at|and|or|is|are|was|were)\b))\b",
    re.IGNORECASE,
)
_POSSESSIVE = re.compile(r"\b(?:its|their)\b", re.IGNORECASE)
_DEMONSTRATIVE = re.compile(r"\b(?:this|that|these|those)\b", re.IGNORECASE)
_DIGIT, _NAMED, _NAMES_SOMETHING = re.compile(r"\d"), re.compile(NAMED), re.compile(rf"\d|{MASKED}")
_FROM_PLACE = re.compile(r"\bof the (first|second|third)(?: one| result)?$", re.IGNORECASE)
_ORDINALS = ("first", "second", "third")
_WHAT_IS = re.compile(r"^(?:what|how much) (?:is|are|was|were) the\b", re.IGNORECASE)
"""Behind it nothing is meant that was spoken of before, if it is known of which file."""
_RUNS = re.compile(r"(?:run|execute|evaluate)\b|what does\b[^`]*`|.*\.py\b", re.IGNORECASE | re.DOTALL)
_NOUN = r"(?!(?:of|in|per|for|from|on|at|between)\b)[\w-]++"
_DEFINITE = re.compile(rf"\bthe (?:{_NOUN} ){{0,3}}?{_NOUN}(?=$|[.,;?!]| (?:into|as|to|by|with)\b)", re.IGNORECASE)
"""What must have been spoken of before: `the remaining lines`, but not `the lines of notes.txt`."""


def uses_of(requests: Sequence[Request]) -> list[tuple[int, ...]] | None:
    """Tell for each request on whose results it builds, by position; None if that is not certain.

    `The result` is that of the request before. `It` is so too where nothing else can be meant: where that request has numbers or
    code of its own and names no input, or where a picture or a document is asked for, which are made of results.
    """
    uses: list[tuple[int, ...]] = []
    for at in range(len(requests)):
        found = _uses(at, requests)
        if found is None:
            return None
        uses.append(found)
    return uses


def _uses(at: int, requests: Sequence[Request]) -> tuple[int, ...] | None:  # noqa: C901 - flat rules, of which the first that fits decides
    request, text, earlier = requests[at], requests[at].text, tuple(range(at))
    if not earlier:
        return None if request.given and _refers(text) else ()
    if _POSSESSIVE.search(text):
        return None
    if _ALL.search(text):
        return earlier
    before = _before(at, requests)
    if _PRONOUN.search(text):
        told = requests[before].text
        figure = _NAMES_SOMETHING.search(told) and not _NAMED.search(told)
        fits = figure or _COMPUTES.match(text) or _is_picture(text) or is_document(text) or _FETCHES.match(told)
        return (before,) if fits else None
    if _RESULT.search(text):
        return (before,)
    if _NAMED.search(text):
        return ()
    if is_document(text) and _ENDS_IN_DOCUMENT.search(text):
        return earlier
    if _is_picture(text) and (place := _FROM_PLACE.search(text)):
        on = _ORDINALS.index(place[1].lower())
        return (on,) if on < at and not _is_picture(requests[on].text) else None
    if request.later and not _DIGIT.search(text):
        return (before,)
    if _DEMONSTRATIVE.search(text):
        return None
    if _is_picture_of_its_own(text):
        return ()
    if _BARE_PICTURE.fullmatch(text):
        return None if _is_picture(requests[before].text) else (before,)
    if request.listed and not (_is_picture(text) or is_document(text)):
        return ()
    said = _WHAT_IS.sub("", text) if request.given else text
    return () if not _DEFINITE.search(said) and (request.given or _NAMES_SOMETHING.search(text)) else None


def runs_code(told: str) -> bool:
    """Whether a request, as it is told, may run code, which may write any file anew."""
    return bool(_RUNS.match(told))


def _refers(text: str) -> bool:
    return any(pattern.search(text) for pattern in (_PRONOUN, _POSSESSIVE, _RESULT, _ALL, _DEMONSTRATIVE))


def _before(at: int, requests: Sequence[Request]) -> int:
    """Return the request that `it` speaks of: the one before; for a picture the last that asks for neither picture nor document."""
    figures = [place for place in range(at) if not _is_picture(requests[place].text) and not is_document(requests[place].text)]
    return figures[-1] if figures and _is_picture(requests[at].text) else at - 1


def _is_picture(text: str) -> bool:
    return bool(_PICTURE.match(text))


def _is_picture_of_its_own(text: str) -> bool:
    """Whether a picture is asked for of a question, and not of a result: `a chart of average pay per city`."""
    of = _OF.search(text) if _is_picture(text) and not _DEFINITE.search(text) else None
    return of is not None and _GROUPED.search(text, of.end()) is not None


def is_document(text: str) -> bool:
    """Whether a request asks for a text that is made of what is there by then."""
    return bool(_DOCUMENT.match(text)) and not _is_picture(text)
