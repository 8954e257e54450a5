"""The CSV analyst: exact figures in one form, and a reason for everything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from csv_analyst import agent
from ioa.errors import InvalidInputError
from ioa.testing.recording_context import upstream
from tests.unit.examples.agent_run import Run

SHOPS = "shop,weight,sold by\nA,1.5,x\nB,,y\nA,2.25,y\n,4,x\n"


@pytest.fixture
def shops(tmp_path: Path) -> Path:
    """A table with an empty cell of each kind."""
    path = tmp_path / "my shops.csv"
    path.write_text(SHOPS)
    return path


def lines(text: str) -> dict[str, str]:
    """Return the figures of an answer by label."""
    return dict(line.removeprefix("- ").rsplit(": ", 1) for line in text.splitlines()[1:])


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("sum of weight by shop", {"A": "3.75", "(empty)": "4"}),
        ("SUM of Weight by SHOP in my shops.csv", {"A": "3.75", "(empty)": "4"}),
        ("mean of weight by sold by", {"x": "2.75", "y": "2.25"}),
        ("min of weight by sold by where shop is A", {"x": "1.5", "y": "2.25"}),
        ("max of weight by shop where sold by is x", {"A": "1.5", "(empty)": "4"}),
        ("count of rows by shop", {"A": "2", "B": "1", "(empty)": "1"}),
    ],
)
def test_question_is_answered_with_exact_figures(run: Run, shops: Path, question: str, expected: dict[str, str]) -> None:
    """Column names can contain blanks and words of the form."""
    assert lines(run(agent, question, [shops]).text) == expected


def test_answer_states_its_rows_and_is_attached_as_a_table(run: Run, shops: Path) -> None:
    """Cells without a number are counted."""
    done = run(agent, "sum of weight by shop", [shops])
    assert done.text.startswith("sum of weight by shop in my shops.csv (4 of 4 rows; left out: 1 with an empty cell):\n")
    assert done.files == {"sum-of-weight-by-shop.csv": b"shop,sum of weight\n(empty),4\nA,3.75\n"}


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("sum of price by shop", "'price' is not a column of my shops.csv. Its columns: shop, weight, sold by."),
        ("sum of weight by shop and sold by", "'shop and sold by' is not a column"),
        ("sum of shop by sold by", "'A' in the column shop of my shops.csv is not a number"),
        ("sum of weight by shop where shop is C", "No row of my shops.csv has 'C' as its shop. Some values: , A, B."),
        ("sum of weight by shop where shop is A and sold by is x", "No row"),
        ("sum of weight by shop where shop is B", "no number in these rows"),
        ("sum of weight by shop in sales.csv", "sales.csv has 0 .csv or .tsv files"),
        ("sum of weight by shop in #1", "names 1 results and receives 0"),
    ],
)
def test_question_that_cannot_be_answered_gets_the_reason(run: Run, shops: Path, question: str, said: str) -> None:
    """With the names that would work."""
    with pytest.raises(InvalidInputError) as caught:
        run(agent, question, [shops])
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "table",
    [
        "a,b\n", "", "a,a\n1,2\n", "a,\n1,2\n", "a,A\n1,2\n", "a,b\n1\n", "a,b\n1,2,3\n", 'a,b\n"1,2\n',
        "a;b\nx;1.234\n", "a;b\nx;1,234\n", "a,b\nx,12 kg\n", "a,b\nx,$5\n", "a,b\nx,1e3\n", "a,b\nx,n/a\n",
    ],
)  # fmt: skip
def test_table_that_can_be_read_in_two_ways_is_rejected(run: Run, tmp_path: Path, table: str) -> None:
    """Also numbers with a unit, or with a separator of thousands."""
    path = tmp_path / "t.csv"
    path.write_text(table)
    with pytest.raises(InvalidInputError):
        run(agent, "sum of b by a", [path])


def test_file_is_named_if_there_are_several(run: Run, shops: Path, tmp_path: Path) -> None:
    """Or it is the file of an earlier result."""
    other = tmp_path / "other.csv"
    other.write_text("shop,weight\nZ,9\n")
    with pytest.raises(InvalidInputError, match=r"2 \.csv or \.tsv files"):
        run(agent, "sum of weight by shop", [shops, other])
    assert lines(run(agent, "sum of weight by shop in other.csv", [shops, other]).text) == {"Z": "9"}
    assert lines(run(agent, "sum of weight by shop in #3", [shops], [upstream("run x.py", "", other)]).text) == {"Z": "9"}
