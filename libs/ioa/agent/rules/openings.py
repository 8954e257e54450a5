"""How a request begins: what is said before it out of politeness or for the order of things, and whether it is a request at all."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ioa.agent.rules.lexicon import AUXILIARIES, NOUN_VERBS, PLAIN_VERBS, PRODUCTS, QUESTION_WORDS, alternatives, words
from ioa.agent.rules.shielding import SHIELDED

_VERB = alternatives(PLAIN_VERBS | NOUN_VERBS)
_FLAGS = re.IGNORECASE
_OBJECT = (
    r"(?:it|that|this|these|those|them|the\s+(?:\w+\s+)?(?:results?|above|findings|numbers|figures|totals?|values"
    r"|output|answers?|data))"
)
_NOUN = r"(?:\s+(?:numbers?|figures?|data|results?|findings?|totals?|values?|information|facts?|answers?|texts?|tables?|lists?))?"


@dataclass(frozen=True)
class Opening:
    """What stood in front of a request.

    Attributes:
        sequenced: It comes after another one: "then", "after that".
        refers: It builds on what came before: "from that", "based on these".
        everything: It builds on all of it: "based on both".
        wished: It was asked for: "could you", "I need".
    """

    sequenced: bool = False
    refers: bool = False
    everything: bool = False
    wished: bool = False


_POLITE = re.compile(
    r"(?:(?:please|kindly|pls|thanks|ok|okay|so|well|now|just|perhaps|maybe|simply)\b(?!\s+(?:of|that|far|many|much))[,!:]?"
    r"|(?:hi|hello|hey|greetings|good\s+(?:morning|afternoon|evening|day))\b(?:\s+(?:there|all|team|everyone|everybody))?\s*[,!.]?"
    r"|dear\s+\w+\s*,)\s*",
    _FLAGS,
)
_WISH = re.compile(
    r"(?:(?:can|could|would|will)\s+(?:you|someone|anyone|we)(?:\s+(?:please|kindly|also|then|maybe|perhaps|just))*"
    r"(?:\s+(?:be\s+so\s+kind\s+as\s+to|be\s+able\s+to|mind))?"
    r"|(?:i|we)(?:\s*['’]d|\s+would)?(?:\s+(?:would|do|also|really|just|now|still|then|finally))*\s+"
    r"(?:(?:need|want|like|wish|love|have|am\s+asking|are\s+asking|expect|ask)(?:\s+(?:you|someone))?\s+to(?:\s+(?:know"
    r"|find\s+out|see|have|get))?"
    r"|need\s+(?:help|assistance)\s+(?:with|in)|need|want|would\s+like|like|wonder|am\s+wondering|am\s+looking\s+for|require)"
    r"|(?:i|we)\s+was\s+hoping\s+you\s+could"
    r"|(?:help|assist)\s+(?:me|us)(?:\s+(?:to|with|in|by))?|let\s*['’]?s|go\s+ahead\s+and|do\s+me\s+a\s+favou?r\s+and"
    r"|(?:your|the|my)\s+(?:task|job|goal|aim|mission|request|question)\s+is(?:\s+to|:)?|you\s+(?:are"
    r"|have\s+been)\s+(?:tasked|asked)\s+(?:to|with)"
    r"|it\s+would\s+be\s+(?:great|nice|good|helpful|lovely)\s+(?:to|if\s+you\s+could)(?:\s+(?:have|get|see|know))?"
    r"|is\s+it\s+possible\s+to|would\s+it\s+be\s+possible\s+to|you\s+(?:should|need\s+to|have\s+to|must))\b[,:]?\s+(?=\S)",
    _FLAGS,
)
_ORDER = re.compile(
    r"(?:(?:(?:and|but)\s+)?(?:then|afterwards?|after\s+(?:that|this|which)|subsequently|finally|lastly|eventually|thereafter"
    rf"|next(?=\s*,|\s*:|\s+{_VERB}\b)|last(?=\s*,)|in\s+the\s+end|at\s+the\s+end|to\s+(?:finish|conclude|end|wrap\s+up)(?=\s*,)"
    r"|(?:once|when|after)\s+(?:you\s+(?:are|have)|you['’](?:re|ve)|that\s+is|that['’]s|this\s+is|it\s+is|it['’]s"
    r"|that\s+has\s+been)?\s*"
    r"(?:done|finished|ready|complete|completed|(?:got|done|found|finished)\s+(?:it|that|this|them|these|so))"
    r"|with\s+that\s+done|as\s+(?:a|the)\s+(?:last|final|next)\s+step))\b[,:]?\s*",
    _FLAGS,
)
_NEUTRAL = re.compile(
    r"(?:and|but|plus|as\s+well\s+as|along\s+with|together\s+with|also|additionally|in\s+addition(?:\s+to\s+(?:that"
    r"|this))?|moreover|furthermore"
    r"|besides|likewise|meanwhile|separately|independently|followed\s+by|at\s+the\s+same\s+time|on\s+top\s+of\s+that"
    r"|one\s+more\s+thing|otherwise"
    r"|first\s+of\s+all|firstly|secondly|thirdly|fourthly|to\s+(?:start|begin)(?:\s+with)?(?=\s*,)|as\s+a\s+(?:first"
    r"|second|third)\s+step"
    rf"|(?:first|second|third|fourth|fifth)(?=\s*[,:]|\s+{_VERB}\b)|step\s+\d+|task\s+\d+|both(?=\s+{_VERB}\b))\b\s*[,:.)]?\s*",
    _FLAGS,
)
_REFERENCE = re.compile(
    rf"(?:(?:from|with|using|given|out\s+of|for|based\s+(?:up)?on|building\s+on|drawing\s+on|on\s+the\s+basis\s+of"
    rf"|starting\s+from|by\s+using)"
    rf"\s+(?P<all>both(?:\s+of)?\s*|all(?:\s+of)?\s+)?(?:{_OBJECT}{_NOUN}|(?<=both\s)|(?<=both))\s*(?:,\s*|\s+(?={_VERB}\b))"
    rf"|use\s+(?P<every>both(?:\s+of)?\s*|all(?:\s+of)?\s+)?{_OBJECT}{_NOUN}\s+(?:in\s+order\s+)?to\s+)",
    _FLAGS,
)


def strip_opening(text: str) -> tuple[Opening, str]:
    """Separate what stands in front of a request from the request itself, which is never empty if `text` is not."""
    opening, rest = Opening(), text.strip()
    while True:
        if match := _ORDER.match(rest):
            opening = replace(opening, sequenced=True)
        elif match := _REFERENCE.match(rest):
            every = bool(match["all"] or match["every"])
            opening = replace(opening, refers=True, everything=opening.everything or every)
        elif match := _WISH.match(rest):
            opening = replace(opening, wished=True)
        elif not (match := _NEUTRAL.match(rest) or _POLITE.match(rest)):
            return opening, _without_gerund(rest) if opening.wished else rest
        if not rest[match.end() :].strip(" .,;:!?"):
            return opening, rest
        rest = rest[match.end() :].strip()


def is_mere_opening(text: str) -> bool:
    """Whether nothing is said but what stands in front of a request: "After that"."""
    text = text.strip(" ,;.:!")
    return any(strip_opening(f"{text}{glue}x")[1] == "x" for glue in (" ", ", "))


_FRONTED = re.compile(
    rf"(?:from|in|using|with|for|on)\s+(?:the\s+)?{SHIELDED}\s+(?={_VERB}\b)|"
    r"(?:for|in|from|using|given|with|if|when|as|because|since|to|on|at|by|while|considering|assuming|within|across"
    r"|looking|regarding|concerning|"
    r"about|under|during|like|unlike|unless|based|inside|starting|among)\b[^,]*(?:,\s*(?!\S+\s*$)|$)",
    _FLAGS,
)


def without_front(text: str) -> str:
    """Leave out what a request says first of where or how: "using sales.csv, compute …". Empty if there is nothing else yet."""
    while leading_verb(text) is None and (match := _FRONTED.match(text)):
        text = text[match.end() :]
    return text


_FIRST = re.compile(rf"({_VERB})\b(?!['’-]|\s*:=)\s*(.*)", _FLAGS | re.DOTALL)
_TAKES = re.compile(
    rf"(?:an?|the|it|its|them|their|they|each|every|all|both|this|that|these|those|my|our|your|some|any|how|what|which"
    rf"|who|whether|why|"
    rf"me|us|top|on|search|another|one|two|three|four|five|\d+|{SHIELDED})(?![\w-])",
    _FLAGS,
)
_NO_OBJECT = re.compile(
    r"(?:$|[.,;:?!/]|(?:of|for|in|per|by|and|or|to|is|are|was|were|at|from|with|as|than|over|between|versus|vs|if|on)\b)", _FLAGS
)


def leading_verb(text: str) -> tuple[str, str] | None:
    """The verb a request begins with, in lower case with `_` for a space, and what follows it; None if it begins otherwise."""
    match = _FIRST.match(text)
    if match is None:
        return None
    verb, rest = re.sub(r"\s+", "_", match[1].lower()), match[2].strip()
    if verb in NOUN_VERBS and not _TAKES.match(rest) and (_NO_OBJECT.match(rest) or verb in _ADJECTIVAL):
        return None
    return verb, rest


_NO_VERB = words(
    """
    about above across after again against all almost along already also although am among an and any anything are around as at
    away back
    be because been before behind being below beneath beside between beyond both but by can could despite do does down during
    each either
    else enough especially etc even ever every everything except few for from had half has have he her here hers him his how
    however i if
    in inside instead into is it just last less like many may me might mine more most much must my near neither never next no
    none nor not
    of off often on once one only onto or other our out outside over own per perhaps please quite rather same several shall she
    should
    since so some soon still such than that the their them then there these they this those though through throughout thus to today
    together too toward twice under unless until up upon us versus via was we were what whatever when where whether which while
    who whom
    whose why will with within without worth would yes yet you your given than whereas
    """
)
_UNKNOWN_VERB = re.compile(
    r"([a-z]{2,})(?<!s)(?<!ed)(?<!ing)(?<!ly)\s+(?:the|an?|my|our|me|us|it|them|this|these|your|his|her|their)\b", _FLAGS
)


def seems_imperative(text: str) -> bool:
    """Whether an unknown word at the beginning is probably a verb, since an article or pronoun follows: "paint the fence"."""
    match = _UNKNOWN_VERB.match(text)
    return match is not None and match[1].lower() not in _NO_VERB


_ADJECTIVAL = words(
    """
    book change code design document group label model name note order plan process profile project quote report
    sample state sum table test total trend view
    """
)

_QUESTION = re.compile(rf"(?:{alternatives(QUESTION_WORDS)}\b|how\b)", _FLAGS)
_INVERSION = re.compile(
    rf"{alternatives(AUXILIARIES)}\s+(?:the|a|an|it|there|this|that|these|those|they|we|i|he|she|any|all|my|our|each|{SHIELDED})",
    _FLAGS,
)


def is_question(text: str) -> bool:
    """Whether a request begins as a question does."""
    return bool(_QUESTION.match(text) or _INVERSION.match(text))


PRODUCT = re.compile(
    rf"(?P<article>(?:an?|one|another|its|their|some)\s+)?(?:(?!of\b|in\b|the\b|and\b|per\b|for\b|to\b|with\b|on\b"
    rf"|by\b)[\w-]+\s+){{0,4}}?"
    rf"(?P<noun>{alternatives(PRODUCTS)})s?\b"
    r"(?=\s*(?:$|[.,;?!]|(?:of|about|from|with|based|on|for|in|showing|comparing|and|that|as|to|by|per|over|listing"
    r"|which|using)\b))",
    _FLAGS,
)
"""A thing to be handed over: "a short report", "bar chart of it"."""

_STATEMENT = re.compile(
    r"(?:(?:so\s+)?here(?:\s+(?:is|are)|['’]s)|there\s+(?:is|are|was|were|will)|attached|enclosed|given\s+(?:is|are)"
    r"|you\s*(?:['’]re|are|have|will|can|may|do|don)"
    r"|(?:i|we|he|she|they|it|this|that|these|those)\s*(?:['’](?:m|re|ve|ll|s|d)\b|(?:\w+ly\s+)?(?:am|is|are|was|were"
    r"|have|has|had|do|does|did|"
    r"will|can|may|must|should|would|plan|think|work|run|own|use|keep|store|hold|contain|contains|holds|lists|shows"
    r"|live|love|know|believe|hope|"
    r"need|needs|want|got|wrote|made|collected|recorded|measured|exported|sell|sold|bought|just|recently|also|only|don"
    r"|won|isn|aren)\b)"
    r"|given\s*:|(?:my|our|your|the|an?|their|his|her|its|this|these|those|that|each|every|all|both|some|any"
    r"|no)\s+(?:[^\s,;:]+\s+){1,8}?"
    r"(?:is|are|was|were|has|have|had|should|must|will|can|may|might|contains?|lists|holds|shows|includes|needs|comes?"
    r"|lies|does|do|moves|takes|sells|makes|offers|produces|provides|uses|runs|likes|plans|works|"
    r"says|wants|describes|records)\b"
    rf"|{SHIELDED}\s+(?:is|are|was|has|contains|lists|holds|shows|comes|lies|records|describes)\b)",
    _FLAGS,
)


def is_statement(text: str) -> bool:
    """Whether a sentence tells something instead of asking for something."""
    return leading_verb(text) is None and not is_question(text) and not text.rstrip().endswith("?") and bool(_STATEMENT.match(text))


_GERUND = re.compile(r"(\w+ing)\b(.*)", re.DOTALL)


def _gerunds() -> dict[str, str]:
    forms: dict[str, str] = {}
    for verb in sorted(PLAIN_VERBS | NOUN_VERBS):
        if "_" in verb:
            continue
        stem = verb[:-1] if verb.endswith("e") and not verb.endswith("ee") else verb
        forms[stem + "ing"] = verb
        forms[stem + stem[-1] + "ing"] = verb
    return forms


_GERUNDS = _gerunds()


def base_form(text: str) -> str | None:
    """Turn "counting the words" into "count the words"; None if it begins with no known verb in that form."""
    match = _GERUND.match(text)
    verb = _GERUNDS.get(match[1].lower()) if match else None
    return verb + match[2] if verb and match else None


def _without_gerund(text: str) -> str:
    return base_form(text) or text
