"""What a request builds on: the result of an earlier one, or an input that was named before. Works on covered text.

"Summarise notes.txt and count its words" asks two things of one file; "total the sales, then chart it" hands a result on. The
difference decides what can run side by side, and a request is only sent to an agent in words that stand on their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ioa.agent.rules.clauses import FETCHES, GIVEN, Clause
from ioa.agent.rules.lexicon import EXAMINING, FETCHING
from ioa.agent.rules.openings import is_question, leading_verb
from ioa.agent.rules.phrases import CHART, head_of, is_chart, is_report, phrase_of
from ioa.agent.rules.shielding import ADDRESS, INPUT, NAMED, SHIELDED

_FLAGS = re.IGNORECASE
MAX_PHRASE_CHARS = 240


@dataclass(frozen=True)
class Resolved:
    """A request in words that stand on their own, and the earlier ones whose results it needs, by position."""

    text: str
    uses: tuple[int, ...]
    clause: Clause

    @property
    def core(self) -> str:
        """What the request brings forth, without preparation and refinement."""
        return self.clause.core


_COLLECTIVE = re.compile(
    r"\b(?:(?:of|from|on|about|for|with|using)\s+)?(?:both(?!\s+(?:the|of\s+the|a|an|in|on|by)\b)(?:\s+of\s+(?:them"
    r"|these|those))?(?:\s+(?:results?|answers?|findings|outcomes?|numbers))?"
    r"|everything(?:\s+(?:above|so\s+far|together))?|all\s+(?:of\s+)?(?:it|them|this|that|these|those|the\s+(?:above"
    r"|results?|findings))"
    r"(?:\s+(?:results?|findings|numbers|figures|facts|together))?|(?:it|them)\s+all|all\s+(?:two|three|four|five)(?!\s+\w+s\b)"
    r"|the\s+(?:two|three|four|five)(?:\s+(?:results|answers|findings|of\s+them))?(?=$|[.,;?!])"
    r"|the\s+above(?:\s+(?:results?|findings|data|information|analysis))?"
    r"|(?:the|these|those|your|all|all\s+the)\s+(?:findings|results|answers|outcomes)|what\s+you\s+(?:find|found|learn"
    r"|learned|got))(?=$|[\s.,;?!])",
    _FLAGS,
)
_RESULT = re.compile(
    r"\b(?:the|this|that|your)\s+(?:result|output|outcome|answer)(?=$|[\s.,;?!])|\b(?:the|this|that|these"
    r"|those)\s+(?:resulting|computed|calculated)\s+\w+"
    r"|\b(?:the|these|those|this|that)\s+(?:numbers|figures|values|statistics|stats|totals|averages|data\s+points)(?=$"
    r"|[\s.,;?!])(?!\s+(?:of|in|per|from|for)\b)",
    _FLAGS,
)
_POSSESSIVE = re.compile(
    r"\b(?:its|their)\s+((?:[\w%-]+\s+){0,3}?[\w%-]+)(?=$|[.,;?!]|\s+(?:and|or|in|per|by|for|to|as|with|from|on|at|then"
    r"|into|using|is|are|of|it|them)\b)",
    _FLAGS,
)
_OWN = (
    r"(?=$|[.,;:?!]|\s+(?:and|or|in|to|into|as|with|by|from|on|per|for|at|using|over|then|against|of|is|are|was|has"
    r"|have|contain|contains|mention|mentions|say|says|\w+ly|back|up|out|down|instead|again|together|twice)\b)"
)
_PRONOUN = re.compile(
    rf"(?<!\bso\s)\b(?P<before>(?:of|from|for|on|about|to|with|into|by|in|than|as|out\s+of|each\s+of|does|do|did|is|are"
    rf"|was|has|have|can|if|whether|that)\s+)?"
    rf"(?P<word>it|them|they|this|that|these|those){_OWN}",
    _FLAGS,
)
_THE_INPUT = re.compile(
    r"\b(?:the|this|that|same|the\s+same)\s+(?:data\s+|text\s+|csv\s+|whole\s+|entire\s+|web\s+|same\s+)?(?:file"
    r"|document|text|page|webpage|website|site|article|dataset|data\s+set|"
    r"spreadsheet|note|notes|log)(?=$|[\s.,;?!])",
    _FLAGS,
)
_EACH = re.compile(r"\b(?:each|every)(?:\s+(?:one|of\s+(?:them|these|those)))?(?=$|[.,;?!])", _FLAGS)
_FEATURE = re.compile(
    r"(?:\w+\s+){0,2}(?:words?|sentences?|lines?|paragraphs?|characters?|letters?|rows?|columns?|key\s?phrases?"
    r"|keywords?|topics?|themes?|title|headings?|"
    r"author|length|size|content|contents|pages?|readability|tone|sentiment|headers?)$",
    _FLAGS,
)
_TRANSFORMS = re.compile(
    r"(?:chart|plot|graph|draw|visuali[sz]e|illustrate|convert|translate|multiply|divide|add|subtract|round|format|save"
    r"|send|email|post|publish|present|"
    r"interpret|discuss|turn|transform|report|rank|sort|double|triple|halve|square|explain|put|take|raise|increase"
    r"|reduce|render|embed|feed|use|brief)\b",
    _FLAGS,
)
_REWORKS = re.compile(
    r"(?:remove|replace|sort|rank|filter|clean|reverse|deduplicate|compare|group|tidy|highlight|explain|interpret"
    r"|discuss|rephrase|simplify|proofread)\b",
    _FLAGS,
)
_TOPIC = re.compile(
    rf"\b(?:of|about|on|from|for|in|per|by|with|using|comparing|regarding|called|titled|to|at)\s+\S|{NAMED}", _FLAGS
)


def resolve(clauses: Sequence[Clause], named: Sequence[tuple[str, ...]], carry: Callable[[int, str], str]) -> list[Resolved]:
    """Find for each request what it builds on, and replace pronouns by what they stand for.

    Args:
        clauses: The requests in order.
        named: For each request the files, addresses and quotations it or its context names.
        carry: Adds an input to a request, given by position and text, that asks about one without naming it.
    """
    resolved: list[Resolved] = []
    inputs: list[tuple[str, ...]] = []
    for position, clause in enumerate(clauses):
        known = named[position] or (inputs[-1] if inputs else ())
        one = _resolve_one(clause, resolved, known, inputs[-1] if inputs else (), own=named[position])
        if not one.uses:
            one = replace(one, text=carry(position, one.text))
        resolved.append(one)
        carried = tuple(char for char in dict.fromkeys(one.text) if re.match(NAMED, char))
        inputs.append(tuple(dict.fromkeys((*named[position], *carried))))
    return resolved


def _resolve_one(
    clause: Clause, earlier: list[Resolved], known: tuple[str, ...], before: tuple[str, ...], *, own: tuple[str, ...]
) -> Resolved:
    text = clause.text
    if not earlier:
        return Resolved(_with_input(text, known) if clause.context else text, (), clause)
    if clause.context.startswith(GIVEN) and known and not own[1:] and (_pronoun(text) or _POSSESSIVE.search(text)):
        return Resolved(_with_input(text, known), (), clause)
    report = is_report(text)
    last = len(earlier) - 1
    everything = tuple(range(len(earlier)))
    if clause.opening.everything or _COLLECTIVE.search(text):
        uses = everything if report or clause.opening.everything else _scope(clause, earlier)
        return Resolved(_collective(text, uses, earlier), uses, clause)
    if clause.opening.refers:
        uses = everything if report else (last,)
        return Resolved(_with_object(text, uses, earlier), uses, clause)
    if _POSSESSIVE.search(text) or _pronoun(text) or _EACH.search(text):
        if (numbers := _numbers_meant(clause, earlier[-1])) is not None:
            return Resolved(_substituted(text, numbers), (), clause)
        if _means_input(clause, earlier[-1], before):
            return Resolved(_with_input(text, before), _fetched(before, earlier), clause)
        uses = _chain(last, earlier) if report else (_antecedent(text, earlier),)
        return Resolved(_substituted(text, _phrase(uses, earlier)), uses, clause)
    if _RESULT.search(text):
        uses = everything if report else (last,)
        return Resolved(text if len(uses) > 1 else _substituted(text, _phrase(uses, earlier)), uses, clause)
    if _THE_INPUT.search(text) and before and not own:
        return Resolved(_with_input(text, before), _fetched(before, earlier), clause)
    names_input = re.search(rf"\b(?:in|of|from|using)\s+{INPUT}", text, _FLAGS) and not clause.opening.sequenced
    if not names_input and (named_before := _definite(text, earlier)) is not None:
        return Resolved(text, (named_before,) if not report else _chain(named_before, earlier), clause)
    return _without_pronoun(clause, earlier, own=own, report=report)


def _without_pronoun(clause: Clause, earlier: list[Resolved], *, own: tuple[str, ...], report: bool) -> Resolved:
    text, last = clause.text, len(earlier) - 1
    bare = not own and not is_question(text) and not _TOPIC.search(re.sub(r"\bto\s+(?:me|us)\b", "", text))
    if bare and report:
        uses = tuple(range(len(earlier)))
        return Resolved(_with_object(text, uses, earlier), uses, clause)
    if bare and (CHART.search(text) or clause.opening.sequenced or _REWORKS.match(text)):
        uses = (_antecedent(text, earlier),)
        return Resolved(_with_object(text, uses, earlier), uses, clause)
    fetched = leading_verb(earlier[-1].core)
    if (
        not own
        and fetched is not None
        and fetched[0] in FETCHING
        and re.search(ADDRESS, earlier[-1].core)
        and re.search(r"\bthe\b", text)
    ):
        return Resolved(text, (last,), clause)
    if clause.opening.sequenced and not own and not re.search(r"\d", text):
        return Resolved(text, tuple(range(len(earlier))) if report else (last,), clause)
    return Resolved(text, (), clause)


def _scope(clause: Clause, earlier: list[Resolved]) -> tuple[int, ...]:
    if re.search(r"\b(?:both|two)\b", clause.text, _FLAGS):
        return tuple(range(len(earlier)))[-2:]
    near = tuple(at for at, other in enumerate(earlier) if other.clause.sentence == clause.sentence)
    return near or _chain(len(earlier) - 1, earlier)


def _chain(last: int, earlier: Sequence[Resolved]) -> tuple[int, ...]:
    found = {last}
    for at in range(last, -1, -1):
        if at in found:
            found.update(earlier[at].uses)
    return tuple(sorted(found))


def _antecedent(text: str, earlier: list[Resolved]) -> int:
    last = len(earlier) - 1
    if is_chart(text):
        return next((at for at in range(last, -1, -1) if not is_chart(earlier[at].text) and not is_report(earlier[at].text)), last)
    return last


def _pronoun(text: str) -> re.Match[str] | None:
    for match in _PRONOUN.finditer(text):
        word_before = re.search(r"\w+\s+$", text[: match.start("word")])
        after_verb = word_before is not None and leading_verb(text[word_before.start() :]) is not None
        if match["before"] or after_verb or match["word"].lower() in ("it", "them", "they"):
            return match
    return None


def _means_input(clause: Clause, before: Resolved, inputs: tuple[str, ...]) -> bool:
    if not inputs or not before.core:
        return False
    fetched = leading_verb(before.core)
    if fetched is not None and fetched[0] in (FETCHING if re.match(ADDRESS, inputs[0]) else FETCHING - EXAMINING):
        return False
    possessive = _POSSESSIVE.search(clause.text)
    if possessive:
        reworked = clause.opening.sequenced or is_chart(clause.text) or bool(_TRANSFORMS.match(clause.text))
        return bool(_FEATURE.match(possessive[1])) or (not reworked and _is_about_input(before))
    if clause.opening.sequenced or _TRANSFORMS.match(clause.text) or is_chart(clause.text) or is_report(clause.text):
        return False
    led = leading_verb(clause.text)
    if led is not None and led[0] not in EXAMINING:
        return False
    return _is_about_input(before) or (led is not None and bool(_FEATURE.search(head_of(led[1]))))


def _fetched(inputs: tuple[str, ...], earlier: list[Resolved]) -> tuple[int, ...]:
    """The request that fetches an address: who is to work on its text needs what was fetched."""
    for at, one in enumerate(earlier):
        if FETCHES.match(one.core) and any(re.match(ADDRESS, char) and char in one.core for char in inputs):
            return (at,)
    return ()


_NUMBER = rf"(?:\d+|{SHIELDED})"
_NUMBERS = re.compile(rf"{_NUMBER}(?:,\s*{_NUMBER})*,?\s+and\s+{_NUMBER}(?!\s*\w)")


def _numbers_meant(clause: Clause, before: Resolved) -> str | None:
    """The numbers that "their" or "them" stand for: "the mean of 4, 8 and 15, and their sum"."""
    numbers = _NUMBERS.search(before.core)
    if numbers is None or clause.opening.sequenced or not re.search(r"\b(?:their|them|these|those)\b", clause.text, _FLAGS):
        return None
    return None if is_chart(clause.text) or is_report(clause.text) or re.search(NAMED, numbers.group()) else numbers.group()


def _is_about_input(before: Resolved) -> bool:
    """Whether a request works on an input as a whole, so that a pronoun after it means the input: "summarise notes.txt"."""
    led = leading_verb(before.core)
    if led is None:
        return is_question(before.core)
    whole = re.match(rf"(?:the\s+)?(?:\w+\s+){{0,2}}{NAMED}", led[1])
    return bool(whole or _FEATURE.search(head_of(led[1])) or is_question(before.core))


def _definite(text: str, earlier: list[Resolved]) -> int | None:
    for match in re.finditer(
        r"\b(?:the|that|this|these|those|your)\s+((?:[\w-]+\s+){0,2}?[\w-]+)(?=$|[.,;?!]|\s+(?:and|to|into|as|with|by"
        r"|on|from|is|are|in\s+(?:a|an)\b))",
        text,
        _FLAGS,
    ):
        if _FEATURE.match(match[1]) or re.match(r"\s+(?:of|in|per|for|from)\b(?!\s+(?:a|an)\b)", text[match.end() :], _FLAGS):
            continue
        if match.group().lower().startswith("your"):
            return len(earlier) - 1
        noun = _stem(match[1].split()[-1])
        for at in range(len(earlier) - 1, -1, -1):
            if noun in _names_of(earlier[at]):
                return at
    return None


def _names_of(one: Resolved) -> set[str]:
    words = re.findall(r"[\w-]+", head_of(_strip_determiner(phrase_of(one.core))))
    return {_stem(word) for word in words if len(word) > 2}


def _stem(word: str) -> str:
    word = word.lower()
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _phrase(uses: tuple[int, ...], earlier: Sequence[Resolved]) -> str:
    if len(uses) != 1:
        return "the results"
    one = earlier[uses[0]]
    phrase = phrase_of(one.core)
    names = [char for char in dict.fromkeys(one.text) if re.match(INPUT, char)]
    if names and not re.search(NAMED, phrase) and len(names) == 1:
        phrase += f" {'at' if re.match(ADDRESS, names[0]) else 'in'} {names[0]}"
    return phrase if len(phrase) <= MAX_PHRASE_CHARS else "the earlier result"


def _strip_determiner(phrase: str) -> str:
    return re.sub(r"^(?:the|an?|its|their|(?:the\s+)?top\s+\d+|(?:the\s+)?\d+)\s+", "", phrase, flags=_FLAGS)


def _with_input(text: str, inputs: tuple[str, ...]) -> str:
    phrase = " and ".join(inputs[:4])
    if not phrase:
        return text
    if the_input := _THE_INPUT.search(text):
        return text if re.search(NAMED, text) else f"{text[: the_input.end()]} {phrase}{text[the_input.end() :]}"
    return text if re.search(INPUT, text) else _substituted(text, phrase)


def _substituted(text: str, phrase: str) -> str:
    if _RESULT.search(text):
        return _RESULT.sub(lambda _: phrase, text, count=1)
    if _POSSESSIVE.search(text):
        return _POSSESSIVE.sub(lambda match: f"the {match[1]} of {phrase}", text, count=1)
    if match := _pronoun(text):
        return f"{text[: match.start('word')]}{phrase}{text[match.end('word') :]}"
    return _EACH.sub(lambda _: f"each of {phrase}", text, count=1)


def _collective(text: str, uses: tuple[int, ...], earlier: Sequence[Resolved]) -> str:
    phrase = _phrase(uses, earlier) if len(uses) == 1 else "both results" if len(uses) == 2 else "all results"
    if len(uses) == 1 and re.search(r"\band\b", phrase, _FLAGS):  # one task brought forth all that is meant
        phrase = "the results"
    return _COLLECTIVE.sub(lambda match: f"{_preposition(match.group())}{phrase}", text, count=1)


def _preposition(text: str) -> str:
    match = re.match(r"(?:of|from|on|about|for|with|using)\s+", text, _FLAGS)
    return match.group() if match else ""


def _with_object(text: str, uses: tuple[int, ...], earlier: Sequence[Resolved]) -> str:
    phrase = _phrase(uses, earlier)
    if _pronoun(text) or _POSSESSIVE.search(text):
        return _substituted(text, phrase)
    if _TOPIC.search(text) or re.search(r"\b(?:what|which|who|how|why|when|where|whether)\b", text, _FLAGS):
        return text
    return f"{text} of {phrase}"
