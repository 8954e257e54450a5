"""The words a question about a table is made of, apart from the table's own names."""

from __future__ import annotations

import re

NUMBER = r"[€$£]?-?\d+(?:[.,]\d+)*(?:\s?(?:k|thousand|m|million)\b)?\s?%?"
_COMPARISONS = (
    (">=", r"greater than or equal to|at least|no(?:t)? less than|>=|a minimum of|or more than"),
    ("<=", r"less than or equal to|at most|no(?:t)? more than|up to|<=|a maximum of"),
    ("!=", r"is not|isn't|not equal to|does not equal|other than|!=|<>"),
    (">", r"(?:more|greater|larger|higher|bigger|older|longer|heavier) than|above|over|exceed(?:s|ing)?|>"),
    ("<", r"(?:less|lower|smaller|fewer|cheaper|younger|shorter|lighter) than|below|under|<"),
    ("=", r"equal to|equals|equal|exactly|==|=|is|are|of"),
)
BETWEEN = re.compile(rf"between\s+({NUMBER})\s+and\s+({NUMBER})", re.IGNORECASE)
COMPARISONS = [
    (sign, re.compile(rf"(?<!\w)(?:(?:is|are|was|were)\s+)?(?:{words})\s*({NUMBER})(?!\w)", re.IGNORECASE))
    for sign, words in _COMPARISONS
]
OR_MORE = re.compile(rf"(?<!\w)({NUMBER})\s+or\s+(more|less|fewer|above|below)", re.IGNORECASE)

_NUMERAL = r"\d+|one|two|three|four|five|six|seven|eight|nine|ten|twelve"
_HIGH = (
    r"highest|largest|biggest|greatest|most|best|top|longest|heaviest|tallest|oldest|maximal|strongest|hottest"
    r"|warmest|fastest|richest|busiest|dearest"
)
_LOW = (
    r"lowest|smallest|least|fewest|worst|bottom|cheapest|shortest|lightest|youngest|minimal|weakest|coldest"
    r"|coolest|slowest|poorest|quietest"
)
OPERATIONS: list[tuple[str, re.Pattern[str]]] = [
    (kind, re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE))
    for kind, words in (
        ("sort_desc", (
            r"(?:sorted |in )?descending(?: order)?|(?:largest|highest|biggest) first|from (?:high"
            r"|highest) to (?:low|lowest)"
        )),
        ("sort_asc", r"(?:sorted |in )?ascending(?: order)?|(?:smallest|lowest) first|from (?:low|lowest) to (?:high|highest)"),
        ("sort", r"(?:sort(?:ed)?|rank(?:ed|ing)?|ordered) by|rank"),
        ("mode", r"most (?:common|frequent|often|popular)|mode(?= of)"),
        ("count", (
            r"how many(?: different| distinct| unique)?|(?:total |overall )?number of(?: different| distinct"
            r"| unique)?|count(?:s|ing)?(?: of| the number of)?|how often"
        )),
        ("distinct", r"distinct|unique"),
        ("high_n", rf"(?:top|best|first)[ -](?P<n1>{_NUMERAL})|(?P<n2>{_NUMERAL}) (?:{_HIGH})(?:[ -]selling)?"),
        ("low_n", rf"(?:bottom|worst|last)[ -](?P<n1>{_NUMERAL})|(?P<n2>{_NUMERAL}) (?:{_LOW})(?:[ -]selling)?"),
        ("high", rf"(?:{_HIGH})(?:[ -]selling)?"),
        ("low", rf"(?:{_LOW})(?:[ -]selling)?"),
        ("quantile", r"(?P<q>\d{1,2})(?:th|st|nd|rd)? percentile(?: of)?"),
        ("share", r"shares?|percentages?|per ?cent|proportions?|fraction|what %"),
        ("mean", r"averages?|averaged|mean|avg|on average|typical"),
        ("median", r"median"),
        ("std", r"standard deviations?|std(?: ?dev)?|stddev|stdev"),
        ("var", r"variance|var"),
        ("range", r"range(?= of)|spread(?= of)"),
        ("min", r"minimum|min|earliest"),
        ("max", r"maximum|max|latest|newest|most recent"),
        ("sum", r"totals?|sums?|how much|altogether|overall|combined|add up|sum up"),
        ("correlation", r"correlat\w*|relationship|relation between"),
        ("growth", (
            r"growth|grew|grow|growing|changed?|increased?|decreased?|differences?|rise|rose|fell"
            r"|month[- ](?:over|on)[- ]month|year[- ](?:over|on)[- ]year"
        )),
        ("missing", r"missing|nulls?|blanks?|empty(?: cells| values)?|incomplete"),
        ("trend", r"trends?|over time|development|evolution|time series"),
        ("versus", r"compar(?:e|ed|ing|ison)|versus|vs"),
        ("describe", (
            r"describ\w*|summari[sz]e|summary(?: statistics)?|overview|profile|explore|statistics|stats"
            r"|analy[sz]e|analysis|what(?:'s| is| does).{0,20} (?:in|about|contain)(?= (?:this|the|that|it)\b)"
        )),
        ("rows", r"list|rows? (?:where|with|of)|records? (?:where|with|of)|filter|find"),
        ("grain:weekday", r"days? of (?:the )?week|weekdays?"),
        ("grain:day", r"daily|days?"),
        ("grain:week", r"weekly|weeks?"),
        ("grain:month", r"monthly|months?"),
        ("grain:quarter", r"quarterly|quarters?"),
        ("grain:year", r"yearly|annual(?:ly)?|years?"),
        ("grain:hour", r"hourly|hours?(?= of (?:the )?day)"),
        ("by", (
            r"grouped by|group by|broken down by|split (?:up )?by|per|by|for (?:each|every)|in (?:each|every)|each"
            r"|every|across|within each|according to"
        )),
        ("which", r"which|what|whose"),
        ("not", r"not in|not from|not|except(?: for)?|excluding|without|exclude|other than|outside(?: of)?|ignoring"),
        ("prep", r"in|for|from|where|with|of|at|on|only|having|when|made by|sold by|sold in|to|during"),
        ("and", r"and|or|as well as|plus|&|,"),
    )
]  # fmt: skip
STOP = set(
    """a an the this that these those it its is are was were be been has have had do does did will would can could me my our us we
    you your i they them their he she there here please tell show give calculate compute determine get find out what who whom how
    if so than then also too just very all any both each some much many by using use value number figure result based make made
    work state report return let know see want need like come came go went about as into also same shown given present answer
    between such being load read open up off each""".split()
)
GENERIC = set(
    """file data dataset table csv tsv row record line entry observation column field cell sheet list value number sample order
    sale transaction thing people person item point per whole entire full total attached input spreadsheet document chart bar pie
    plot graph histogram scatter diagram image png picture draw visualise visualize visualisation visualization chart report
    brief figure dollar euro eur usd percent unit time average result detail information information business company sold sell
    selling bought made coming come earned generated created happened month year day week quarter title html markdown pdf format
    color colour horizontal vertical question following page""".split()
)
INTENSIVE = set(
    """price rate age score rating temperature temp percent pct percentage ratio margin speed height weight width depth density
    humidity pressure grade level index share latitude longitude salary wage bmi gpa average avg mean discount duration""".split()
)
CHANGES_MEANING = set(
    """minus plus times divided multiplied ratio cumulative running moving rolling forecast predict prediction weighted above below
    over under after before since until unless regression slope squared""".split()
)
VERBS = set(
    """sell sold sells earn earns earned make made spend spent spends buy buys bought pay pays paid owe owes order ordered come came
    generate generated bring brought produce produced register registered record recorded receive received get got had live lived
    lives living work worked working""".split()
)
COUNTABLE = set("unit quantity qty piece volume visitor passenger guest view click download goal point case seat hour".split())


def parse_number(text: str) -> float:
    """Read `1,000`, `1.5`, `10k`, `€2 million`, `15 %`."""
    bare = text.strip().lower().lstrip("€$£").rstrip("% ")
    factor = 1.0
    for suffix, times in (("thousand", 1e3), ("million", 1e6), ("k", 1e3), ("m", 1e6)):
        if bare.endswith(suffix):
            bare, factor = bare[: -len(suffix)].strip(), times
            break
    if re.fullmatch(r"-?\d{1,3}(,\d{3})+(\.\d+)?", bare):
        bare = bare.replace(",", "")
    return float(bare.replace(",", ".") if bare.count(",") == 1 and "." not in bare else bare.replace(",", "")) * factor
