"""Words as sparse vectors."""

from __future__ import annotations

from ioa_discovery.terms import document_terms, query_terms, terms


def test_forms_of_a_word_are_one_term() -> None:
    """Case and inflection do not matter, and stop words are not counted."""
    assert terms("The Charts are charting") == terms("chart CHART")


def test_a_term_is_the_same_on_every_machine() -> None:
    """A term's number is fixed, since it lies in stores that other machines read."""
    assert terms("chart") == [3_767_702_514]


def test_script_without_spaces_counts_by_the_character() -> None:
    """A Chinese sentence meets a keyword inside it."""
    assert set(terms("图表")) <= set(terms("请画一张图表"))


def test_a_need_counts_each_word_once() -> None:
    """Repeating a word in a need does not make it more important."""
    assert query_terms("chart chart table") == query_terms("chart table")


def test_repetition_in_a_card_saturates() -> None:
    """Twice the word weighs more than once, but less than double."""
    [once], [twice] = document_terms("chart").values, document_terms("chart chart").values
    assert once < twice < 2 * once


def test_a_long_card_counts_less_per_word() -> None:
    """A word among many weighs less than the same word alone."""
    alone = document_terms("chart").values[0]
    among = document_terms("chart " + " ".join(f"word{number}" for number in range(200))).values[0]
    assert among < alone
