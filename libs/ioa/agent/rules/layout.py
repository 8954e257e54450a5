"""How a goal is laid out: sentences, lists, and lists written into a line. Works on covered text; see `shielding`."""

from __future__ import annotations

import re

from ioa.agent.rules.clauses import GIVEN, is_courtesy, payload_start
from ioa.agent.rules.lexicon import words
from ioa.agent.rules.openings import PRODUCT, is_question, leading_verb, strip_opening
from ioa.agent.rules.shielding import NAMED, SHIELDED, Shield

_MARK = r"(?:[-*•–]|\(?\d{1,2}[.)]|\(?[a-h]\)|step\s+\d{1,2}\s*[:.)-])\s+"
_ITEM = re.compile(rf"[ \t]*{_MARK}(?=\S)", re.IGNORECASE)
_INLINE = re.compile(r"(?:^|(?<=[\s:;,.]))\(?(\d{1,2}|[a-h])[.)]\s+(?=\S)")


_SCOPE = re.compile(
    r"(?:^|[.!?;\n])\s*+(?:about|among|at|by|for|from|given|in|of|on|using|with|within)\s+([^:.!?;\n]{1,80}):\s", re.IGNORECASE
)
_SAYS_NO_SCOPE = words("the a an my our this these attached file files table data document text page and")
_ANNOUNCES = words("please give show tell me us do i we need want would like following things tasks steps questions answer to")


def is_scoped(covered: str) -> bool:
    """Whether a goal says of several requests together what they are about ("In Europe: count …"), beyond naming a file.

    Nothing tells then which of them it restricts, so that none may go anywhere without it.
    """
    told = (re.findall(rf"\w+|{SHIELDED}", re.sub(NAMED, " ", scope[1].lower())) for scope in _SCOPE.finditer(covered))
    return any(word not in _SAYS_NO_SCOPE and word not in _ANNOUNCES for one in told for word in one)


def sentences_of(covered: str, shield: Shield) -> list[str]:
    """Cut a goal into sentences; an item of a list of requests is one, a list of mere details stays with what it details.

    Args:
        covered: The goal, covered by `shield`.
        shield: Takes what turns out to be a text the goal brings along.
    """
    start = payload_start(covered)
    if start is not None and covered[start:].strip():
        covered = covered[:start] + shield.keep(covered[start:])
    sentences: list[str] = []
    for paragraph, items in _blocks(_one_item_a_line(covered)):
        told = _cut(paragraph)
        if items and not _are_requests(items, told[-1] if told else ""):
            kept = shield.keep("\n".join(items))
            told = [*told[:-1], f"{told[-1]}\n{kept}"] if told else [kept]
            items = []
        if items and told and told[-1].endswith(":"):
            told[-1:] = _introduction(told[-1])
        sentences += told
        sentences += [sentence for item in items for sentence in _cut(_ITEM.sub("", item, count=1))]
    return [sentence for sentence in sentences if not is_courtesy(sentence)]


def _one_item_a_line(text: str) -> str:
    marks = list(_INLINE.finditer(text))
    for first in ("1", "a"):
        run: list[re.Match[str]] = []
        for mark in marks:
            if mark[1] == (str(1 + len(run)) if first == "1" else chr(ord("a") + len(run))):
                run.append(mark)
        if len(run) > 1:
            starts = [mark.start() for mark in run]
            parts = [text[: starts[0]], *(text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True))]
            return "\n".join(re.sub(r"(?<![\s,;])[\s,;]*+(?:\band\s*+)?$", "", part) for part in parts)
    return text


def _blocks(text: str) -> list[tuple[str, list[str]]]:
    blocks: list[tuple[str, list[str]]] = [("", [])]
    for line in text.split("\n"):
        paragraph, items = blocks[-1]
        if _ITEM.match(line):
            items.append(line)
        elif items and line.strip() and line[0] in " \t":
            items[-1] += " " + line.strip()
        elif items and line.strip():
            blocks.append((line, []))
        elif not items:
            blocks[-1] = (f"{paragraph}\n{line}", items)
    return blocks


_LINE_BREAK = re.compile(r"\s*\n\s*\n\s*|(?<=[.!?:;])\s*\n\s*|\s*\n\s*(?=[A-Z])")
_END = re.compile(r"(?<=[.!?])[)\"'”’]*\s+(?=\S)|\s*;\s*(?=\S)")


def _cut(paragraph: str) -> list[str]:
    cut: list[str] = []
    for line in _LINE_BREAK.split(paragraph.strip()):
        for sentence in _END.split(line):
            sentence = " ".join(sentence.split())
            if cut and cut[-1].endswith(":") and not is_request(sentence):
                cut[-1] = f"{cut[-1]} {sentence}"
            elif re.search(rf"\w|{SHIELDED}", sentence):
                cut += _after_announcement(sentence)
    return cut


_ANNOUNCEMENT = re.compile(
    r"(?:[^:]*\b(?:following|things?|tasks?|steps?|questions?|to-?dos?|do\s+this|as\s+follows|points)\b[^:]{0,40}"
    r"|(?:please|todo|tasks?|steps?|goals?|"
    r"give\s+me|i\s+need|i\s+want|we\s+need|questions?|instructions?|for\s+[^:]{1,40}|using\s+[^:]{1,40}"
    r"|with\s+[^:]{1,40}|from\s+[^:]{1,40}|"
    r"about\s+[^:]{1,40}|in\s+[^:]{1,40})):\s+(?=\S)",
    re.IGNORECASE,
)


def _after_announcement(sentence: str) -> list[str]:
    match = _ANNOUNCEMENT.match(sentence)
    if match is None or not (
        is_request(sentence[match.end() :])
        or re.match(rf"(?:for|using|with|from|about|in)\b.*{NAMED}", match.group(), re.IGNORECASE)
    ):
        return [sentence]
    return [*_introduction(match.group().strip()), sentence[match.end() :]]


def _introduction(text: str) -> list[str]:
    """Keep of an announcement ("For sales.csv, give me:") only what names something."""
    if not re.search(rf"{SHIELDED}|\d", text):
        return []
    nothing = rf"(?:(?!{SHIELDED})\W)*"
    about = re.fullmatch(
        rf"(?:for|using|with|from|about|in|on|given)\s+(.*?{NAMED}){nothing}(?:please|give\s+me|do|i\s+need|i\s+want)?{nothing}",
        text,
        re.IGNORECASE,
    )
    return [f"{GIVEN} {about[1] if about else text.rstrip(': ')}."]


def is_request(text: str) -> bool:
    """Whether a piece of a goal asks for something by itself: it begins with a verb, a question or what is to be made."""
    _, rest = strip_opening(_ITEM.sub("", text, count=1))
    return leading_verb(rest) is not None or is_question(rest) or bool(PRODUCT.match(rest))


def _are_requests(items: list[str], before: str) -> bool:
    if len(items) < 2 and not is_request(items[0]):
        return False
    if sum(is_request(item) for item in items) * 2 >= len(items):
        return True
    _, led = strip_opening(before)
    asked = re.search(
        r"\b(?:following|these|tasks?|steps?|things?|questions?|give\s+me|show\s+me|tell\s+me|i\s+need|i\s+want|please|to-?dos?)\b",
        before,
        re.IGNORECASE,
    )
    details = re.search(
        r"\b(?:include|including|covering|with|constraints?|examples?|rules?|requirements?|notes?|where|sections?)\b",
        before,
        re.IGNORECASE,
    )
    return bool(
        before.endswith(":")
        and not details
        and (asked or re.fullmatch(rf"(?:for|from|using|about)\b.*{NAMED}.*:", led, re.IGNORECASE))
    )
