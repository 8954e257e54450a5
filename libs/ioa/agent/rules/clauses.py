"""Where one request ends and the next begins. Works on covered text; see `shielding`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ioa.agent.rules.lexicon import FETCHING, PREPARING, TRAILING, alternatives
from ioa.agent.rules.openings import (
    PRODUCT,
    Opening,
    base_form,
    is_mere_opening,
    is_question,
    is_statement,
    leading_verb,
    seems_imperative,
    strip_opening,
    without_front,
)
from ioa.agent.rules.phrases import is_report
from ioa.agent.rules.shielding import FILE, INPUT, NAMED, SHIELDED

_FLAGS = re.IGNORECASE


GIVEN = "Given:"
"""The beginning of a context that only names an input: "load sales.csv" before what is to be done with it."""


@dataclass(frozen=True)
class Clause:
    """One request.

    Attributes:
        text: The request without what led to it.
        opening: What stood in front of it.
        core: The request before anything was added to it.
        sentence: Which sentence it belongs to.
        context: What was told before it and belongs to it.
        tail: What was told after it and refines it.
    """

    text: str
    opening: Opening
    core: str
    sentence: int
    context: str = ""
    tail: str = ""


def clauses_of(sentences: list[str]) -> list[Clause]:
    """Cut sentences into requests; what only tells or refines something goes to the request it belongs to."""
    found: list[Clause] = []
    pending: list[str] = []
    for number, sentence in enumerate(sentences):
        opening, rest = strip_opening(sentence)
        if found and _refines(rest) and not (opening.refers or opening.wished):
            found[-1] = _refined(found[-1], ". ", rest)
        elif (is_statement(rest) or _rambles(rest, sentences)) and not opening.wished:
            if found and (_constrains(rest) or not _any_request(sentences[number + 1 :])):
                found[-1] = _refined(found[-1], ". ", sentence)
            else:
                pending.append(sentence)
        elif not rest.strip(" .,;:!?-–—") or is_mere_opening(sentence):
            continue
        elif found and not opening.wished and leading_verb(rest) is not None and not _is_complete(rest.rstrip(" .!?")):
            found[-1] = _refined(found[-1], ". ", sentence)
        else:
            first, *others = list(_requests(sentence, number))
            found += [replace(first, context=_in_a_row(pending)), *others]
            pending = []
    if pending:
        found.append(Clause(_in_a_row(pending), Opening(), pending[-1], len(sentences)))
    return _joined(found)


def _in_a_row(sentences: list[str]) -> str:
    return " ".join(text if text.endswith((".", "?", "!")) or text is sentences[-1] else f"{text}." for text in sentences)


_THANKS = re.compile(
    rf"(?:many\s+)?(?:thanks|thank\s+you|cheers|best\s+regards|regards)\b(?:(?!\band\b|{SHIELDED}|\d)[^.?!]){{0,30}}[.!]*$", _FLAGS
)


def is_courtesy(sentence: str) -> bool:
    """Whether a sentence says nothing but thanks."""
    return bool(_THANKS.match(sentence.strip()))


_WORD = (
    r"(?:and(?:\s+to(?=\s))?|plus|then|also|as\s+well\s+as|followed\s+by|along\s+with|together\s+with|next|finally"
    r"|lastly|afterwards?|after\s+that|before)"
)
_JOINT = re.compile(rf"(?:\s*[,;—–]|\s+-(?=\s))\s*(?:{_WORD}\b,?\s*)*|\s+(?:{_WORD}\b,?\s*)+", _FLAGS)
_AFTER = re.compile(r"(?:after|once|having|when)\s+(?=\w+ing\b)", _FLAGS)


def _requests(sentence: str, number: int) -> Iterator[Clause]:
    start, before = 0, ""
    for joint in _JOINT.finditer(sentence):
        left, right = sentence[start : joint.start()], sentence[joint.end() :]
        if not _is_boundary(left, joint.group(), right, sentence):
            continue
        yield _clause(left, before, number)
        start, before = joint.end(), joint.group()
    yield _clause(sentence[start:], before, number)


def _clause(text: str, before: str, number: int) -> Clause:
    led, _ = strip_opening(before.strip(" ,;—–-") + " x")
    opening, rest = strip_opening(text)
    if after := _AFTER.match(rest):
        rest = base_form(rest[after.end() :]) or rest
    opening = replace(opening, sequenced=opening.sequenced or led.sequenced)
    rest = _tidy(_with_verb(rest) if before else rest)
    if leading_verb(rest) is not None and not re.search(r"\b(?:what|which|who|how|why|when|where|whether|if)\b", rest, _FLAGS):
        rest = rest.rstrip("? ")
    return Clause(rest, opening, rest, number)


def _tidy(text: str) -> str:
    text = re.sub(r",?\s+(?:please|as\s+well|too|thanks|for\s+me)\s*(?=[.?!]*$)", "", text.strip(), flags=_FLAGS)
    return re.sub(r"(?<=\S)[\s.,;:!]+$", "", text)


def _with_verb(text: str) -> str:
    product = PRODUCT.match(text)
    if product is None or leading_verb(text) is not None:
        return text
    return f"make {text}" if text[0].islower() or not product["article"] else text


def _is_boundary(left: str, joint: str, right: str, sentence: str) -> bool:
    opening, rest = strip_opening(right)
    _, said = strip_opening(left)
    weak = bool(re.fullmatch(r"\s+(?:and(?:\s+to)?|plus)\s+", joint, _FLAGS)) and not (
        opening.wished or opening.sequenced or opening.refers
    )
    if not rest.strip(" .,;:!?") or not _is_complete(said):
        return False
    head, colon, _ = said.partition(":")
    if colon and is_report(head):  # "a briefing on x: …" lists what belongs to the briefing
        return False
    if ";" in joint:
        return True
    if re.search(r"\bbefore\b", joint, _FLAGS):
        return base_form(rest) is not None and leading_verb(said) is not None
    if leading_verb(rest) is not None:
        return not (weak and _governs(said)) and not _in_modal_sentence(said)
    if leading_verb(without_front(said)) is not None and seems_imperative(rest):
        return not (weak and _governs(said))
    if base_form(rest) is not None and re.search(r"\bas\s+well\s+as\b|\bfollowed\b", joint, _FLAGS):
        return leading_verb(said) is not None
    if is_question(rest):
        return _may_ask_again(said, rest, joint, sentence)
    return _is_product(said, rest) or (opening.wished and not is_statement(rest) and "," in joint)


def _is_complete(said: str) -> bool:
    if is_mere_opening(said):
        return False
    if (after := _AFTER.match(said)) and base_form(said[after.end() :]):
        return True
    if re.search(r"\b(?:of|for|in|per|by|and|or|to|the|an?|from|with|as|on|between)$", said.strip(), _FLAGS):
        return False
    said = without_front(said)
    led = leading_verb(said)
    if led is None:
        return bool(re.search(r"\w", said)) or bool(re.search(SHIELDED, said))
    return bool(re.sub(r"^(?:me|us|out|up|please|through)\b", "", led[1], flags=_FLAGS).strip(" ,.;"))


_GOVERNING = re.compile(
    r"\b(?:to|that|which|who|can|could|should|must|will|would|let|lets|helps?|allows?)\s+(?:\w+ly\s+)?(?=(?P<rest>\S.*))", _FLAGS
)


def _governs(said: str) -> bool:
    said = without_front(said)
    led = leading_verb(said)
    if led is None:
        return bool(re.match(
            r"(?:how\s+(?:do|can|should|could|would|to|does)|(?:what|where|when|who|which|why)\b.*\b(?:do|does|did|can"
            r"|should|could|would|will)\b"
            r"|(?:is|are|do|does|did|can|could|should|would|will)\b)", said, _FLAGS))  # fmt: skip
    if led[0] == "use":
        return False
    return any(leading_verb(match["rest"]) is not None for match in _GOVERNING.finditer(led[1]))


def _in_modal_sentence(said: str) -> bool:
    return is_statement(said)


_TELLING = frozenset("tell find determine calculate compute show check identify give list work_out say state name count".split())


def _may_ask_again(said: str, rest: str, joint: str, sentence: str) -> bool:
    word = rest.split()[0].lower()
    joined = bool(re.search(r"\band\b|\bthen\b|\bplus\b|\balso\b", joint, _FLAGS))
    asks = is_question(said) or sentence.rstrip().endswith("?")
    led = leading_verb(said)
    if word in ("why", "when", "where", "whose", "whom") and not (asks and joined):
        return False
    if word == "how" and not re.match(
        r"how\s+(?:many|much|long|often|far|old|big|large|high|fast|well|did|do|does|is|are)\b", rest, _FLAGS
    ):
        return False
    if not joined and not asks:
        return False
    if not joined and word == "which" and not is_question(said):
        return False
    return asks or (led is not None and led[0] in _TELLING) or "," in joint


_INSIDE = re.compile(
    r"\b(?:with|including|includes?|included|containing|contains?|covering|covers|such\s+as|comprising|consisting\s+of"
    r"|into|between(?!.*\band\b)|made\s+of)\b",
    _FLAGS,
)
_COMPLEMENT = re.compile(rf"\b(?:of|per|by|in|for|from|on|about)\s+\S|{NAMED}", _FLAGS)


def _is_product(said: str, rest: str) -> bool:
    product = PRODUCT.match(rest)
    if product is None or ":" in said or _INSIDE.search(said) or not _COMPLEMENT.search(said):
        return False
    return product["article"] is not None or bool(re.match((r"\s+(?:of|from|about|on)\s+(?:it|them|that|this|these|those"
        r"|both|all|the\s+results?)\b"),
                                                            rest[product.end():], _FLAGS))  # fmt: skip


_REFINING = re.compile(
    r"(?:include|ensure|make\s+sure|use|keep|limit|cite|avoid|don['’]?t|do\s+not|never|always|remember|note"
    r"|be\s+(?:sure|careful|brief|concise)|"
    r"round|consider|assume|ignore|exclude|skip|focus|no\s+need|feel\s+free|show\s+your|incorporate|quote|support"
    r"|answer\s+(?:in|with|only|briefly)|"
    r"format|structure|save)\b(?!\s+(?:it|this|that|them|these|those)\s+to\b)",
    _FLAGS,
)


def _refines(rest: str) -> bool:
    return bool(_REFINING.match(rest)) and not rest.rstrip().endswith("?")


_CONSTRAINT = re.compile(
    r"(?:it|they|you|this|these|those|each|(?:the|your|all|this|every)\s+(?:\S+\s+){1,6}?(?=should|must|needs?|will|may"
    r"|can|has\s+to|have\s+to))\b",
    _FLAGS,
)


def _constrains(rest: str) -> bool:
    return bool(_CONSTRAINT.match(rest))


def _any_request(sentences: list[str]) -> bool:
    for sentence in sentences:
        opening, rest = strip_opening(sentence)
        if opening.wished or not (is_statement(rest) or _refines(rest) or is_courtesy(sentence)):
            return True
    return False


def _refined(clause: Clause, glue: str, text: str) -> Clause:
    glue = " " if glue == ". " and f"{clause.text}{clause.tail}".endswith((".", "?", "!")) else glue
    return replace(clause, tail=f"{clause.tail}{glue}{_tidy(text)}")


MANY_WORDS = 14


def _rambles(rest: str, sentences: list[str]) -> bool:
    """Whether a long sentence that begins like no request stands among others that do."""
    if len(rest.split()) <= MANY_WORDS or _begins_as_request(rest):
        return False
    return any(_begins_as_request(strip_opening(sentence)[1]) for sentence in sentences)


def _begins_as_request(rest: str) -> bool:
    return leading_verb(without_front(rest) or rest) is not None or is_question(rest) or bool(PRODUCT.match(rest))


_POINTS_BACK = re.compile(
    r"(?:it|them|this|that|these|those|the\s+(?:results?|answers?|output|numbers?|values?|figures?)|your\s+(?:answer"
    r"|work|result)s?)(?=$|[\s.,;])",
    _FLAGS,
)
_MERE_INPUT = re.compile(
    r"(?:(?:the|my|our|a|an|this|file|data|from|table|spreadsheet|dataset|document|text|called|named|in|at)\s+)*"
    rf"{FILE}[\s.,;:!?]*$",
    _FLAGS,
)


def _joined(found: list[Clause]) -> list[Clause]:
    joined: list[Clause] = []
    for clause in found:
        led = leading_verb(clause.text)
        before = joined[-1] if joined else None
        if before is not None and led is not None and led[0] in TRAILING and _POINTS_BACK.match(led[1]):
            before = _refined(before, ". ", clause.context) if clause.context else before
            joined[-1] = _refined(before, ". " if clause.context else " and ", f"{clause.text}{clause.tail}")
        elif before is not None and _only_prepares(before.text) and not (clause.context or before.tail):
            given = re.findall(INPUT, before.text)
            joined[-1] = replace(clause, context=f"{GIVEN} {' and '.join(given)}. {before.context}".strip(), opening=before.opening)
        else:
            joined.append(clause)
    return joined


def _only_prepares(text: str) -> bool:
    led = leading_verb(text)
    return led is not None and led[0] in PREPARING and bool(_MERE_INPUT.match(led[1]))


FETCHES = re.compile(rf"{alternatives(FETCHING)}\b", _FLAGS)
"""The beginning of a request that yields a text or file."""

_PARAGRAPH_PAYLOAD = re.compile(
    r"\b(?:following|this|below|these)\s+(?:[\w-]+\s+){0,2}?(?:text|passage|paragraph|email|e-mail|article|review|code"
    r"|snippet|message|sentence|"
    rf"quote|story|function|puzzle|riddle|poem|letter|note|abstract|equations?|comment"
    rf"|matrix)s?\b[^.?!\n:]{{0,60}}:\s*(?!\s*{NAMED})",
    _FLAGS,
)


def payload_start(text: str) -> int | None:
    """Where a text begins that the goal brings along ("summarise the following text: …") and that is nobody's request."""
    match = _PARAGRAPH_PAYLOAD.search(text)
    return match.end() if match else None
