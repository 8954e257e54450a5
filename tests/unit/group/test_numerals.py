"""Numbers: each way to write one gives the same features, and what only looks like a number is left alone."""

from __future__ import annotations

import pytest

from ioa.group.numerals import in_digits, parts_of
from ioa.group.wording import wording_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("8.4k steps", "8,400 steps"),
        ("3M rows", "three million rows"),
        ("1.5 million rows", "1,500,000 rows"),
        ("chunks of five-thousand rows", "chunks of 5000 rows"),
        ("two hundred and fifty-three rows", "253 rows"),
        ("a hundred and twenty people", "120 people"),
        ("twelve hundred rows", "1200 rows"),
        ("two dozen eggs", "24 eggs"),
        ("twenty two pages", "22 pages"),
        ("the twentieth of May", "the 20th of May"),
        ("the twenty-first of May", "21st of May"),
        ("a couple of pilots", "two pilots"),
        ("two times a year", "twice a year"),
        ("a four-minute window", "a window of 4 minutes"),
        ("a 4-minute window", "a window of four minutes"),
        ("5-7 days", "five to seven days"),
        ("2026-03-05", "5 March 2026"),
        ("Q1 sales", "sales of the first quarter"),
        ("Q3 sales", "sales of the third quarter"),
        ("v2 of the API", "version 2 of the API"),
        ("half of the applicants", "50 % of the applicants"),
        ("half a degree", "0.5 degrees"),
        ("every half hour", "every 30 minutes"),
        ("an hour and a half", "90 minutes"),
        ("two and a half hours", "2.5 hours"),
        ("9km", "9 kilometres"),
        ("200ms", "200 milliseconds"),
        ("$400", "400 dollars"),
        ("at 14:00", "at 14"),
    ],
)
def test_a_number_has_one_feature(one: str, other: str) -> None:
    """However it is written, it is the same exact feature, beside the same words."""
    first, second = wording_of(one), wording_of(other)
    assert (set(first.features), set(first.exact)) == (set(second.features), set(second.exact))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("fourteen thousand", "fifteen thousand"),
        ("2.4k", "2,500"),
        ("3.10", "3.1"),
        ("t3-1", "t3-2"),
        ("9 km", "9 miles"),
        ("half of them", "half an hour"),
        ("the third", "the thirteenth"),
    ],
)
def test_another_number_has_another_feature(one: str, other: str) -> None:
    """Numbers, versions, identifiers and units are told apart."""
    assert set(wording_of(one).features) != set(wording_of(other).features)


@pytest.mark.parametrize("text", ["ten or twenty of them", "two three-page letters", "twenty thirty", "thousands came", "half"])
def test_what_is_no_one_number_stays_as_it_is(text: str) -> None:
    """Numbers side by side are several."""
    assert in_digits(text) == text


@pytest.mark.parametrize("chunk", ["t3-1", "sales2.csv", "a_1", "x86", "utf-8", "1.2.3", "10-2"])
def test_an_identifier_is_read_whole(chunk: str) -> None:
    """A digit does not make a number of what holds it."""
    assert parts_of(chunk) == ((chunk,), ())
