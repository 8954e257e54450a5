"""What a text says, apart from how it says it."""

from __future__ import annotations

import pytest

from ioa.group.stems import stem_of
from ioa.group.wording import wording_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Please collect the data.", "As I said, let us gather the data."),
        ("Bob calculates the totals", "The total will be computed by Bob"),
        ("1,000 rows", "1000 rows"),
        ("two of them", "2 of them"),
        ("1. Draw the chart\n2. Send it", "- Draw the chart\n- Send it"),
        ("We analyse the prices.", "An analysis of the price"),
        ("für den Raum", "Raum"),
        ("We were not able to compile it.", "We could not compile it."),
        ("The parser is untested.", "The parser is not tested."),
        ("To summarise, the parser fails.", "The parser fails."),
        ("If I understand correctly, the parser fails.", "The parser fails."),
        ("The parser [… 212 characters left out …] fails.", "The parser fails."),
    ],
)
def test_another_wording_says_the_same(one: str, other: str) -> None:
    """Inflection, near synonyms, courtesy, order and function words leave the features as they are."""
    assert set(wording_of(one).features) == set(wording_of(other).features)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Use Postgres.", "Do not use Postgres."),
        ("It takes 3 days.", "It takes 4 days."),
        ("Open a.csv", "Open b.csv"),
        ("the mean price", "the median price"),
        ("会議は火曜日です", "会議は水曜日です"),
    ],
)
def test_another_matter_says_something_else(one: str, other: str) -> None:
    """A negation, a number, a file or a word of another meaning makes another wording."""
    first, second = wording_of(one), wording_of(other)
    assert (set(first.features), first.negated) != (set(second.features), second.negated)


def test_what_is_quoted_counts_only_if_nothing_else_is_said() -> None:
    """A quote with a remark says the remark; a quote alone says what it quotes."""
    remark = "That breaks whenever the list is empty."
    quote = '"The parser reads the whole file into memory"'
    assert wording_of(f"{quote} {remark}") == wording_of(remark)
    assert wording_of(quote).features == wording_of(quote.strip('"')).features


def test_a_general_word_in_capitals_is_no_name() -> None:
    """Headings and other languages aside, only what no table knows names something."""
    assert wording_of("We start with the Method, in Paris.").names == wording_of("We start in Paris.").names != frozenset()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "…",
        "Great, thank you!",
        "I agree, that sounds good.",
        "Of course, no problem.",
        "Thank you for the quick reply!",
        "Thanks a lot, Bob!",
        "Thank you, csv-reader, for the excellent summary.",
        "Good work, everyone!",
        "I fully agree with Bob.",
        "No further comments from my side.",
        "Nothing to add.",
        "Happy to help!",
        "Okay, I will wait for your results.",
    ],
)
def test_an_acknowledgement_says_nothing(text: str) -> None:
    """Courtesy has no features."""
    assert wording_of(text).features == ()


@pytest.mark.parametrize(
    "text",
    [
        "Thanks, I draw the chart.",
        "No further tests are needed.",
        "The folder holds nothing.",
        "I agree with Bob that we need a map.",
        "Good news from the mill: the grain is dry.",
        "I will wait for the train in Bern.",
    ],
)
def test_who_says_more_than_thanks_says_something(text: str) -> None:
    """A phrase that acknowledges takes nothing away from what stands beside it."""
    assert wording_of(text).features != ()


@pytest.mark.parametrize(
    "words",
    ["assign assigns assigned assigning assignment", "collect collects collection", "gather gathering gathered", "box boxes"],
)
def test_inflections_have_one_stem(words: str) -> None:
    """The forms of a word are one word."""
    assert len({stem_of(word) for word in words.split()}) == 1


@pytest.mark.parametrize("unit", [".", "\n", "“", "a", "a_", "has ", "'", "1.", '" ', "as a ", " \t", "> x\n", "漢", "don't "])
def test_no_text_takes_long(unit: str) -> None:
    """However long and odd a text is, it is read once from front to back: this test would not end in time otherwise."""
    assert wording_of(unit * 200_000).features == wording_of(unit * 200_000).features


def test_the_end_of_a_long_text_counts() -> None:
    """Two long texts that differ in the last character only say different things."""
    text = "word " * 20_000
    assert wording_of(text + "a").exact != wording_of(text + "b").exact
