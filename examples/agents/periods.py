"""Stretches of time in a sentence: `in March 2024`, `between 2024-01-01 and 2024-02-15`, `since Q2`, `2023`."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pandas as pd

from ioa.errors import InvalidInputError

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": 0}
_FORMS = (
    r"(?P<iso{n}>\d{{4}}-\d\d(?:-\d\d)?)"
    r"|(?:(?P<day{n}>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<month{n}>" + _MONTH + r")\b\.?"
    r"(?:\s+(?P<dayb{n}>\d{{1,2}})(?:st|nd|rd|th)?(?!\d))?(?:,?\s+(?:of\s+)?(?P<y{n}>(?:19|20)\d\d))?"
    r"|(?P<yq{n}>(?:19|20)\d\d)[\s-]?(?P<part{n}>[qh][1-4])"
    r"|(?P<partb{n}>q[1-4]|h[12])\b(?:\s*(?:of\s+|/)?(?P<yb{n}>(?:19|20)\d\d))?"
    r"|(?P<ordinal{n}>first|second|third|fourth|last)\s+(?P<unit{n}>quarter|half)(?:\s+(?:of\s+)?(?P<yc{n}>(?:19|20)\d\d))?"
    r"|(?P<year{n}>(?:19|20)\d\d)(?![\d.,-]\d|\d)"
)
_P1 = "(?:" + _FORMS.format(n=1) + ")"
_P2 = "(?:" + _FORMS.format(n=2) + ")"
_P3 = "(?:" + _FORMS.format(n=3) + ")"
_EXPRESSION = re.compile(
    rf"(?<![\w.,])(?:(?P<both>between|from)\s+(?:the\s+)?{_P1}\s*(?:and|to|until|till|through|-|–)\s*(?:the\s+)?{_P2}(?!\w)"
    rf"|(?:(?P<prefix>since|after|before|until|till|through|in|during|on|for|of|within|throughout|starting|from|to|than|above"
    r"|over|below|under|least|most|exceeding|exceeds|>|<|>=|<=|between)\s+)?(?:the\s+)?(?:years?\s+|month\s+of\s+)?"
    rf"{_P3}(?!\w))",
    re.IGNORECASE,
)
_NUMERIC_PREFIXES = {"than", "above", "over", "below", "under", "least", "most", "exceeding", "exceeds", ">", "<", ">=", "<="}
_MONTHS_OF = {"month": 1, "quarter": 3, "half": 6, "year": 12}


@dataclass(frozen=True)
class Period:
    """A stretch of time: `start` to `end` (exclusive), or the same months of every year when no year is known."""

    label: str
    grain: str
    start: pd.Timestamp | None = None
    end: pd.Timestamp | None = None
    months: tuple[int, ...] = ()
    parts: tuple[Period, ...] = ()

    @property
    def phrase(self) -> str:
        """The label as it follows a column's name: `in 2024-03`, `since 2024-03`."""
        return self.label if not self.months and None in (self.start, self.end) else f"in {self.label}"

    def mask(self, dates: pd.Series) -> pd.Series:
        """Which of the dates lie in the period."""
        mask = dates.notna()
        if self.months:
            mask &= dates.dt.month.isin(self.months)
        if self.start is not None:
            mask &= dates >= self.start
        if self.end is not None:
            mask &= dates < self.end
        return mask


def find_periods(text: str, years: list[int], numeric_before: re.Pattern[str]) -> list[tuple[int, int, Period]]:
    """Find the periods in a sentence with their place in it.

    Args:
        years: The years of the data; a month without a year means that month of the only year, or of every year.
        numeric_before: Matches a text that ends in a numeric column's name, after which `2000` is a number.
    """
    matches = (match for match in _EXPRESSION.finditer(text) if not _is_number_or_verb(match, text, numeric_before))
    return [(match.start(), match.end(), _period(match, years)) for match in matches]


def _is_number_or_verb(match: re.Match[str], text: str, numeric_before: re.Pattern[str]) -> bool:
    prefix = (match["prefix"] or "").lower()
    if match["both"]:
        return bool(match["year1"] and match["year2"] and numeric_before.search(text[: match.start()]))
    if match["year3"] and (
        prefix in (*_NUMERIC_PREFIXES, "between") or (not prefix and numeric_before.search(text[: match.start()]))
    ):
        return True
    return match[0] == "may"


def _period(match: re.Match[str], years: list[int]) -> Period:
    if match["both"]:
        default = _year_of(match, 1) or _year_of(match, 2) or (years[0] if len(years) == 1 else None)
        first, last = _moment(match, 1, default), _moment(match, 2, default)
        if first.months or last.months:
            raise InvalidInputError(f"The data covers several years ({years[0]} to {years[-1]}).", hint="Name the year, too.")
        return Period(f"{first.label} to {last.label}", first.grain, first.start, last.end, parts=(first, last))
    one = _moment(match, 3, years[0] if len(years) == 1 else None)
    prefix = (match["prefix"] or "").lower()
    if one.start is None or prefix not in ("since", "after", "before", "until", "till", "through", "starting", "from"):
        return one
    label = f"{prefix} {one.label}"
    match prefix:
        case "since" | "starting" | "from":
            return Period(label, one.grain, start=one.start)
        case "after":
            return Period(label, one.grain, start=one.end)
        case "before":
            return Period(label, one.grain, end=one.start)
    return Period(label, one.grain, end=one.end)


def _year_of(match: re.Match[str], n: int) -> int | None:
    for group in ("y", "yq", "yb", "yc", "year"):
        if match[f"{group}{n}"]:
            return int(match[f"{group}{n}"])
    return None


def _moment(match: re.Match[str], n: int, default_year: int | None) -> Period:
    if iso := match[f"iso{n}"]:
        return _span(_timestamp(iso), "day" if len(iso) == 10 else "month")
    year = _year_of(match, n) or default_year
    if name := match[f"month{n}"]:
        return _month(year, _MONTHS.index(name[:3].lower()) + 1, match[f"day{n}"] or match[f"dayb{n}"])
    part = match[f"part{n}"] or match[f"partb{n}"]
    if part:
        return _part(year, "quarter" if part[0] in "qQ" else "half", int(part[1]))
    if match[f"unit{n}"]:
        unit = match[f"unit{n}"].lower()
        return _part(year, unit, _ORDINALS[match[f"ordinal{n}"].lower()] or 12 // _MONTHS_OF[unit])
    return _span(pd.Timestamp(int(match[f"year{n}"]), 1, 1), "year")


def _month(year: int | None, month: int, day: str | None) -> Period:
    if year is None:
        if day:
            raise InvalidInputError(f"{day} {_MONTHS[month - 1].title()} of which year?", hint="Name the year, too.")
        return Period(f"{_MONTHS[month - 1].title()} of every year", "month", months=(month,))
    return _span(_timestamp(f"{year}-{month:02}-{int(day or 1):02}"), "day" if day else "month")


def _part(year: int | None, grain: str, number: int) -> Period:
    length = _MONTHS_OF[grain]
    first = (number - 1) * length + 1
    if year is None:
        return Period(f"{grain} {number} of every year", grain, months=tuple(range(first, first + length)))
    return _span(_timestamp(f"{year}-{first:02}-01"), grain)


def _span(start: pd.Timestamp, grain: str) -> Period:
    step = pd.DateOffset(days=1) if grain == "day" else pd.DateOffset(months=_MONTHS_OF[grain])
    label = {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}.get(grain)
    if label is None:
        number = (start.month - 1) // _MONTHS_OF[grain] + 1
        return Period(f"{start.year}-{grain[0].upper()}{number}", grain, start, start + step)
    return Period(start.strftime(label), grain, start, start + step)


def _timestamp(text: str) -> pd.Timestamp:
    try:
        return pd.Timestamp(text)
    except ValueError:
        raise InvalidInputError(f"{text} is not a date.", hint="Write dates as 2024-03-31.") from None
