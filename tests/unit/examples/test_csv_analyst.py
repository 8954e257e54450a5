"""The CSV analyst: its language means what pandas says, and what lies outside of it is refused by name."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import SupportsFloat

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csv_analyst import agent
from ioa.errors import InvalidInputError
from questions import Question, Reader
from tables import Table, read_table
from tests.unit.examples.agent_run import Run
from tests.unit.examples.conftest import DATA


def figures(text: str) -> dict[str, float]:
    """Read the `- label: number` lines of an answer."""
    return {label: float(value) for label, value in re.findall(r"^- (.+): (-?[\d.]+)$", text, re.MULTILINE)}


def figure(text: str) -> float:
    """Read the number of an answer without groups; its reading stands in brackets behind it."""
    found = re.search(r"[:≈] (-?[\d.]+) \(\d+ of \d+ rows", text)
    assert found, text
    return float(found[1])


def told(run: Run, question: str, path: Path) -> str:
    """Return what a question is answered by, or why it is refused and what is said instead."""
    try:
        return run(agent, question, [path]).text
    except InvalidInputError as error:
        return f"{error.message} {error.hint}"


def told_of(run: Run, content: str, question: str, folder: Path) -> str:
    """Return what is told of a question about the file t.csv with this content."""
    path = folder / "t.csv"
    path.write_text(content, encoding="utf-8")
    return told(run, question, path)


def understand(question: str, table: Table) -> Question:
    """Read a question."""
    return Reader(question, table).question()


Truth = Callable[[pd.DataFrame], SupportsFloat]
SINGLE: list[tuple[str, Truth]] = [
    ("total revenue", lambda f: f.revenue.sum()),
    ("the mean of units", lambda f: f.units.mean()),
    ("how many rows are there", lambda f: len(f)),
    ("number of rows where units are above 10", lambda f: (f.units > 10).sum()),
    ("total units with product laptop", lambda f: f[f["product"] == "Laptop"].units.sum()),
    ("number of distinct product where region is East", lambda f: f[f.region == "East"]["product"].nunique()),
    ("total revenue since 2024-02-10 until 2024-03-05", lambda f: f[f.date.between("2024-02-10", "2024-03-05")].revenue.sum()),
    ("total units before 2024-02-01", lambda f: f[f.date < "2024-02-01"].units.sum()),
    ("total units where units at least 2 and units at most 4", lambda f: f[f.units.between(2, 4)].units.sum()),
    (
        "sum of units where product is phone and region is West and date is 2024-06",
        lambda f: f[(f["product"] == "Phone") & (f.region == "West") & (f.date.str[:7] == "2024-06")].units.sum(),
    ),
]


@pytest.mark.parametrize(("question", "truth"), SINGLE)
def test_one_figure(question: str, truth: Truth, run: Run, data: Path) -> None:
    """A question for one figure is answered with that figure."""
    expected = float(truth(pd.read_csv(data / "sales.csv")))
    assert figure(run(agent, question, [data / "sales.csv"]).text) == pytest.approx(expected, rel=1e-5)


GROUPED: list[tuple[str, Callable[[pd.DataFrame], pd.Series]]] = [
    ("compute the total revenue per region in sales.csv", lambda f: f.groupby("region").revenue.sum()),
    ("total revenue per month", lambda f: f.groupby(f.date.str[:7]).revenue.sum()),
    ("number of rows per region", lambda f: f.groupby("region").size()),
    ("bottom 2 regions by total units before 2024-04", lambda f: f[f.date < "2024-04"].groupby("region").units.sum().nsmallest(2)),
    ("which month had the lowest total revenue", lambda f: f.groupby(f.date.str[:7]).revenue.sum().nsmallest(1)),
    ("total revenue where units above 10 by region", lambda f: f[f.units > 10].groupby("region").revenue.sum()),
]


@pytest.mark.parametrize(("question", "truth"), GROUPED)
def test_groups(question: str, truth: Callable[[pd.DataFrame], pd.Series], run: Run, data: Path) -> None:
    """A grouped answer lists every group in words and attaches the same table."""
    expected = {str(label): float(value) for label, value in truth(pd.read_csv(data / "sales.csv")).items()}
    done = run(agent, question, [data / "sales.csv"])
    table = pd.read_csv(io.BytesIO(next(iter(done.files.values()))), dtype={0: str})
    assert figures(done.text) == pytest.approx(expected, rel=1e-5)
    assert dict(zip(table.iloc[:, 0].astype(str), table.iloc[:, 1], strict=True)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("total profit per region", "'profit per region' is not understood after 'total'. What to compute is said, and of which"),
        ("second highest revenue", "second"),
        ("cumulative revenue by month", "cumulative"),
        ("total revenue in March", "'March' is not understood after 'total revenue in'."),
    ],
)
def test_refuses_what_it_does_not_understand(question: str, said: str, run: Run, data: Path) -> None:
    """What is not in the language or the file is an error that names it, never an answer to another question."""
    with pytest.raises(InvalidInputError) as error:
        run(agent, question, [data / "sales.csv"])
    assert said in str(error.value)


RATES = (
    "kind,Tax rate,Bonus %,price per unit,discount,part,amount,reading,Barcode,pH\n"
    "a,0.2,5,3,5%,0.1,10,1,400123,7\nb,0.3,10,4,2%,0.25,10,2,400456,6\n"
)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("total tax rate", "by its name"),
        ("average discount", "average of discount: 3.5 ("),
        ("total part per kind", "lie between 0 and 1"),
        ("total barcode", "or a code, by its name"),
    ],
)
def test_rates_are_not_summed(question: str, said: str, run: Run, tmp_path: Path) -> None:
    """A rate, told by its name or by its cells, is refused as a sum, and the question is told that was meant, perhaps."""
    assert said in told_of(run, RATES, question, tmp_path)


def test_reading(run: Run, tmp_path: Path) -> None:
    """A figure comes with what it is of, which rows, how many, and what was left out and why."""
    text = told_of(run, "shop,amount\nA,1\nA,\nA,oops\nB,5\nA,3\nA,4\n", "total amount where shop is A", tmp_path)
    assert text == (
        "t.csv: sum of amount where shop is A: 8 (3 of 6 rows; left out: 1 without amount, 1 that cannot be read, such as 'oops')."
    )


@pytest.fixture(scope="module")
def sales() -> Table:
    """The sales that ship with the examples."""
    return read_table(DATA / "sales.csv")


@settings(deadline=None)
@given(place=st.integers(0, 40), word=st.text("bcdfghjklmnpqrstvwxz", min_size=4, max_size=9), asked=st.sampled_from(SINGLE))
def test_a_foreign_word_anywhere_is_refused(sales: Table, place: int, word: str, asked: tuple[str, Truth]) -> None:
    """A question of the language with one word more, wherever it stands, is refused, and the word is named."""
    words = asked[0].split()
    at = place % (len(words) + 1)
    with pytest.raises(InvalidInputError) as error:
        understand(" ".join([*words[:at], word, *words[at:]]), sales)
    assert word in str(error.value)


MESSY = {
    "german": (
        "Kunde;Betrag (EUR);Datum\nMüller GmbH;1.234,50;01.02.2024\nSchäfer AG;99,90;15.02.2024\nMüller GmbH;12.000,00;31.03.2024\n"
    ),
    "invoices": (
        "Invoice No,Invoice Date,Due Date,Customer,Net Amount (USD),Paid\n"
        '1001,2023-11-05,2023-12-05,Acme,"1,200.50",yes\n1002,2024-01-20,2024-03-01,Beta,300,no\n'
        "1003,2024-02-28,2024-03-29,Acme,99.5,no\n"
    ),
}


@pytest.mark.parametrize(
    ("kind", "question", "expected"),
    [
        ("german", "total betrag", 13334.4),
        ("invoices", "how many rows have due date in 2024-03", 2),
        ("invoices", "which customer has the most rows", 2),
    ],
)
def test_messy_files(kind: str, question: str, expected: float, run: Run, tmp_path: Path) -> None:
    """Decimal commas, currency and percent signs, brackets, quotes, umlauts and empty cells are read as they are meant."""
    path = tmp_path / "messy.csv"
    path.write_text(MESSY[kind], encoding="utf-8")
    text = run(agent, question, [path]).text
    assert (next(iter(figures(text).values())) if "\n" in text else figure(text)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf\n\n", "nothing but blanks"),
        (b"a,b,c\n", "no rows"),
        (b"\x89PNG\x00\x01\x02\x00rest", "not a text file"),
    ],
)
def test_refuses_what_is_no_table(content: bytes, said: str, run: Run, tmp_path: Path) -> None:
    """An empty file, a lone header and a binary file are errors that say so."""
    path = tmp_path / "broken.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError) as error:
        run(agent, "total a", [path])
    assert said in str(error.value)


def test_no_file(run: Run) -> None:
    """Without a file the answer is an error that says what came."""
    with pytest.raises(InvalidInputError) as error:
        run(agent, "total sales per region")
    assert str(error.value) == "Questions about a table are answered here, and no table came. The goal came with no files."
