"""The CSV analyst: its language means what pandas says, and what lies outside of it is refused by name."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, SupportsFloat

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answers import answer
from csv_analyst import agent
from ioa.errors import DeclinedError, InvalidInputError
from questions import Question, Reader
from request import format_number
from tables import Table, read_table
from tests.unit.examples.agent_run import Run
from tests.unit.examples.conftest import DATA
from tests.unit.patterns.bounding import bounded


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
    ("Please compute the sum of Revenue in sales.csv.", lambda f: f.revenue.sum()),
    ("What is the average unit price?", lambda f: f.unit_price.mean()),
    ("the mean of units", lambda f: f.units.mean()),
    ("median revenue where category is Electronics", lambda f: f[f.category == "Electronics"].revenue.median()),
    ("total units on 2024-03-05", lambda f: f[f.date == "2024-03-05"].units.sum()),
    ("how many rows are there", lambda f: len(f)),
    ("how many rows does sales.csv have?", lambda f: len(f)),
    ("number of rows where units are above 10", lambda f: (f.units > 10).sum()),
    ("how many rows in sales.csv have revenue of at least 2988", lambda f: (f.revenue >= 2988).sum()),
    ("total units where the region is North", lambda f: f[f.region == "North"].units.sum()),
    ("total units with product laptop", lambda f: f[f["product"] == "Laptop"].units.sum()),
    ("how many different products are there", lambda f: f["product"].nunique()),
    ("how many different products are in sales.csv?", lambda f: f["product"].nunique()),
    ("number of distinct product where region is East", lambda f: f[f.region == "East"]["product"].nunique()),
    ("total revenue in 2024-03", lambda f: f[f.date.str.startswith("2024-03")].revenue.sum()),
    ("total revenue where date until 2024-03", lambda f: f[f.date < "2024-04"].revenue.sum()),
    ("total revenue since 2024-02-10 until 2024-03-05", lambda f: f[f.date.between("2024-02-10", "2024-03-05")].revenue.sum()),
    ("total units since 2024-10", lambda f: f[f.date >= "2024-10"].units.sum()),
    ("total units before 2024-02-01", lambda f: f[f.date < "2024-02-01"].units.sum()),
    ("total units after 2024-10", lambda f: f[f.date >= "2024-11"].units.sum()),
    ("total revenue where region is not West", lambda f: f[f.region != "West"].revenue.sum()),
    ("total units where units at least 2 and units at most 4", lambda f: f[f.units.between(2, 4)].units.sum()),
    ("the highest revenue", lambda f: f.revenue.max()),
    ("minimum unit price", lambda f: f.unit_price.min()),
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
    ("total revenue by product", lambda f: f.groupby("product").revenue.sum()),
    ("average units for each category", lambda f: f.groupby("category").units.mean()),
    ("total revenue per month", lambda f: f.groupby(f.date.str[:7]).revenue.sum()),
    ("total revenue by year of date", lambda f: f.groupby(f.date.str[:4]).revenue.sum()),
    ("number of rows per region", lambda f: f.groupby("region").size()),
    ("number of distinct product per region", lambda f: f.groupby("region")["product"].nunique()),
    ("top 3 products by total revenue", lambda f: f.groupby("product").revenue.sum().nlargest(3)),
    ("bottom 2 regions by total units before 2024-04", lambda f: f[f.date < "2024-04"].groupby("region").units.sum().nsmallest(2)),
    (
        "which product had the highest total revenue in 2024-03?",
        lambda f: f[f.date.str.startswith("2024-03")].groupby("product").revenue.sum().nlargest(1),
    ),
    ("which month had the lowest total revenue", lambda f: f.groupby(f.date.str[:7]).revenue.sum().nsmallest(1)),
    ("which product has the most rows", lambda f: f["product"].value_counts().head(1)),
    ("max revenue per product", lambda f: f.groupby("product").revenue.max()),
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
        ("total of units times unit price", "'times unit price' is not understood after 'total of units'."),
        ("total revenue where region is Nort", 'Values of region are "North", "South"'),
        ('total revenue where colour is "Red"', "colour"),
        ("make me a sandwich", "sandwich"),
        ("number of orders in 2024-03", "has a figure: how many rows, number of distinct COLUMN, "),
        ("which region sold the most", "'sold the most' is not understood after 'which region'. A question has a figure: how many"),
        ("second highest revenue", "second"),
        (
            "which region had the highest revenue",
            "'revenue' is not understood after 'which region had the highest'. A question has a figure",
        ),
        (
            "bottom 2 regions by unit price in 2024-03",
            "'unit price in 2024-03' is not understood after 'bottom 2 regions by'. A question has a figure",
        ),
        ("products by region", "'products by region' is not understood. A question has a figure"),
        ("total revenue, average units", "'average units' is not understood after 'total revenue,'."),
        ("total revenue. Weigh it by 4", "Weigh it by 4' is not understood after 'total revenue'."),
        ("total revenue where region is East or West", "'or West' is not understood after"),
        ("total revenue where units between 2 and 4", "'between 2 and 4' is not understood after"),
        ("Email the total revenue", "'Email the total revenue' is not understood. A question has a figure"),
        ("total revenue per region and how many rows", "'how many rows' is not understood after 'total revenue per region and'."),
        ("list region where units above 3", "'list region where units above 3' is not understood."),
        ("total unit price", "Say 'average unit_price'"),
        ("revenue growth", "'revenue growth' is not understood"),
        ("total of units plus 10", "'plus 10' is not understood after 'total of units'"),
        ("cumulative revenue by month", "cumulative"),
        ("total region", "is not read as numbers"),
        ("total revenue in 2019", "No row"),
        ("total revenue since", "Something is missing at the end"),
        ("total revenue per month of region", "region is not read as numbers or dates"),
        ("total revenue in 2024-13", "'2024-13' is not understood after 'total revenue in'. That is not a date of the calendar."),
        ("average revenue per product, highest", "'highest' is not understood after 'average revenue per product,'."),
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
        ("average tax rate", "average of Tax rate: 0.25 ("),
        ("average discount", "average of discount: 3.5 ("),
        ("total amount", "sum of amount: 20 ("),
        ("sum of price per unit", "by its name"),
        ("sum of bonus %", "Say 'average Bonus %'"),
        ("total discount", "by the '%' of its cells"),
        ("total part per kind", "lie between 0 and 1"),
        ("total pH", "by its name"),
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


ORDERS = """\
who,placed,items,state,Net sum,refund
Greta Vogel,2024-01-05,3,returned,10.5,2
Otto Brandt,2024-02-06,4,paid,20,
Greta Vogel,2024-02-07,5,paid,30,
"""


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("how many rows have a missing refund", "'a missing refund' is not understood after 'how many rows have'."),
        ("rows with missing refund", "'rows with missing refund' is not understood. A question has a figure"),
        (
            "total items per who since March and May",
            "'March and May' is not understood after 'total items per who since'. Dates",
        ),
        ("How many items did Greta Vogel return", "'items did Greta Vogel return' is not understood after 'How many'. A"),
        ("total items when state is paid", "'when state is paid' is not understood after 'total items'."),
        ("total items since May", "'May' is not understood after 'total items since'. Dates are written 2024,"),
        ("top 2 who", "Something is missing at the end of 'top 2 who'."),
        ("total net", "'net' is not understood after 'total'. What to compute is said, and of which column"),
        ("What is the net sum?", "'the net sum' is not understood after 'What is'. A question has a figure"),
        (
            "total items per who and total net sum per who",
            "'total net sum per who' is not understood after 'total items per who and'.",
        ),
        ("average items and net sum per who", "'and net sum per who' is not understood after 'average items'."),
        ("total items per state and each who", "'each who' is not understood after 'total items per state and'."),
        ("total items per who as a pie chart", "'as a pie chart' is not understood after 'total items per who'."),
    ],
)
def test_a_refusal_says_what_is_wrong(question: str, said: str, run: Run, tmp_path: Path) -> None:
    """What is known is not called unknown, and what can stand there is said."""
    assert said in told_of(run, ORDERS, question, tmp_path)


def test_lines_without_a_cell_are_no_rows(run: Run, tmp_path: Path) -> None:
    """Nor do they hide a line of totals."""
    content = "who,spot,n\na,x,1\nb,,2\n,,\nc,y,3\nTotal,,6\n,,\n"
    assert "t.csv has rows called 'Total', that may hold totals or means: 'Total, 6'." in told_of(run, content, "total n", tmp_path)
    assert told_of(run, content, "total n where who is not Total", tmp_path).endswith(": 6 (3 of 4 rows).")


def test_a_row_is_shown_whole(run: Run, tmp_path: Path) -> None:
    """Up to 25 columns of it."""
    path = tmp_path / "wide.csv"
    path.write_text("n," + ",".join(f"c{at}" for at in range(27)) + "\n1" + ",x" * 27 + "\n2" + ",y" * 27 + "\n")
    assert run(agent, "highest n", [path]).text.endswith("c22 y, c23 y).")


def test_the_file_is_asked_for_where_several_came(run: Run, tmp_path: Path) -> None:
    """What is read of one of them may be meant of another."""
    paths = [tmp_path / name for name in ("a.csv", "b.csv")]
    for path in paths:
        path.write_text("n\n1\n2\n")
    with pytest.raises(DeclinedError, match=r"2 may be meant: a\.csv, b\.csv\. End it with 'in a\.csv', say"):
        run(agent, "total n", paths)


SHOPS = ["Lakeside", "Old Town", "São Paulo", "Zürich", "R&D", "Naïve Quarter"]
NOUNS = ["plant", "crew", "vessel", "clinic", "branch_office", "Turbine Model", "harbourMaster"]
AMOUNTS = ["tonnage", "fuel_burned_l", "Output (kWh)", "visitorFee", "crop_yield", "Noise Level", "defects"]
OPERATIONS = {
    "total": "sum", "average": "mean", "median": "median", "maximum": "max", "minimum": "min",
}  # fmt: skip
SIGNS = {"above": "__gt__", "below": "__lt__", "at least": "__ge__", "at most": "__le__"}


def _spoken(column: str) -> str:
    """Say a column's name as a person would: without its unit in brackets, underscores and capitals."""
    bare = re.sub(r"\(.*?\)", "", column)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", bare).replace("_", " ").strip().lower()


def _world(seed: int, folder: Path) -> tuple[pd.DataFrame, Path, random.Random, tuple[str, str, str]]:
    rng = random.Random(seed)
    group, amount, other = rng.choice(NOUNS), *rng.sample(AMOUNTS, 2)
    size = rng.randint(5, 120)
    frame = pd.DataFrame(
        {
            group: [rng.choice(SHOPS) for _ in range(size)],
            amount: [round(rng.uniform(-50, 5000), 2) for _ in range(size)],
            other: [rng.randint(2, 90) for _ in range(size)],
            "logged_on": [f"20{rng.randint(21, 23)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}" for _ in range(size)],
        }
    )
    delimiter, decimal = rng.choice([(",", "."), (";", ","), ("\t", "."), ("|", "."), (";", ".")])
    encoding = rng.choice(["utf-8", "utf-8-sig", "cp1252"])
    path = folder / "measurements.csv"
    path.write_bytes(frame.to_csv(index=False, sep=delimiter, decimal=decimal).encode(encoding))
    return frame, path, rng, (group, amount, other)


@pytest.mark.parametrize("seed", range(40))
def test_unseen_tables(seed: int, tmp_path: Path) -> None:
    """A random question of the language over a random table, in any delimiter and encoding, is what pandas says."""
    frame, path, rng, (group, amount, other) = _world(seed, tmp_path)
    table = read_table(path)
    word, operation = rng.choice(list(OPERATIONS.items()))
    sign, compare = rng.choice(list(SIGNS.items()))
    limit, chosen, year = rng.randint(2, 60), frame[group].iloc[0], frame.logged_on.iloc[0][:4]
    rows = frame[getattr(frame[other], compare)(limit) & frame.logged_on.str.startswith(year)]

    said = _ask(f"{word} {_spoken(amount)} where {_spoken(group)} is {chosen.lower()}", table)
    wanted = float(getattr(frame[frame[group] == chosen][amount], operation)())
    assert re.search(rf"[:≈] {re.escape(format_number(wanted))} \(", said)

    said = _ask(f"how many rows have {_spoken(other)} {sign} {limit} and logged on is {year}", table)
    assert figure(said) == len(rows)

    if len(rows):
        said = _ask(f"{word} {_spoken(amount)} per {_spoken(group)} where {_spoken(other)} {sign} {limit} in {year}", table)
        truth = getattr(rows.groupby(group)[amount], operation)()
        assert figures(said) == pytest.approx({key: value for key, value in truth.items() if value == value}, rel=1e-4, abs=1e-4)


def _ask(question: str, table: Table) -> str:
    return answer(understand(question, table), table).text


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
    "dollars": 'who,salary\nAda,"$120,000"\nBob,"$80,500"\nCy,\n',
    "percent": "shop,discount\nA,5%\nB,2.5%\nC,n/a\n",
    "quoted": 'name;note;points\n"Lee; Bo";"says ""hi""";3\n"Ann";"two\nlines";4\n',
    "invoices": (
        "Invoice No,Invoice Date,Due Date,Customer,Net Amount (USD),Paid\n"
        '1001,2023-11-05,2023-12-05,Acme,"1,200.50",yes\n1002,2024-01-20,2024-03-01,Beta,300,no\n'
        "1003,2024-02-28,2024-03-29,Acme,99.5,no\n"
    ),
    "booleans": "person,isRemote,hours\nAda,yes,10\nBob,no,20\nCy,yes,30\n",
}


@pytest.mark.parametrize(
    ("kind", "question", "expected"),
    [
        ("german", "total betrag", 13334.4),
        ("german", 'total betrag where kunde is "Müller GmbH"', 13234.5),
        ("german", "total betrag where kunde is muller gmbh", 13234.5),
        ("german", "total betrag in 2024-02", 1334.4),
        ("dollars", "average salary", 100250),
        ("dollars", "number of rows where salary is missing", 1),
        ("percent", "average discount", 3.75),
        ("quoted", "sum of points", 7),
        ("quoted", "total points where name is Lee; Bo", 3),
        ("booleans", "total hours where is remote is yes", 40),
        ("booleans", "how many rows where isRemote is not yes", 1),
        ("invoices", "total net amount where paid is no", 399.5),
        ("invoices", "how many rows have due date in 2024-03", 2),
        ("invoices", "number of rows where invoice date in 2023", 1),
        ("invoices", "which customer has the highest total net amount", 1300),
        ("invoices", "total net amount where invoice no is 1002", 300),
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


def test_one_file_at_a_time(run: Run, tmp_path: Path, data: Path) -> None:
    """The file that is named is used; without a name, or with two, several are refused."""
    pets = tmp_path / "pets.csv"
    pets.write_text("animal,legs\ncat,4\nbird,2\n")
    files = [data / "sales.csv", pets]
    assert figure(run(agent, "total legs in pets.csv", files).text) == 6
    assert figure(run(agent, "tell me how many rows pets.csv has", files).text) == 2
    with pytest.raises(DeclinedError, match=r"A question is about one file, and 2 may be meant: sales\.csv, pets\.csv\."):
        run(agent, "total legs", files)


def test_a_row_that_is_too_long_is_told_wherever_it_is(run: Run, tmp_path: Path) -> None:
    """A comma too many in a cell that nobody asked for moves the others: the file is refused, and read if it is in quotes."""
    path = tmp_path / "t.csv"
    path.write_text("shop,note,n\n" + "A,none,1\n" * 2_000 + "A,two, words,1\n")
    with pytest.raises(InvalidInputError, match="Expected 3 fields in line 2002, saw 4"):
        run(agent, "how many rows", [path])
    path.write_text("shop,note,n\n" + "A,none,1\n" * 2_000 + 'B,"two, words",5\n')
    assert figure(run(agent, "total n where shop is B", [path]).text) == 5
    assert figure(run(agent, 'how many rows where note is "two, words"', [path]).text) == 1


def test_months_are_words(run: Run, tmp_path: Path) -> None:
    """In their order: a month is none of its days, and keeps its name."""
    months = "Period,Sales\n2024-01,112.5\n2024-02,98\nTBC,55\n2024-03,143\n"
    assert "- 2024-01: 112.5\n- 2024-02: 98\n- 2024-03: 143" in told_of(run, months, "total sales per period", tmp_path)
    assert ": 98 (1 of 4 rows)" in told_of(run, months, "total sales where period is 2024-02", tmp_path)
    for question in ("total sales per day", "how many rows after 2024-01-15"):
        assert "no column that is read as one of dates" in told_of(run, months, question, tmp_path)


def test_what_is_assumed_of_a_file_is_said(run: Run, tmp_path: Path) -> None:
    """In another encoding its words would be others, and who asked sees as which they were read."""
    path = tmp_path / "t.csv"
    path.write_text("shop,n\nMüller,4\nLima,2\n", encoding="cp1252")
    said = run(agent, "total n per shop", [path]).text
    assert said.startswith("t.csv: sum of n per shop (2 of 2 rows, read as Windows-1252):\n- Lima: 2\n- Müller: 4")
    path.write_text("miasto,kwota\nŁódź,4\nZażółć,2\n", encoding="iso8859-2")
    with pytest.raises(InvalidInputError, match=r"Columns of t\.csv, which is read as Windows-1252: miasto, kwota\."):
        run(agent, 'total kwota where miasto is "Łódź"', [path])


def test_a_large_file_is_read_by_its_different_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dates and amounts that are written as text are understood once per different cell, not once per row."""
    rows = [(f"2023-{n % 12 + 1:02}-05", f"${n % 50}") for n in range(20_000)]
    path = tmp_path / "large.csv"
    pd.DataFrame(rows, columns=["day", "amount"]).to_csv(path, index=False)
    read: list[int] = []
    whole = pd.to_datetime

    def counted(cells: pd.Series, **options: Any) -> Any:
        read.append(len(cells))
        return whole(cells, **options)

    monkeypatch.setattr(pd, "to_datetime", counted)
    said = _ask("total amount in 2023-05", read_table(path))
    assert (figure(said), max(read)) == (sum(n % 50 for n in range(20_000) if n % 12 == 4), 12)


@pytest.mark.parametrize("sentence", (DATA.parents[1] / "docs" / "questions.md").read_text().split("```text\n")[2].splitlines()[:5])
def test_the_page_of_the_language_is_true(sentence: str, sales: Table) -> None:
    """Each example of the language's page is answered."""
    said = _ask(sentence, sales)
    assert said.startswith("sales.csv: ")


@pytest.mark.parametrize(
    ("question", "reading"),
    [
        ("total n per shop", "(2 of 6 rows; left out: 1 without n, 1 that cannot be read, such as 'x', 2 without shop)"),
        ("total n where shop is not A", "(1 of 6 rows; left out: 2 without shop, 1 that cannot be read, such as 'x')"),
        ("number of distinct shop where d above 1", "(1 of 6 rows; left out: 1 without shop)"),
    ],
)
def test_each_row_is_used_or_left_out_once(question: str, reading: str, run: Run, tmp_path: Path) -> None:
    """A row that lacks several things is counted where that is noticed first, so that the counts add up."""
    assert reading in told_of(run, "shop,n,d\nA,1,0\nA,,1\nB,x,1\nB,4,2\n,5,3\n,6,1\n", question, tmp_path)


WITH_UNITS = """\
site,Unit cost (EUR),temperature (°C),length [km],borrowed
A,1.5,3,10,13 Jan 2026
B,2.5,,20,2 Feb 2026
C,4,6,30,3 Feb 2026
"""


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("average Temperature (°C)", 4.5),
        ("how many rows where Unit cost (EUR) is above 2", 2.0),
        ("how many rows have temperature (°C) missing", 1.0),
        ("how many rows where borrowed is 2026-02", 2.0),
    ],
)
def test_whole_names_and_months_by_name(question: str, expected: float, run: Run, tmp_path: Path) -> None:
    """A column is asked for by its whole name, its unit included, and dates may be written with names of months."""
    path = tmp_path / "sites.csv"
    path.write_text(WITH_UNITS)
    assert figure(run(agent, question, inputs=[path]).text) == expected


def test_a_file_that_did_not_come_is_what_is_missing(run: Run) -> None:
    """And no reason to ask others: what is wanted is understood."""
    with pytest.raises(InvalidInputError) as error:
        run(agent, "total revenue per region in takings.csv")
    assert not isinstance(error.value, DeclinedError)
    assert "'takings.csv' did not come with the goal." in str(error.value)


ABILITIES = """\
place,kind,people,temperature,opened,note
Oslo,port,700,4.5,5 Jan 2023,
Bergen,port,280,7.5,11 Feb 2023,new
Lom,village,2,1.0,2 Apr 2023,
Voss,village,18,,,old
"""


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("maximum people", "; its row: place Oslo, kind port, people 700, temperature 4.5"),
        ("total people since January 2023 per opened", "- 2023-01-05: 700\n- 2023-02-11: 280\n- 2023-04-02: 2"),
        ("how many rows where note is missing", "note is missing: 2 (2 of 4 rows)."),
        ("which place has the highest average temperature", "- Bergen: 7.5"),
        ("total people in Q1 2023", "opened is 2023-Q1: 980"),
        ("how many rows where opened is 11 February 2023", "opened is 2023-02-11: 1"),
    ],
)
def test_what_is_asked_first_of_a_table(question: str, said: str, run: Run, tmp_path: Path) -> None:
    """What is missing, the row of a highest figure and months by name are of the language."""
    assert said in told_of(run, ABILITIES, question, tmp_path)


@pytest.mark.parametrize("question", ["total n per who", "how many rows"])
def test_a_file_of_a_kind_that_is_not_read_is_named(question: str, run: Run, tmp_path: Path) -> None:
    """Who sent a table of another kind is not told that no table came, and nothing else."""
    path = tmp_path / "t.xlsx"
    path.write_bytes(b"PK")
    with pytest.raises(DeclinedError, match=r"no table came: t\.xlsx is none of \.csv, "):
        run(agent, question, [path])


@pytest.mark.parametrize("name", ["jars.csv", "jars.tsv"])
def test_what_looks_the_same_is_counted_as_the_same(tmp_path: Path, name: str) -> None:
    """Blanks behind a word, or two between words, make no group of their own, in figures and conditions alike."""
    rows = [("Green Grocer", 2), ("Green Grocer ", 3), ("Green  Grocer", 4), ("Farm Shop", 8)]
    sign = "\t" if name.endswith("tsv") else ","
    plain = "\n".join([f"buyer{sign}jars", *(f"{buyer}{sign}{jars}" for buyer, jars in rows), f'"Farm Shop "{sign}0'])
    (tmp_path / name).write_text(plain)
    table = read_table(tmp_path / name)
    assert "Green Grocer: 9" in _ask("which buyer has the highest total jars", table)
    assert ": 3 (3 of" in _ask("how many rows where buyer is Green Grocer", table)


WRITTEN = """\
site,weight,over_km,fee,balance,code,grade,seen,Jars,mood
A,3.5 kg,2.5,12 %,(13.50),INV-1000,C,-,4,?
B,12 kg,-,8 %,"1,000.00",INV-1001,C++,2024-05-01,n/a,good
C,n/a,12,,20.00,INV-1002,C#,2024-05-02,8,good
D,9 kg,30,20 %,7.25,INV-1003,65+,2024-06-03,?,
"Blue \"\"Door\"\"",1 kg,1,5 %,1.00,INV-1004,O'Dea & Sons,,1,<bad>
"""


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("total weight", "sum of weight: 25.5 (4 of 5 rows, in kg; left out: 1 without weight ('n/a'))."),
        ("how many rows have weight over 3", "weight > 3: 3 (3 of 5 rows, weight in kg; left out: 1 without weight ('n/a'))."),
        ("how many rows have a fee below 10", "fee < 10: 2 (2 of 5 rows, fee in %; left out: 1 without fee)."),
        ("how many rows where over_km is 12", "over_km is 12: 1 (1 of 5 rows; left out: 1 without over_km ('-'))."),
        ("how many rows where mood is <bad>", "mood is <bad>: 1 (1 of 5 rows; left out: 2 without mood ('?'))."),
        (
            'how many rows where mood is "<bad>" and fee is 5',
            "mood is <bad> and fee is 5: 1 (1 of 5 rows, fee in %; left out: 2 without mood ('?')).",
        ),
        ("how many rows where mood is missing", "mood is missing: 2 (2 of 5 rows, missing is what is empty, '?')."),
        ("how many rows where over_km is missing", "over_km is missing: 1 (1 of 5 rows, missing is what is empty, '-')."),
        ("how many rows where seen is missing", "seen is missing: 2 (2 of 5 rows, missing is what is empty, '-')."),
        ("total jar", "sum of Jars: 13 (3 of 5 rows; left out: 2 without Jars ('n/a', '?'))."),
        ("how many rows where grade is C", "grade is C: 1 (1 of 5 rows)."),
        ("how many rows where grade is C++", "grade is C++: 1 (1 of 5 rows)."),
        ("how many rows where grade is 65+", "grade is 65+: 1 (1 of 5 rows)."),
        ('how many rows where grade is "O\'Dea & Sons"', "grade is O'Dea & Sons: 1 (1 of 5 rows)."),
        ('how many rows where site is Blue "Door"', 'site is Blue "Door": 1 (1 of 5 rows).'),
    ],
)
def test_cells_are_read_as_they_are_written(question: str, said: str, run: Run, tmp_path: Path) -> None:
    """Units, what is negative, what is missing and how that is written, signs of a value: nothing is dropped in silence."""
    assert said in told_of(run, WRITTEN, question, tmp_path)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("how many rows where bed is 0012", "number of rows where bed is 0012: 2 (2 of 3 rows)."),
        ("which bed has the most rows", "0012: 2"),
        ("highest heat", "; its row: bed 0105, heat 39)."),
        ("total bed", "bed is not read as numbers or dates: it has cells such as '0105'."),
    ],
)
def test_codes_keep_their_zeros(question: str, said: str, run: Run, tmp_path: Path) -> None:
    """Whether each stands once or several times: they are no amounts."""
    assert said in told_of(run, "bed,heat\n0105,39\n0012,37\n0012,38\n", question, tmp_path)


@pytest.mark.parametrize(
    ("cells", "question", "said"),
    [
        (["340434188193204351", "340434188193204352", ""], "how many rows per code where n is 2", "- 340434188193204352: 1"),
        (["340434188193204351", "", "340434188193204352"], "number of distinct code", "distinct code: 2 "),
        (["10E2", "10E3", "10E2"], "how many rows per code", "- 10E2: 2\n- 10E3: 1"),
        (["3.10", "3.9", "3.9"], "how many rows per code", "- 3.10: 1\n- 3.9: 2"),
        (["3.10", "3.2", "3.9"], "how many rows per code where n above 2", "- 3.9: 1"),
        (["3.10", "3.2", "3.9"], "lowest n", "; its row: n 1, code 3.10)."),
        (["48.137154", "48.2", "48.3"], "how many rows per code where n below 2", "- 48.137154: 1"),
        ([*(str(80_000 + at) for at in range(1_200)), "01067"], "how many rows per code where n above 1200", "- 01067: 1"),
        (["Bonn\u00a0", "Bonn", "\u202fUlm"], "how many rows per code", "- Bonn: 2\n- Ulm: 1"),
    ],
)
def test_what_looks_like_a_number_is_shown_as_it_is_written(
    cells: list[str], question: str, said: str, run: Run, tmp_path: Path
) -> None:
    """Pandas would round long codes, take an E for a power, and zeros away; the last one of 1,201 tells that all are codes."""
    assert said in told_of(run, "n,code\n" + "".join(f"{at},{cell}\n" for at, cell in enumerate(cells, 1)), question, tmp_path)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("how many rows where status is missing", 'Say "missing" in quotes.'),
        ("how many rows where status is not missing", "'missing' is a value of status, and of the language."),
        ('how many rows where status is "missing"', 'status is "missing": 1 (1 of 4 rows; left out: 1 without status).'),
        ('how many rows where status is not "missing"', 'status is not "missing": 2 (2 of 4 rows; left out: 1 without status).'),
        ("how many rows where share above 50%", "'%' is not understood after 'how many rows where share above 50'."),
        (
            "how many rows where share above 0.3 or who is a",
            "'or who is a' is not understood after 'how many rows where share above 0.3'.",
        ),
        ("how many rows where note is friendly", 'Values of note are "ok, friendly", "late"'),
    ],
)
def test_what_may_be_a_word_of_the_language_is_told(run: Run, tmp_path: Path, question: str, said: str) -> None:
    """A value that is called like a word is never taken for it, and values are shown as they can be said."""
    path = tmp_path / "t.csv"
    rows = 'missing,a,0.4,1,5,"ok, friendly"', "here,b,0.7,2,6,late", ",c,0.2,3,7,late", "here,d,0.9,4,8,"
    path.write_text("\n".join(["status,who,share,litres,weight_kg,note", *rows, ""]))
    assert said in told(run, question, path)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("total rent in Q2 2024", "2 columns that the date may be of: Due date, Paid on"),
        ("total rent per month", "2 columns that the date may be of: Due date, Paid on"),
        ("total rent per month of due date", "Due date can be read in two ways"),
        ("total rent where paid on is 2024-07", "sum of Rent where Paid on is 2024-07: 20"),
    ],
)
def test_a_date_that_can_be_read_in_two_ways_is_a_date(run: Run, tmp_path: Path, question: str, said: str) -> None:
    """A date without a column may be of it as of any: another one is not taken since that one cannot be read."""
    rents = "Unit,Rent,Due date,Paid on\nA,10,01/07/2024,2024-06-30\nB,20,02/07/2024,2024-07-05\nC,30,03/08/2024,never\n"
    assert said in told_of(run, rents, question, tmp_path)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("number of distinct at", "number of distinct at: 3 (4 of 4 rows)."),
        ("number of rows per at", "- 2024-03-05 10:00:00: 2\n"),
        ("number of distinct copies", "copies has '1000' and '1,000', which are one number, or two names."),
        ("which copies has the most rows", "copies has '1000' and '1,000', which are one number, or two names."),
        ("number of rows per size", "size has '5 km' and '5km', which are one number, or two names."),
        ('how many rows where state is not "paid"', "state is not paid: 2 (2 of 4 rows)."),
        ('how many rows where state is "not paid"', 'state is "not paid": 1 (1 of 4 rows).'),
        ("how many rows where at is missing", "at is missing: 0 (0 of 4 rows)."),
        ("how many rows where state is not paid", 'Say "not paid" in quotes.'),
    ],
)
def test_what_is_written_in_two_ways_is_counted_once_or_refused(run: Run, tmp_path: Path, question: str, said: str) -> None:
    """A date is one however it is written; a number may be a name, so that two writings of it are refused."""
    rows = "1000,paid,2024-03-05 10:00,5 km", '"1,000",not paid,2024-03-05T10:00,5km', "250,part paid,2024-03-05 11:00,7 km"
    content = "\n".join(["copies,state,at,size", *rows, "250,paid,2024-03-06 11:00,8 km"])
    assert said in told_of(run, content, question, tmp_path)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("lowest pay per bin", "of the sum of each Bins, or divided by it"),
        ("average pay for each hour", "'pay for each Hours (h)' may be of the rows"),
        ("total pay per area", "'pay per area' may be of the rows"),
        ("lowest pay by bins", "minimum of pay per Bins"),
        ("number of rows per bin", "number of rows per Bins"),
        ("number of distinct areas per bin", "number of distinct area per Bins"),
        ("total pay per zone", "'pay per Zone' may be of the rows"),
        ("top 1 bin by total pay", "sum of pay per Bins, the highest 1 of 2"),
    ],
)
def test_an_amount_per_another_is_no_group(run: Run, tmp_path: Path, question: str, said: str) -> None:
    """Pay per bin is pay divided by bins, to most; by bins it is a group for each number of them."""
    assert said in told_of(run, "pay,Bins,Hours (h),area,Zone\n3.30,3,1,20.5,1\n5.20,5,2,11,2\n3.60,3,2,30,1\n", question, tmp_path)


_LOGS = ["L1,oak,1.234,4", "L2,oak,2.345,6", "L3,ash,3.456,5", "L4,oak,4.567,7"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([*_LOGS, "TOTAL,,11.60,22"], "'TOTAL, 11.60, 22'"),
        ([*_LOGS, "TOTAL,,12,"], "'TOTAL, 12'"),
        ([*_LOGS, "Alles,,11.9,22"], "without kind, which all others have, that may hold totals or means: 'Alles, 11.9, 22'"),
        ([*_LOGS, "Mean,,2.9005,5.5", "SD,,1.43,1.29"], "without kind, which all others have"),
        (["All,,11.9,23", *_LOGS], "without kind, which all others have"),
        (
            ["L1,oak,10,1", "L2,oak,25,2", "All,Subtotal,35,3", "L3,ash,8,2", "L4,ash,7,2", "All,Subtotal,15,4"],
            "'All, Subtotal, 35, 3'; 'All, Subtotal, 15, 4'",
        ),
        (
            ["L1,oak,10,1", "L2,oak,25,2", "a,a,35,3", "L3,ash,8,2", "L4,ash,7,2", "b,b,15,4", "c,c,50,7"],
            "'a, a, 35, 3'; 'b, b, 15, 4'; 'c, c, 50, 7'",
        ),
        ([*_LOGS, "Grand total,all,13,22"], "called 'Grand total'"),
        ([*_LOGS, "all,Mean,2.9,5.5"], "called 'Mean'"),
        (
            [f"L{at},oak,{at % 4 + 1},1" for at in range(30)] + ["page,oak,73,30", "L31,oak,2,1", "L32,ash,3,1"],
            "with sums of others",
        ),
    ],
)
def test_lines_that_may_hold_totals_or_means_are_refused(lines: list[str], said: str, run: Run, tmp_path: Path) -> None:
    """Rounded, typed by hand, means, or carried forward: where nobody can tell, who wrote it is asked."""
    assert said in told_of(run, "\n".join(["log,kind,volume,boards", *lines]), "total volume", tmp_path)


@pytest.mark.parametrize(
    "asked", ["total volume where kind is total", "total volume where kind is not missing", "total volume where kind is oak"]
)
def test_who_names_what_is_called_a_figure_knows_of_it(asked: str, run: Run, tmp_path: Path) -> None:
    """A column may hold kinds of rows that are called so; who asks by that column alone is asked. `Max` is a name."""
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["log,kind,volume,boards", _LOGS[0], "L0,mean,1,3", "L9,total,2,1", *_LOGS[1:], "Max,oak,3,1"]))
    assert "of volume" in run(agent, asked, [path]).text
    path.write_text("who,n\nA,20\nB,25\nC,31\nTotals,76\n")
    assert ": 76 (1 of 4 rows" in run(agent, "total n where who is totals", [path]).text
    path.write_text("\n".join(["log,kind,volume,boards", _LOGS[0], "L0,mean,1,3", "L9,total,2,1", *_LOGS[1:], "Max,oak,3,1"]))
    for question in ("total volume", "total volume per kind", "which kind has the highest total volume"):
        with pytest.raises(
            InvalidInputError, match=r"rows called 'mean'.* If they are rows like others, say 'where log is not missing'"
        ):
            run(agent, question, [path])


@pytest.mark.parametrize("asked", ["total n", "total n per who", "top 2 who by total n", 'total n where who is not "A"'])
@pytest.mark.parametrize("total", ["TOTALS,458", "Summe,460.4", "Razem,460"])
def test_a_rounded_total_is_told_by_its_name_or_its_size(total: str, asked: str, run: Run, tmp_path: Path) -> None:
    """In any language, whatever is asked of its column, and a condition leaves it out."""
    content = f"who,n\nA,120.4\nB,180.3\nC,149.6\nD,10.0\n{total}\n"
    assert f"'{total.replace(',', ', ')}'. Take lines of totals out" in told_of(run, content, asked, tmp_path)
    left = f"total n where who is not {total.partition(',')[0]}"
    assert ": 460.3 (4 of 5 rows)" in told_of(run, content, left, tmp_path)


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ("a,2\nb,3\nR 0,5\nc,23\nd,19\nR 1,42\ne,8\nf,2\ng,10\nh,8\nR 2,28", "'R 0, 5'; 'R 1, 42'"),
        ("a,2\nb,21\nc,23\nd,14\nR 0,60\ne,22\nf,5\nR 1,27", "'R 0, 60'; 'R 1, 27'"),
        ("a,16\nb,11\nR 0,27\nc,27\nd,24\ne,22\nf,3\nR 1,76", "'R 1, 76'"),
    ],
)
def test_subtotals_are_named(rows: str, named: str, run: Run, tmp_path: Path) -> None:
    """Rows may come to another row by chance, too: where all rows are summed, all sums are named."""
    assert named in told_of(run, f"who,n\n{rows}\n", "total n", tmp_path)


def _by_year(sums: dict[str, str], shops: str = "ABCDE", of: str = "", years: int = 4) -> str:
    """Rows of shops, and of words that hold the sum of some of these, of two kinds or none, sorted by shop."""
    rng, rows = random.Random(1), dict[tuple[str, str, int], int]()
    for kind, year in ((kind, year) for kind in of or " " for year in range(2021, 2021 + years)):
        rows |= {(shop, kind, year): rng.randrange(1000, 99_999) for shop in shops}
        rows |= {(word, kind, year): sum(rows[shop, kind, year] for shop in some) for word, some in sums.items()}
    lines = [f"{shop},{kind},{year},{n}" if of else f"{shop},{year},{n}" for (shop, kind, year), n in sorted(rows.items())]
    return "\n".join(["shop,kind,year,n" if of else "shop,year,n", *lines]) + "\n"


@pytest.mark.parametrize(
    ("content", "asked", "named"),
    [
        (_by_year({"Firm": "ABCDE"}, of="xy"), "total n", "'Firm, x, 2021, "),
        (_by_year({"Firm": "ABCDE", "Coast": "AB"}), "total n per year", "'Coast, 2021, "),
        (_by_year({"Firm": "ABCDE", "Coast": "AB"}), 'total n per year where shop is not "Firm"', "'Coast, 2021, "),
        (
            _by_year({"Firm": "ABCDEFG", "Coast": "ABC", "East": "DE", "Inland": "FG"}, "ABCDEFG"),
            "total n where shop is A",
            "'A, 2021, ",
        ),
        (_by_year({"Firm": "ABCDE", "Coast": "ABC", "North": "CDE"}), "total n where shop is not Coast", "'Firm, 2021, "),
        (_by_year({"Firm": "ABCDE", "Coast": "ABC", "Inland": "DE"}), 'total n where shop is not "Firm"', "'Coast, 2021, "),
        ("who,n\nAll,1523\na,1211\nb,312\nBob,887\nc,705\nd,182\nOther,151\n", "total n where who is not All", "'Bob, 887'"),
    ],
)
def test_what_is_left_of_totals_without_the_largest_is_refused(
    content: str, asked: str, named: str, run: Run, tmp_path: Path
) -> None:
    """Sums by a word stand beside years and kinds, and beside other sums, which are counted twice without the first of them."""
    said = told_of(run, content, asked, tmp_path)
    assert "with sums of others in n" in said
    assert named in said


_PIVOT = "day,ward,nurse,n\nMon,A,x,6\n,,y,3\n,B,x,4\n,,y,1\nTue,A,x,2\n,,y,8\n,B,x,7\n,,y,5\n"
_ORDERS = "order,paid,status,qty,item\n#1,50,paid,2,a\n#1,,,1,b\n#2,20,open,1,a\n#3,30,paid,1,c\n#3,,,4,a\n#4,10,paid,1,b\n"
_YEARS = "year,shop,n\n2022,a,10\n,b,20\n,c,30\n2023,a,1\n,b,2\n,c,3\n"


@pytest.mark.parametrize(
    ("content", "asked", "said"),
    [
        (_YEARS, "total n by year", "year may stand in the first row of each block alone"),
        (_YEARS, "total n where year is 2022", "year may stand in the first row of each block alone"),
        (_YEARS, "which year has the highest total n", "year may stand in the first row of each block alone"),
        (_YEARS, "total n where year is not missing by year", "- 2022: 10"),
        (_YEARS.replace("2022", "2022-01-05").replace("2023", "2022-01-05"), "total n since 2022", "first row of each block alone"),
        (_PIVOT, "total n per ward", "ward may stand in the first row of each block alone"),
        (_PIVOT, "total n where day is Mon", "day may stand in the first row of each block alone"),
        (_ORDERS, "total qty per status", "status may stand in the first row of each block alone"),
        (_ORDERS, "total paid per status", "- paid: 90"),
        ('who,n\nA,3\n"""",4\n"""",5\nB,6\n', "total n per who", "who may stand in the first row of each block alone"),
        ("who,n\nA,3\n〃,4\n〃,5\nB,6\n", "total n where who is A", "who may stand in the first row of each block alone"),
        ("who,n\n+,3\n-/-,4\n+,5\n,6\n", "total n per who", "- +: 8"),
        ("who,n\na,3\n,4\na,5\nb,6\n", "total n per who", "- a: 8"),
        ("who,n,score\na,3,7\nb,4,\nc,5,\nd,6,9\n", "total n where score above 5", ": 9 ("),
    ],
)
def test_what_may_be_said_of_the_rows_above_is_refused(content: str, asked: str, said: str, run: Run, tmp_path: Path) -> None:
    """A pivot, an order of several lines and a ditto mark leave cells to the row above; a few gaps, or a score's, do not."""
    assert said in told_of(run, content, asked, tmp_path)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("s,m3/h\n1,3\n2,4\n3,4", "may name columns: 's, m3/h'"),
        ("int64,float32\n1,3\n2,4\n3,4", "may name columns: 'int64, float32'"),
        ("1,3\nTIME,FLOW (M)\n2,4\n3,4", "may name columns: 'TIME, FLOW (M)'"),
        ("1,a\n2,b\ntime,flow (m)\n3,c", "may name columns: 'time, flow (m)'"),
        ("1,3\n \t,\n2,4\n3,4", "number of rows: 3 (3 of 3 rows)"),
        ("1,3\n2,4\n3,4\n*a,\nb,\nc,\nd,", "4 of them with one word and no other cell, such as '*a'; 'b'; 'c')"),
        ("<5,~8\n1,3\n2,4\n3,4", "number of rows: 4 (4 of 4 rows)"),
    ],
)
def test_a_line_that_is_no_row_is_not_counted_in_silence(rows: str, said: str, run: Run, tmp_path: Path) -> None:
    """Units with figures in them, the names again in other letters, blanks, and remarks below them."""
    assert said in told_of(run, f"Time,Flow (m)\n{rows}\n", "how many rows", tmp_path)


@pytest.mark.parametrize("content", [_by_year({}), _by_year({}, of="xy"), _by_year({}, shops="AB", years=2)])
def test_words_that_hold_no_sums_are_added_up(content: str, run: Run, tmp_path: Path) -> None:
    """One row of each word and year is no sum yet."""
    truth = sum(int(line.rpartition(",")[2]) for line in content.splitlines()[1:])
    assert f"sum of n: {truth} (" in told_of(run, content, "total n", tmp_path)


@pytest.mark.parametrize("edge", [0, -1])
def test_an_edge_may_lack_the_amount(edge: int, run: Run, tmp_path: Path) -> None:
    """It is left out, and told, as any other is."""
    lines = ["L0,oak,5,1", "L1,ash,7,2", "L2,elm,9,3", "L3,oak,2,3", "L4,ash,,3", "L5,elm,3,3"]
    lines[edge] = "L9,fir,,3"
    content = "\n".join(["log,kind,volume,boards", *lines])
    assert "(4 of 6 rows; left out: 2 without volume)" in told_of(run, content, "total volume", tmp_path)


def test_a_first_line_without_a_cell_is_no_header(run: Run, tmp_path: Path) -> None:
    """A spreadsheet leaves such lines above a table."""
    assert "sum of a: 1 (1 of 1 rows)" in told_of(run, ",,\na,b,c\n1,2,3\n", "total a", tmp_path)


def test_times_of_several_zones_are_not_compared(run: Run, tmp_path: Path) -> None:
    """Which came first, and on which day, the clock alone does not tell; of one zone it does."""
    several = "start,n\n2024-09-01T23:30:00+02:00,3\n2024-09-01T22:30:00Z,4\n"
    said = "not all in one form and zone: '2024-09-01T23:30:00+02:00', '2024-09-01T22:30:00Z'. Write all as 2024-03-31, or as"
    assert said in told_of(run, several, "how many rows per day", tmp_path)
    assert "2024-09-01: 1" in told_of(
        run, several.replace("+02:00", "Z").replace("01T22", "02T22"), "how many rows per day", tmp_path
    )


@pytest.mark.parametrize(
    ("cells", "shown"),
    [("834,61 €|4\u202f468,56 €|-1\xa0000 €", "4 468,56 €"), ("0241 1|a 1|030 4", "0241 1"), ("1|2 x y|3 x z", "2 x y")],
)
def test_a_cell_that_is_not_read_is_shown(cells: str, shown: str, run: Run, tmp_path: Path) -> None:
    """And not another one that is."""
    content = "who;n\n" + "".join(f"a;{cell}\n" for cell in cells.split("|"))
    assert f"n is not read as numbers or dates: it has cells such as '{shown}'" in told_of(run, content, "total n", tmp_path)


def test_rows_that_others_make_doubtful_are_left_out_by_what_they_lack(run: Run, tmp_path: Path) -> None:
    """As the refusal says; and where cells lack within the table, or in many rows, nothing is doubtful."""
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["log,kind,volume,boards", *_LOGS, "Mean,,2.9005,5.5"]))
    assert "11.602 (4 of 5 rows)" in run(agent, "total volume where kind is not missing", [path]).text
    path.write_text("\n".join(["log,kind,volume,boards", *_LOGS, "L5,,2.9,5", _LOGS[0]]))
    assert "15.736 (6 of 6 rows" in run(agent, "total volume", [path]).text


@pytest.mark.parametrize("title", ["Vegetable show,,", "Vegetable show,,\nPrinted today,,"])
def test_a_title_above_the_header_is_refused_by_it(title: str, run: Run, tmp_path: Path) -> None:
    """A spreadsheet ends it with as many commas as a row has."""
    path = tmp_path / "t.csv"
    path.write_text(f"{title}\nclass,entrant,points\nleek,Vale,3\nonion,Ortiz,5\n")
    with pytest.raises(InvalidInputError, match="does not name the column of 'entrant'"):
        run(agent, "how many rows", [path])


def test_a_part_of_a_date_is_no_value_of_another_column(run: Run, tmp_path: Path) -> None:
    """What is advised is what was said: `07` of a date is no net."""
    path = tmp_path / "t.csv"
    path.write_text("net,caught,n\n07,2023-07-09,1\n08,2023-07-10,2\n")
    with pytest.raises(InvalidInputError) as refused:
        run(agent, "how many rows on 09/07/2023", [path])
    assert "where net" not in refused.value.hint and "Dates are written" in refused.value.hint


def test_two_files_that_are_named_are_too_many(run: Run, tmp_path: Path) -> None:
    """Both may be meant."""
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path in paths:
        path.write_text("n,m\n1,2\n")
    with pytest.raises(DeclinedError, match=r"about one file, and 2 may be meant: a\.csv, b\.csv\."):
        run(agent, "sum of n in a.csv and b.csv", paths)


TOTALS = "who,spot,n\nA,x,2\nB,y,3\nC,,4\nTOTAL,,9\n"
FIRST = "who,item,n\nAll,,15\nOf A,,6\nA,x,1\nA,y,5\nOf B,,9\nB,x,4\nB,y,5\n"
SUBTOTALS = "who,item,n\nA,x,1\nA,y,2\nOf A,,3\nB,x,4\nB,y,5\nOf B,,9\n"
DATED = "sent,paid,promo,n\n2024-01-05,2024-02-01,2024,2\n2023-01-05,2024-02-02,June,3\n2024-03-05,2024-03-06,June,4\n"


@pytest.mark.parametrize(
    ("content", "question", "said"),
    [
        (TOTALS, "how many rows where spot is not missing", "number of rows where spot is not missing: 2 (2 of 4 rows)."),
        (FIRST, "total n where item is not missing", "sum of n where item is not missing: 15 (4 of 7 rows)."),
        ("who\nZürich\nB\n", "how many rows where who is ZURICH", "who is Zürich: 1 (1 of 2 rows)."),
        ("who\nŁódź\nB\n", "how many rows where who is łódz", "who is Łódź: 1 (1 of 2 rows)."),
        ("who\tn\nA\t500\nB\t1500\n", "how many rows had n above 1,000", "number of rows where n > 1000: 1 (1 of 2 rows)."),
        (TOTALS.replace("TOTAL,,9", "D,,8"), "how many rows", "number of rows: 4 (4 of 4 rows)."),
        (
            DATED,
            "total n where sent since 2024-01 and sent until 2024-02",
            "sum of n where sent >= 2024-01 and sent <= 2024-02: 2 (1 of 3 rows).",
        ),
        (DATED, "how many rows where sent on 2024-01-05", "number of rows where sent is 2024-01-05: 1 (1 of 3 rows)."),
        ("run,n\nEasy,1\neasy,2\nLong,3\n", "total n per run", "(3 of 3 rows, told apart: 'Easy', 'easy'):"),
        ("who;n;sum\nA;10;100,50\nB;20;250,00\nC;30;49,50\nAll;60;400,10\n", "total sum", "with sums of others in n"),
        ("who;n;sum\nA;10;100,50\nB;20;250,00\nC;30;49,50\nAll;60;400,10\n", "how many rows", "1 of them with sums of others in n"),
        ("ward,n,cost\nA,10,100\nB,20,240\nC,30,260\nØ,20,200\n", "total n", "with the mean of all others"),
        ("skier,jump,n\nA,1,12\nA,2,11\nB,1,15\nB,2,12\nC,1,12\n", "highest n per skier", "- C: 12"),
        ("ward,n\nA,10\nB,20\nC,31\nMaximum,31\nMinimum,10\n", "highest n", "called 'Maximum'"),
        ("group,n\nA,1\nA or B,2\nB,4\n", 'total n where group is "A or B"', ": 2 (1 of 3 rows)"),
        ("group,n\nA,1\nA or B,2\nB,4\n", "total n where group is A or B", ": 2 (1 of 3 rows)"),
        ("item,butter (kg)\nZopf,0.25\nTart,0.75\n", "total butter", ": 1 (2 of 2 rows)"),
        ("a,n\nx,1\ny,2\n", "total n in data/t.csv", ": 3 (2 of 2 rows)"),
        ("a;n\nx;1,5\ny;2\n", "total n in 't.csv'", ": 3.5 (2 of 2 rows)"),
        (
            "at;n;paid\n30.12.24;3;2024-11-02\n31.12.24;4;2024-12-05\n",
            "total n in December 2024",
            "2 columns that the date may be of: at, paid",
        ),
        (
            "at;n;paid\n30.12.24;3;2024-11-02\n31.12.24;4;2024-12-05\n",
            "total n where paid on 2024-12",
            "sum of n where paid is 2024-12: 4",
        ),
        ("at;n\n30.12.2024 08:00;3\n31.12.2024 09:30;4\n", "total n since 31 December 2024", "sum of n where at >= 2024-12-31: 4"),
        ("at;n\n31 December 2024 09:30:15;4\n1 January 2025 08:00:00;3\n", "total n per year", "- 2024: 4\n- 2025: 3"),
        ("at;n\na;0,249\nb;-0,113\nc;0,900\n", "total n", "sum of n: 1.036 (3 of 3 rows)."),
        ("at;n\na;1,249\nb;2,900\n", "total n", "n can be read in two ways"),
        (
            "shop,amount\nA,1\nB,2\nC,2\n",
            "which shop has the highest total amount",
            "- B: 2\n1 more of 3 with the same figure as the last of these.",
        ),
        ("shop,n\nA,1\nA,1\nA,5\nB,1\n", "minimum n where shop is A", "; 2 of these 3 rows have it)."),
        ("n\n5\n-\n-\n-\n7\n", "total n", ": 12 (2 of 5 rows; left out: 3 without n ('-'))."),
        ("n\n−1\n2\n3502.5\n", "total n", ": 3503.5 (3 of 3 rows)."),
        ("who,n\nTotal Energies,120\nB,180\nTotal Energies,155\nC,150\n", "total n", ": 605 (4 of 4 rows)."),
        ("item,worth\na,$450K\nb,$120K\n", "total worth", ": 570 (2 of 2 rows, in $K)."),
        ("courier,parcels\nZoe,3\nZoë,4\nMax,5\n", "how many rows where parcels above 4 and courier is Zoe", ": 0 (0 of 3 rows)."),
        ("Year,n\n2021,7\n2021,9\n2022,5\n", "average n per year", "of the sum of each Year"),
        ("Year,n\n2021,7\n2021,9\n2022,5\n", "average n by year", "- 2021: 8"),
        ("country,total\nDE,1\nFR,2\n", "total per country", "'total per country' is not understood. What to compute is said"),
        ("country,total\nDE,1\nFR,2\n", "total total per country", "DE: 1"),
        ("shop,discount\nA,10%\nB,5%\nC,10%\n", "how many rows have a discount of 10", ": 2 (2 of 3 rows, discount in %)."),
        ("item,n\na,21.329\nb,1.500\n", "total n", "sum of n: 22.829 (2 of 2 rows)."),
        ('item,n\na,"1,234"\nb,"2,500"\n', "total n", "sum of n: 3734 (2 of 2 rows)."),
        ("item,n\na,21.329\nb,1.5\n", "total n", "sum of n: 22.829 (2 of 2 rows)."),
        ("Ann,3\nBen,5\n", "how many rows", "The first line of t.csv is taken for names, and '3' is none."),
        ("shop,2023,2024\nA,3,4\n", "total 2024", "sum of 2024: 4 (1 of 1 rows)."),
        ("who,n,m\nA,5,1\nB,,2\nC,,7\nD,,3\nE,5,4\n", "total m", "sum of m: 17 (5 of 5 rows)."),
        ("who,floor\nA,EG\nB,3\n", "how many rows where floor is EG", "floor is EG: 1 (1 of 2 rows)."),
    ],
)
def test_what_is_told_of_small_tables(content: str, question: str, said: str, run: Run, tmp_path: Path) -> None:
    """Totals left out by what they lack, values told apart, `or` in a cell, times behind dates, and ties."""
    assert said in told_of(run, content, question, tmp_path)


@pytest.mark.parametrize("question", ["What's my longest run?", "How far did I run in total in 2024?"])
def test_who_has_read_the_table_does_not_decline(question: str, run: Run, tmp_path: Path) -> None:
    """A question about a table is what this agent does, whether its words name a column or not."""
    path = tmp_path / "t.csv"
    path.write_text("day,km\n2024-01-05,1\n")
    with pytest.raises(InvalidInputError, match="is not understood") as error:
        run(agent, question, [path])
    assert not isinstance(error.value, DeclinedError)


@pytest.mark.parametrize(
    ("content", "question", "said"),
    [
        (WRITTEN, "how many rows have code above 1000", "code is not read as numbers or dates: it has cells such as 'INV-1000'."),
        (WRITTEN, "how many rows have weight over 3 lb", "'lb' is not understood after 'how many rows have weight over 3'."),
        (WRITTEN, "how many rows have over_km over 3,5", "A number is written 1000, 1,000 or 1000.5, and alone."),
        (WRITTEN, "how many rows where over_km is n/a", 'Values of over_km are "2.5", "12", "30", "1", said as they are written;'),
        (
            WRITTEN,
            'how many rows where mood is "!" and fee above 3',
            "'\"!\" and fee above 3' is not understood after 'how many rows where mood is'",
        ),
        (
            WRITTEN,
            "which site has the most kilos",
            "are said of rows, 'the highest' and 'lowest' of figures, as in 'the highest total'.",
        ),
        ("site;n\nA;1.000\nB;2,5\n", "how many rows have n over 1.000", "1.000 can be read in two ways"),
        ('n\n"1,5"\n"2,125"\n', "total n", "'2,125' has a sign for thousands or decimals"),
        ("n\n1 kg\n1 g\n", "total n", "n mixes numbers with 'g' and 'kg'; nothing is converted."),
        (
            "who;n\nA;1\nB;2\nC;3\nTotal;6\n",
            "average n",
            "t.csv has rows called 'Total', that may hold totals or means: 'Total, 6'. Take",
        ),
        (FIRST, "total n", "means: 'All, 15'; 'Of A, 6'; 'Of B, 9'. Take"),
        (SUBTOTALS, "total n", "means: 'Of A, 3'; 'Of B, 9'. Take"),
        (SUBTOTALS + "All,,12\n", "total n per who", "means: 'Of A, 3'; 'Of B, 9'; 'All, 12'."),
        ("who,n\nAll,42\nA,10\nB,20\nC,12\n", "total n", "sums of others in n, that may hold totals or means: 'All, 42'."),
        ("who,n\nA,1\nwho,n\nB,2\n", "how many rows", "t.csv has a line that may name columns: 'who, n'."),
        (
            "# Depot, as of 2 April\nday,who,n\n2024-01-01,A,1\n2024-01-02,B,2\n",
            "total n",
            "may be a remark above the names. The first line is taken for the names of columns: '# Depot, ",
        ),
        ("n\n$5\n$6\n$7\nCHF 4.95\n", "total n", "n holds numbers, and 'CHF 4.95', which is not read as one."),
        ("n\n5\n6\n7\nabout 8\n", "total n", "n holds numbers, and 'about 8', which is not read as one."),
        (DATED, "how many rows in 2024", "3 columns that the date may be of: sent, paid, promo."),
        (
            DATED,
            "how many rows in 31 February 2024",
            "'31 February 2024' is not understood after 'how many rows in'. That is not a date of the calendar.",
        ),
        (DATED, "total n where sent around May", 'Values of sent are "2024-01-05", "2023-01-05", "2024-03-05", said as'),
        (
            "at,n\n09:00,1\n12:00,2\n",
            "how many rows where at is after 10:00",
            "at is not read as dates: it has cells such as '09:00'.",
        ),
        ("n,n\n1,2\n", "total n", "or change their names in the file."),
        (
            "at,n\n31.12.24,1\n",
            "total n since 2020",
            "at has dates that are not read, or not all in one form and zone: '31.12.24'",
        ),
        ("year,n\n2020,1\n", "total n since 2020", "year is not read as dates: it has cells such as '2020'."),
        ("year,at,n\n2020,2024-01-02,1\n", "total n per year", "2 columns that the date may be of: at, year."),
        *(
            (f"m,n\n{cell},1\n{cell},2\n", "total n in 2024", "no column that is read as one of dates")
            for cell in ("Mar 2024", "20240331", "45382")
        ),
        ('who,n\nA,"2,000"\nB,"1,23,456"\nC,"12,34,567"\n', "total n", "it has cells such as '1,23,456'"),
        ("city,n,x\nA,1,\nB,2,\n", "total x", "all its cells are missing."),
        ("city,n,x\nA,1,\nB,2,\n", "how many rows where x is 5", "Values of x are none,"),
        ("Berlin,12,2024-01-05\nHamburg,7,2024-02-01\nKiel,4,2024-03-01", "how many rows", "'12' is none. Write the names"),
        ("1,Berlin,3.5\n2,Kiel,4.5\n3,Ulm,5", "how many rows", "'1' is none"),
        ("n\n999999999999999\n0.1\n0.2", "total n", "too large to be added up exactly"),
        (
            "who,n\nA,5\nB,7",
            "top 1 who by lowest n",
            "'lowest n' is not understood after 'top 1 who by'. Say 'by number of rows', 'by minimum COLUMN'",
        ),
        ("code,n\n55,1\nx5.6,2\n5-5,3", "total n where code is 5.5", "Values of code are"),
        ("n,v\n1,(13.50)\n2,2\n3,3", "total v", "v holds numbers, and '(13.50)', which is not read as one."),
        ("n,v\n1,01.10\n2,1.1", "total v", "v is not read as numbers or dates: it has cells such as '01.10'."),
        ("n,v\n1,1'000\n2,2\n3,3", "total v", "which is not read as one."),
        ("v,n\n3.1,1\n3.10,2\n", "total n by v", "v has '3.1' and '3.10', which are one number, or two names"),
        ("v,n\n" + "a,999999999999999\n" * 12_000, "sum of n", "n holds numbers that are too large"),
        ("who,fill\nA,70 %\nB,80 %\n", "who has a fill of 80 % or more", "80 % or more' is not understood. A question"),
        ("run,n\nEasy,1\neasy,2\nLong,3\n", "top 2 run by total n", "would part what may belong together: 'Easy', 'easy'."),
        ("run,n\nEasy,1\nLong,3\nchecked by Bo\n", "how many rows", "a line of 1 instead of 2 cells: 'checked by Bo'."),
        ('run,n\n"Easy, flat",1\nLong,3\n"a, b"\n', "how many rows", "a line of 1 instead of 2 cells: 'a, b'."),
        ("name,score,score\na,1,2\n", "average score", "'score' (column 2) and 'score' (column 3)"),
        ("who,Weight (kg),Weight (lb)\na,1,2\n", "average weight", "'Weight (kg)' (column 2) and 'Weight (lb)' (column 3)"),
        ("sent,paid,n\n2024-01-01,2024-02-01,1\n", "total n in 2024-01", "2 columns that the date may be of: sent, paid"),
        ("date,n\n03/04/2024,1\n05/06/2024,2\n", "total n in 2024-03", "begin with the day or with the month"),
        ("who;n\na;1.234\nb;2.500\n", "total n", "has a sign for thousands or decimals"),
        (
            "city,year,at,n\nRome,2024,2024-05-05,1\nLima,,2023-01-01,2\n",
            "total n in 2024",
            "2 columns that the date may be of: at, year",
        ),
        ("who,n\na,$5\nb,€7\n", "total n", "mixes numbers with"),
        ("status,n\npaid,1\nnot paid,2\n", "total n where status is not paid", 'Say "not paid" in quotes.'),
        ("status,n\non,1\noff,2\n", "total n where status is on", 'Say "on" in quotes.'),
    ],
)
def test_a_reason_is_true_of_the_cells(content: str, question: str, said: str, run: Run, tmp_path: Path) -> None:
    """Codes are no amounts, a line of totals is none of the rows, and what could stand where reading stopped is said."""
    assert said in told_of(run, content, question, tmp_path)


@pytest.mark.parametrize(("key", "expected"), [("year of at", {"2023": 2, "2024": 5}), ('"year"', {"2020": 3, "2021": 4})])
def test_a_column_that_is_called_like_a_span_of_time(key: str, expected: dict[str, float], run: Run, tmp_path: Path) -> None:
    """Either reading can be said."""
    content = "year,at,n\n2020,2024-01-02,1\n2021,2024-01-03,4\n2020,2023-05-06,2\n"
    assert expected.items() <= figures(told_of(run, content, f"total n per {key}", tmp_path)).items()


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("Jars", "jar"),
        ("box", "boxes"),
        ("Companies", "company"),
        ("city", "cities"),
        ("Shoes", "shoe"),
        ("# of bags", "# of bags"),
    ],
)
def test_a_name_is_said_in_the_singular_or_the_plural(column: str, said: str, run: Run, tmp_path: Path) -> None:
    """Whichever of them the file has."""
    assert figure(told_of(run, f"{column},n\n2,1\n3,4\n", f"total {said}", tmp_path)) == 5


def test_the_head_of_a_table_names_the_unit(run: Run, tmp_path: Path) -> None:
    """Who has the table alone knows what its figures are of."""
    path = tmp_path / "t.csv"
    path.write_text("shop,weight\nA,3 kg\nB,5 kg\nA,1 kg\n")
    assert run(agent, "total weight per shop", [path]).files == {
        "sum-of-weight-in-kg-by-shop.csv": b"shop,sum of weight in kg\nA,4\nB,5\n"
    }


SCORES = "who,town,score,seen\nAda,Mill Town,0,2024-05\nBen,Mill Town,5,2024-06\nCy,Sea Side,7,2024-07\nDi,Sea Side,5,2024-07\n"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        *((f"how many rows where score {sign} 5", "score is not 5: 2 (") for sign in ("!=", "<>", "≠", "is not")),
        *((f"how many rows where score {sign} 5", "score >= 5: 3 (") for sign in (">=", "≥")),
        *((f"how many rows where score {sign} 5", "score <= 5: 3 (") for sign in ("<=", "≤")),
        *((f"how many rows where score{sign} 5", "score is 5: 2 (") for sign in (" ==", ":", " =")),
        ("how many rows where score > −1", "score > -1: 4 ("),
        ("how many rows per town where town != 'Mill Town'", "- Sea Side: 2"),
        ("total score per town where town <> Sea Side", "- Mill Town: 5"),
    ],
)
def test_signs_of_comparison_are_read(asked: str, said: str, run: Run, tmp_path: Path) -> None:
    """As programmers and mathematicians write them, of numbers and of words."""
    assert said in told_of(run, SCORES, asked, tmp_path)


@pytest.mark.parametrize(
    "sign", ["=>", "=<", ">>", "!>", "/=", "!", "~", "±", "$", "not >", "not <", "-", "#", "^", "@", "%", "*", "+-", "?="]
)
@pytest.mark.parametrize("value", ["score {} 5", "score is {}5", "town {} Sea Side", "town is {}Sea Side"])
def test_no_sign_before_a_value_is_passed_over(sign: str, value: str, run: Run, tmp_path: Path) -> None:
    """It may turn the condition round: what is no part of the value is not understood."""
    path = tmp_path / "t.csv"
    path.write_text(SCORES)
    if (sign, value) != ("-", "score is {}5"):  # that is a number
        with pytest.raises(InvalidInputError):
            run(agent, f"how many rows where {value.format(sign)}", [path])


@pytest.mark.parametrize(
    ("rows", "asked"),
    [
        ("team,who,pts\nRed,Al,3\nRed,Bo,4\nRed,all,7\nBlue,Cy,5\nBlue,all,5\nGreen,Di,2\nGreen,Ed,6\nGreen,all,8", "total pts"),
        ("team,pts\nAl,3\nBo,4\nReds,7\nCy,5\nBlues,5\nDi,2\nEd,6\nGreens,8", "total pts"),
        ("part,n\nFruit,61\n- Apples,21\n- Pears,40\nVegetables,97\n- Beans,31\n- Kale,66", "total n"),
        (
            "land,area,town,n\nF,,,300\nF,Alsace,,120\nF,Alsace,Colmar,50\nF,Alsace,Metz,70\nF,Loire,,180\nF,Loire,Nantes,180",
            "total n per area",
        ),
        (
            "land,sex,n\nNor,Both,1000\nNor,Male,490\nNor,Female,510\nSud,Both,700\nSud,Male,300\nSud,Female,400",
            "total n where land is Nor",
        ),
        (
            "land,year,sex,n\nA,1,all,140\nA,1,m,60\nA,1,f,80\nB,1,all,95\nB,1,m,41\nB,1,f,54\nB,2,all,90\nB,2,m,39\nB,2,f,51",
            "total n",
        ),
        ("land,year,n\nA,2021,120\nB,2021,340\nWorld,2021,460\nA,2022,110\nB,2022,250\nWorld,2022,360", "total n per year"),
        ("land,year,n\nA,2021,120\nA,2022,110\nB,2021,340\nB,2022,250\nWorld,2021,460\nWorld,2022,360", "total n per year"),
        ("plant,jan,feb\nHydro,10,12\nUpper,6,7\nLower,4,5\nWind,20,14\nNorth,12,8\nSouth,8,6", "total jan"),
        ("party,votes\nRed,4012\nBlue,3544\nGreen,2011\nValid,9567\nInvalid,311\nCast,9878", "total votes"),
        ("part,cost\nEinkauf,1200.50\nVersand,800.25\nAlle Abteilungen,2600.75\nLager,600.00", "total cost"),
        ("run,seconds\n1,10\n2,14\n3,12\nMean,12", "total seconds"),
    ],
)
def test_rows_that_hold_sums_are_found_wherever_they_stand(rows: str, asked: str, run: Run, tmp_path: Path) -> None:
    """Before what they sum, behind or among it, called so or not, and of one row beside others."""
    assert re.match(r"t\.csv has rows (with sums of others|called 'Mean')", told_of(run, rows, asked, tmp_path))


@pytest.mark.parametrize(
    ("rows", "asked", "said"),
    [
        (
            "who,town,came,n\nBen,Ulm,2024-05-03,4\nCy,Ulm,2024-05-04,6\nDi,Bonn,2024-05-05,2\nEd,Bonn,,5",
            "total n",
            "17 (4 of 4 rows)",
        ),
        ("land,Visits last year\nA,0\nB,10\nC,4", "total visits last year", "sum of Visits last year: 14"),
        ("name,n,m\np1,-10,1\np2,10,1\np3,25,1\np4,-25,1\np5,0,1", "how many rows where m is 1", "rows where m is 1: 5"),
        ("side,txn,n\nDebit,1,50\nCredit,1,50\nDebit,2,80\nCredit,2,80", "total n where side is Debit", "130"),
        ("name,n\na,1\nb,6\nc,2\nd,3", "total n", "sum of n: 12"),
        ("bird,site,n\nWren,A,2\nKite,A,1\nTern,A,1\nWren,B,1\nKite,B,1\nTern,B,0\nTern,A,3", "total n", "sum of n: 9"),
        ("part,2021,2022\nA,5,6\nB,7,9", "total 2022", "sum of 2022: 15"),
    ],
)
def test_rows_like_others_are_counted(rows: str, asked: str, said: str, run: Run, tmp_path: Path) -> None:
    """A row that waits for a date, counts of a year, a zero, two sides that balance, and what may be a sum by chance."""
    assert said in told_of(run, rows + "\n", asked, tmp_path)


def test_groups_of_a_size_that_others_add_up_to_are_no_sums(run: Run, tmp_path: Path) -> None:
    """Each of so many plants is measured in each of so many weeks: their weeks add up alike."""
    plants = ["Pepper"] * 4 + ["Basil"] * 2 + ["Mint"] * 2
    rows = [f"P{at},{plant},{week},{10 * week + at + 0.5}" for at, plant in enumerate(plants) for week in (1, 2, 3)]
    content = "\n".join(["plant,species,week,height", *rows])
    assert "- 2: 24\n" in told_of(run, content, "average height by week", tmp_path)
    assert "(8 of 24 rows)" in told_of(run, content, "how many rows where week is 2", tmp_path)


@pytest.mark.parametrize(
    ("content", "question", "named"),
    [
        ("at;n\nNord;1.204,5\nSüd;2.310,4\nWest;988,9\nOst;455,1\nAlles;4.959\n", "total n", "'Alles, 4.959'"),
        ('at,n\na,"1,204.25"\nb,"2,310.50"\nc,988.75\nAll,"4,504"\n', "average n", "'All, 4,504'"),
        (
            "y,at,n\n1,a,1034\n1,b,2077\n1,ab,3111\n1,c,588\n2,a,1201\n2,b,2533\n2,ab,3734\n2,c,641\n",
            "total n by y",
            "'2, ab, 3734'",
        ),
        ("y,at,n\n1,ab,3111\n1,a,1034\n1,b,2077\n1,c,588\n2,ab,3734\n2,a,1201\n2,b,2533\n2,c,641\n", "total n", "'1, ab, 3111'"),
        ("at,n\nhard,510\nlaptops,300\nscreens,210\ntravel,160\ntrain,95\nhotel,65\nfirm,670\n", "total n", "'firm, 670'"),
        ("at,n\nfirm,670\nlaptops,300\nscreens,210\nhard,510\ntrain,95\nhotel,65\ntravel,160\n", "total n", "'firm, 670'"),
        ("at,n\nsales,1000\ncosts,-400\ngross,600\nwages,-250\nebit,350\ntax,-100\nnet,250\n", "total n", "'ebit, 350'"),
        ("at,n\na,120\nb,180\nc,150\nTotal EUR,455\n", "total n", "'Total EUR, 455'"),
    ],
)
def test_sums_stand_anywhere(content: str, question: str, named: str, run: Run, tmp_path: Path) -> None:
    """Rounded beside signs for thousands, of a part of each group, before and behind all, and one after the other."""
    said = told_of(run, content, question, tmp_path)
    assert said.startswith("t.csv has rows ") and named in said


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        (
            "N,a,1726.53\nN,b,1167.07\nN,R,2893.60\nS,c,3872.62\nS,R,3872.62\nR,R,6766.22",
            "'N, R, 2893.60'; 'S, R, 3872.62'; 'R, R, ",
        ),
        ("N,a,1726.53\nN,b,1167.07\nN,,2893.60\nS,c,3872.62\nS,,3872.62\n,,6766.22", "'N, 2893.60'; 'S, 3872.62'; '6766.22'"),
        ("N,a,155.6\nN,all N,155.6\nS,c,92.1\nS,d,228.4\nS,all S,320.5", "'N, all N, 155.6'; 'S, all S, 320.5'"),
        ("R,R,992\nN,R,392\nN,a,256\nN,b,136\nS,R,600\nS,c,600", "'R, R, 992'; 'N, R, 392'; 'S, R, 600'"),
        ("a,Sales,4000\nb,Other,1100\nc,Income,5100\nd,Goods,2200\ne,Wages,500\nf,Costs,2700\ng,Profit,2400", "'c, Income, 5100'"),
        ("a,Income,5130.50\nb,Costs,2610.25\nc,Profit,2520.25", "'a, Income, 5130.50'"),
        ("a,x,1210.50\nb,y,317.25\nc,x,804.75\nd,y,618.30\ne,both,1423.05", "'e, both, 1423.05'"),
    ],
)
@pytest.mark.parametrize("question", ["total n", "how many rows where n above 100"])
def test_sums_of_one_row_and_what_is_left_are_sums(rows: str, named: str, question: str, run: Run, tmp_path: Path) -> None:
    """A group of one row has its number again as its sum, which a grand total counts once; a profit is no further row."""
    said = told_of(run, f"place,what,n\n{rows}\n", question, tmp_path)
    assert said.startswith("t.csv has rows with sums of others in n") and named in said


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("A,20.1\nB,19.4\nC,22.7\nD,18.3\nØ,20.125", "that may hold totals or means: 'Ø, 20.125'"),
        ("A,10\nB,20\nC,31\nD,7\nMaximum,31\nMinimum,7\nAvg,17\nTot.,68", "'Maximum, 31'; 'Minimum, 7'; 'Avg, 17' and 1 more"),
        (
            "A,123.4\nB,310.05\nC,250.75\nD,447.2\nE,81.35\nSchnitt,242.55\nSumme,1212.75",
            "means: 'Schnitt, 242.55'; 'Summe, 1212.75'.",
        ),
        ("Gesamt,1212.75\nSchnitt,242.55\nA,123.4\nB,310.05\nC,250.75\nD,447.2\nE,81.35", "'Gesamt, 1212.75'; 'Schnitt, 242.55'."),
        ("A,12\nB,31\nC,25\nD,44\nSumme,112\nSchnitt,28", "'Summe, 112'; 'Schnitt, 28'."),
        ("A,22\nB,31\nC,15\nD,24\nE,32\nF,19\nG,28\nSchnitt,24.4", "'Schnitt, 24.4'."),
        ("A,10\nB,20\nC,31\nMax,44", ": 26.25 (4 of 4 rows)."),
        ("A,10\nB,20\nC,31\nMax,10", ": 17.75 (4 of 4 rows)."),
    ],
)
def test_figures_of_all_others_are_no_rows(rows: str, said: str, run: Run, tmp_path: Path) -> None:
    """A mean in the last row, and what is called by a figure's name; `Max` is somebody's name."""
    assert said in told_of(run, f"who,n\n{rows}\n", "average n", tmp_path)


@pytest.mark.parametrize(
    ("content", "question", "said"),
    [
        (
            "R,S,n\nN,a,1726.53\nN,b,1167.07\nN,R,2893.60\nS,,3872.62\nS,R,3872.62\nR,R,6766.22\n",
            "how many rows",
            ": 6 (6 of 6 rows, 3 of them with sums of others in n, such as 'N, R, 2893.60'; 'S, R, 3872.62'; 'R, R, 6766.22').",
        ),
        ("R,S,n\nN,a,5\nN,b,7\nN,c,4\nS,,6\n", "how many rows", "4 (4 of 4 rows, 1 of them without S, which all others have"),
        (SUBTOTALS, "how many rows", "2 of them with sums of others in n, such as 'Of A, 3'; 'Of B, 9'"),
        (TOTALS, "how many rows per who where spot is missing", "(2 of 4 rows, 1 of them called 'TOTAL', such as 'TOTAL, 9'):"),
        (TOTALS, "number of distinct who", ": 4 (4 of 4 rows, 1 of them called 'TOTAL', such as 'TOTAL, 9')."),
    ],
)
def test_who_counts_rows_is_told_of_every_line_of_totals(content: str, question: str, said: str, run: Run, tmp_path: Path) -> None:
    """And may count them."""
    assert said in told_of(run, content, question, tmp_path)


@pytest.mark.parametrize(("name", "cell"), [("weight (kg)", "{} g"), ("price (EUR)", "${}"), ("% [m]", "{} cm")])
def test_the_unit_of_the_cells_counts_and_not_that_of_the_name(name: str, cell: str, run: Run, tmp_path: Path) -> None:
    """They may differ, and nothing is converted: a number is said without a unit, which the answer names."""
    content = f"who,{name}\nA,{cell.format(120)}\nB,{cell.format(180)}\n"
    said = told_of(run, content, f"how many rows where {name} above 150", tmp_path)
    assert f": 1 (1 of 2 rows, {name} in {cell.format('').strip()})." in said
    assert "'kg' is not understood" in told_of(run, content, f"how many rows where {name} above 150 kg", tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("Name,Weight,Price\n,kg,EUR\nA,3,5\nB,4,6\n", "t.csv has a line that may name columns: 'kg, EUR'."),
        ("Report,of March\nName,Weight\nA,3\nB,4\n", "t.csv has a line that may name columns: 'Name, Weight'."),
        ("Report 2024,\nName,Weight\nA,3\nB,4\n", "does not name the column of 'Weight'."),
        (",Sales,,Costs,\nLand,2022,2023,2022,2023\nN,1,2,3,4\nS,5,6,7,8\n", "does not name the column of '2023'."),
        ("Land,Sales,Sales,Tax\n,2022,2023,2022\nN,1,2,3\nS,5,6,7\nE,2,3,4\n", "1 of them without Land, which all others have"),
    ],
)
def test_names_stand_in_one_line(content: str, said: str, run: Run, tmp_path: Path) -> None:
    """A title above them, or a second line of them, is none of the rows."""
    assert said in told_of(run, content, "how many rows", tmp_path)


def test_a_number_is_compared_with_amounts_of_one_currency(run: Run, tmp_path: Path) -> None:
    """Whatever rows it leaves."""
    path = tmp_path / "t.csv"
    path.write_text("who,price,currency,at\nA,5,EUR,2024-05-01\nB,7,USD,2024-06-01\n")
    for question in (
        "how many rows where price above 6",
        "how many rows per who where price above 6",
        "maximum price where price above 6",
    ):
        with pytest.raises(InvalidInputError, match="currency tells of EUR and USD in these rows"):
            run(agent, question, [path])
    for condition in ("currency is USD", "at since 2024-06"):
        assert ": 1 (1 of" in run(agent, f"how many rows where price above 6 and {condition}", [path]).text


def test_figures_of_several_units_are_not_mixed(run: Run, tmp_path: Path) -> None:
    """Where another column tells the unit, each unit has a figure of its own, unless it is said that it is none."""
    path = tmp_path / "t.csv"
    path.write_text("n,Currency,Unit price\n10,EUR,€1.5\n12,USD,€2.5\n7,EUR,€3.5\n")
    for question in ("total n", "how many rows where n above 8", "maximum n where n above 8"):
        with pytest.raises(
            InvalidInputError, match=r"Currency tells of EUR and USD .* Say 'where Currency is EUR' or 'per Currency'"
        ):
            run(agent, question, [path])
    assert run(agent, "total n per currency", [path]).text.endswith("- EUR: 17\n- USD: 12")
    assert run(agent, "total n where currency is EUR", [path]).text.endswith(": 17 (2 of 3 rows).")
    assert run(agent, "total n where currency is not missing", [path]).text.endswith(": 29 (3 of 3 rows).")
    assert run(agent, "how many rows", [path]).text.endswith(": 3 (3 of 3 rows).")


@pytest.mark.parametrize("name", ["Straße", "Größe", "Adresse", "Klasse", "Classe", "Box", "Batch", "Axe", "Plane"])
def test_columns_are_named_whatever_their_last_letters(name: str, run: Run, tmp_path: Path) -> None:
    """In the singular and the plural of English, and as they are written."""
    for said in (name, f"{name}s", name.replace("ß", "ss")):
        assert told_of(run, f"{name},n\na,1\nb,2\n", f"total n per {said}", tmp_path).endswith("- a: 1\n- b: 2")


def test_a_file_that_did_not_come_is_said_to_be_missing_beside_others(run: Run, tmp_path: Path) -> None:
    """Which of the others is meant instead is not asked."""
    paths = [tmp_path / name for name in ("a.csv", "b.csv")]
    for path in paths:
        path.write_text("n\n1\n2\n")
    with pytest.raises(InvalidInputError, match=r"c\.csv' did not come"):
        run(agent, "total n in c.csv", paths)


@pytest.mark.parametrize(
    "cells",
    [
        ("£450K", "£1.2M", "£380K"),
        ("$300K", "$5", "$7"),
        ("₹2 Cr", "₹50 Lakh", "₹3 Cr"),
        ("€5", "€6 million", "€7"),
        ("$5", "$5 CAD", "$7"),
        ("$5.00 CR", "$7.00 DR", "$2.00 CR"),
    ],
)
@pytest.mark.parametrize(
    "question", ["highest worth", "total worth", "how many rows have worth above 6", "how many rows per item where worth above 6"]
)
def test_what_stands_behind_an_amount_of_a_currency_counts(cells: tuple[str, ...], question: str, run: Run, tmp_path: Path) -> None:
    """A thousand, a credit or another currency is not passed over since a sign stands before the number."""
    path = tmp_path / "t.csv"
    path.write_text("item,worth\n" + "".join(f"i{at},{cell}\n" for at, cell in enumerate(cells)))
    with pytest.raises(InvalidInputError, match="worth mixes numbers with"):
        run(agent, question, [path])


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("total amt where from since 2024", "3 (2 of 3 rows)"),
        ("how many rows per name where from is 9999-12-31", "- B: 1"),
        ("total amt per year", "- 9999: 2"),
        ("latest from", "9999-12-31 (3 of 3 rows; its row: "),
        ("how many rows have from before 1600", "1 (1 of 3 rows)"),
    ],
)
def test_dates_of_any_year_are_dates(question: str, said: str, run: Run, tmp_path: Path) -> None:
    """9999-12-31 stands for an open end, and 1066 is a year, too."""
    assert said in told_of(run, "name,from,amt\nA,2024-01-01,1\nB,9999-12-31,2\nC,1066-10-14,4\n", question, tmp_path)


@pytest.mark.parametrize("named", ["in this CSV file", "in the table", "of the file", "in this file"])
def test_the_only_file_may_be_called_one(named: str, run: Run, tmp_path: Path) -> None:
    """Unless a column is called so: what is said of that is not passed over."""
    path = tmp_path / "t.csv"
    path.write_text("who,size\nA,1\nB,2\n")
    assert run(agent, f"average size {named}", [path]).text == "t.csv: average of size: 1.5 (2 of 2 rows)."
    path.write_text("file,table,size\nA,x,1\nB,y,2\n")
    with pytest.raises(InvalidInputError, match="is not understood"):
        run(agent, f"average size {named}", [path])


WORKED = "date,who,hours,temp,Total\n2024-01-01,A,3,20,10.5\n2024-01-01,B,4.5,21,20\n2024-01-02,A,2,19,33\n2024-02-03,C,1,20,14\n"


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("average hours per day", "'hours per day of date' may be of the rows of each day of date, of the sum of each day of date"),
        ("average hours per date", "Say 'by date' for the rows of each date."),
        ("average hours per month and who", "of the sum of each month of date"),
        ("average hours by day", "- 2024-01-01: 3.75"),
        ("average temp per day", "- 2024-01-01: 20.5"),
        ("average hours per who", "- A: 2.5"),
        ("top 2 who by total", "'total' is not understood after 'top 2 who by'. What to compute is said, and of which column"),
        ("which who has the highest total", "'total' is not understood after 'which who has the highest'."),
        ("which who has the highest total total", "- A: 43.5"),
    ],
)
def test_what_people_mean_by_an_average_per_day(question: str, said: str, run: Run, tmp_path: Path) -> None:
    """It may be that of its sums; and a column's name may be a figure's."""
    assert said in told_of(run, WORKED, question, tmp_path)


@pytest.mark.parametrize("name", ["uom", "UoM", "Unit of measure"])
def test_a_column_tells_units_however_it_is_written(name: str, run: Run, tmp_path: Path) -> None:
    """Its words may be parted by capitals that are none."""
    assert "tells of kg and g" in told_of(run, f"item,quantity,{name}\nA,2,kg\nB,750,g\nC,4.5,l\n", "total quantity", tmp_path)


@pytest.mark.parametrize(
    ("rows", "question", "said"),
    [
        ("A,10\nB,20\n\nStaff,Hours\nC,30", "total n", "has a line that may name columns: 'Staff, Hours'"),
        ("A,10\nB,20\nC,30\nD,TBC", "total n", "left out: 1 that cannot be read, such as 'TBC'"),
        ("A,20.5\nB,-9999\nC,21\nD,19\nE,20", "average n", "n is -9999 in 1 rows, which may stand for no number."),
        ("A,20.5\nB,-9999\nC,21\nD,19\nE,20", "average n where n is not -9999", ": 20.125 (4 of 5 rows)"),
        ("A,20.5\nB,-9999\nC,21\nD,19\nE,20", "how many rows where n is below 21", "n is -9999 in 1 rows"),
        ("A,20.5\nB,-9999\nC,21\nD,19\nE,20", "how many rows where n is below 21 and n is not -9999", ": 3 (3 of 5 rows)"),
        ("A,20.5\nB,-9999\nC,21\nD,19\nE,20", "how many rows where n is above 19", ": 3 (3 of 5 rows)"),
        ("A,20.5\nB,-9999\nC,21\nD,19\nE,20", "lowest n where n is not missing", ": -9999 (5 of 5 rows; its row: "),
        ("A,1\nB,5\nC,3\nD,99\nE,4", "average n", "n is 99 in 1 rows, which may stand for no number."),
        ("A,0\nB,5\nC,3\nD,-9\nE,4", "total n", "n is -9 in 1 rows, which may stand for no number."),
        ("101,2\n102,3\nAnnex,5", "total n where who is not 101", "who is not 101: 8 (2 of 3 rows)."),
        ("A,870\nB,999\nC,950\nD,1000\nE,999", "highest n", "1000 (5 of 5 rows; its row: "),
    ],
)
def test_what_is_no_row_and_no_number(rows: str, question: str, said: str, run: Run, tmp_path: Path) -> None:
    """Names of another table's columns, and what stands for a number that is not there."""
    assert said in told_of(run, f"who,n\n{rows}\n", question, tmp_path)


def test_names_of_a_second_table(run: Run, tmp_path: Path) -> None:
    """Without an empty line above it."""
    for names, said in (
        ("staff,hours,pay", "may name columns: 'staff, hours, pay'."),
        ("C,closed,closed", "sum of sales: 41 (4 of 5 rows"),
    ):
        assert said in told_of(run, f"shop,sales,cost\nA,10,3\nB,20,4\n{names}\nC,5,2\nD,6,4\n", "total sales", tmp_path)


def test_rows_within_a_total_are_no_totals(run: Run, tmp_path: Path) -> None:
    """Two rows alike are none, nor is a row that happens to be the sum of others, where the total counts all of them."""
    rows = "name,qty\na,7\nb,9\nc,9\nd,2\ne,11\n"
    assert "rows called 'TOTAL'" in (said := told_of(run, f"{rows}TOTAL,38\n", "total qty", tmp_path)) and "'c, 9'" not in said
    assert ": 38 (5 of 6 rows)." in told_of(run, f"{rows}TOTAL,38\n", "total qty where name is not TOTAL", tmp_path)


@pytest.mark.parametrize("fuel", ["20.0 L", '"1,200"', "20 ha"])
def test_per_a_column_of_amounts_may_be_a_division(fuel: str, run: Run, tmp_path: Path) -> None:
    """However its numbers are written."""
    said = told_of(run, f"car,fuel,cost\nv1,{fuel},4\nv2,{fuel.replace('2', '3')},5\n", "average cost per fuel", tmp_path)
    assert "nothing is divided" in said


@pytest.mark.parametrize(
    ("content", "question", "said"),
    [
        (
            "Day,n\n15/01/2024 08:10,10\n15/01/2024 12:30,20\n16/01/2024 09:00,25\n",
            "which day has the highest total n",
            "- 2024-01-15: 30",
        ),
        ("Month,n\n2024-01-15,10\n2024-01-20,20\n2024-02-01,5\n", "total n per month", "- 2024-01: 30\n- 2024-02: 5"),
        ("Month,n\n2024-01-15,10\n2024-01-20,20\n2024-02-01,5\n", 'total n per "Month"', "- 2024-01-20: 20"),
    ],
)
def test_a_column_that_is_called_month_and_holds_dates_has_months(
    content: str, question: str, said: str, run: Run, tmp_path: Path
) -> None:
    """In quotes it is the column."""
    assert said in told_of(run, content, question, tmp_path)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("total n per region", "region may stand in the first row of each block alone."),
        ("total n where region is North", "Write it in each row, or say 'where region is not missing'"),
        ("total n per region where region is not missing", "- North: 5\n- South: 7"),
        ("how many rows where region is missing", ": 3 (3 of 5 rows"),
        ("total n", ": 31 (5 of 5 rows)."),
    ],
)
def test_labels_of_merged_cells_are_not_those_of_a_row_alone(question: str, said: str, run: Run, tmp_path: Path) -> None:
    """A spreadsheet writes such a cell in its first row; a few that lack one each do not make it so."""
    assert said in told_of(run, "region,n\nNorth,5\n,6\n,4\nSouth,7\n,9\n", question, tmp_path)
    assert "- North: 5" in told_of(run, "region,n\nNorth,5\n,6\nWest,4\nSouth,7\n", "total n per region", tmp_path)


def test_names_of_a_number_and_a_letter_are_names(run: Run, tmp_path: Path) -> None:
    """Such as of classes, for each of which there is a figure."""
    said = told_of(run, "pupil,class,maths\nAnn,7a,4\nBen,7b,6\nCy,7a,5\n", "average maths per class", tmp_path)
    assert "- 7a: 4.5\n- 7b: 6" in said


def test_a_balance_of_money_in_and_out_is_not_added_up(run: Run, tmp_path: Path) -> None:
    """Whichever end of it is the newest; what came in is."""
    lines = ["d1,,,100.00", "d2,20.50,,120.50", "d3,,30.00,90.50", "d4,10.00,,100.50", "d5,,5.25,95.25"]
    for rows in (lines, lines[::-1]):
        content = "\n".join(["day,in,out,left", *rows])
        assert "left is the sum of in less out so far" in told_of(run, content, "total left", tmp_path)
        assert ": 30.5 (2 of 5 rows" in told_of(run, content, "total in", tmp_path)


def test_a_wide_table_takes_no_minutes(tmp_path: Path) -> None:
    """Sums so far are looked for in time: one of 300 columns had everybody wait for two minutes, and was not answered."""
    rows = [[at, *(at * column % 97 for column in range(300))] for at in range(1, 40)]
    lines = [",".join(["n", *(f"c{column}" for column in range(300))]), *(",".join(map(str, row)) for row in rows)]
    (path := tmp_path / "t.csv").write_text("\n".join(lines))
    with bounded(20):
        found = answer(understand("total n", read_table(path)), read_table(path))
    assert f": {sum(range(1, 40))} (39 of 39 rows)" in found.text


def test_totals_by_words_are_looked_for_in_time_in_a_wide_table(tmp_path: Path) -> None:
    """In the column that is asked about: of a hundred columns of words and as many of numbers all took more than two minutes."""
    places, years = [f"place {at}" for at in range(20)], ["2023", "2024"]
    beside = [[f"{'aeiou'[at * (column + 3) % 5]},{at * column % 97}" for column in range(100)] for at in range(42)]
    found = [(place, year, str(at * at % 89 + 5)) for at, (place, year) in enumerate(product(places, years))]
    world = [("World", year, str(sum(int(number) for _, of, number in found if of == year))) for year in years]
    rows = [("place", "year", "n", *(f"word{at},n{at}" for at in range(100)))]
    rows += [(*row, *others) for row, others in zip((*found[:7], *world, *found[7:]), beside, strict=True)]
    (path := tmp_path / "t.csv").write_text("\n".join(map(",".join, rows)))
    with bounded(20), pytest.raises(InvalidInputError, match=r"with sums of others in n, .*'World, 2023"):
        answer(understand("total n", table := read_table(path)), table)


@pytest.mark.parametrize("question", ["latest price", "total n where price since 2024", "how many rows have price before 5"])
def test_what_is_said_of_times_is_said_of_no_numbers(question: str, run: Run, tmp_path: Path) -> None:
    """A highest number is no latest one, and a number such as 20240331 is none that a year comes before."""
    assert re.search("no dates|not read as dates", told_of(run, "item,price,n\na,20240331,1\nb,20230331,2\n", question, tmp_path))


@pytest.mark.parametrize("start", [0, 100])
def test_sums_so_far_are_not_added_up(start: int, run: Run, tmp_path: Path) -> None:
    """Whatever their column is called, and whatever there was before; those that they are of are."""
    path = tmp_path / "t.csv"
    sums = [5, 8, 15, 17, 21]
    path.write_text(
        "day,n,stock\n" + "".join(f"d{at},{b - a},{b + start}\n" for at, (a, b) in enumerate(zip([0, *sums], sums, strict=False)))
    )
    assert "stock is the sum of n so far, in each row; such are not added up. Say 'maximum stock'" in told(run, "total stock", path)
    assert ": 21 (5 of 5 rows)" in told(run, "total n", path)
    path.write_text("day,n,stock\nd1,,100\nd2,5,105\nd3,,105\nd4,-3,102\nd5,4,106\n")
    assert "stock is the sum of n so far" in told(run, "total stock", path)


def test_balances_of_several_accounts_are_not_added_up(run: Run, tmp_path: Path) -> None:
    """Wherever the lines of each of them stand among those of others."""
    rows = ["A,d1,10,10", "B,d1,5,105", "A,d2,-3,7", "B,d3,20,125", "A,d4,8,15", "B,d5,-25,100", "C,d5,40,40"]
    anew = ["a,d1,10,10", "a,d2,5,15", "a,d3,7,22", "a,d4,8,30", "a,d5,4,4", "a,d6,6,10", "a,d7,3,13", "a,d8,9,22"]
    for content in (rows, sorted(rows), [*reversed(rows)], anew):
        said = told_of(run, "\n".join(["account,day,amount,left", *content]), "total left per account", tmp_path)
        assert "left is the sum of amount so far" in said


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("A,5.5,EUR\nB,7,USD\nC,3,EUR\nD,2,USD", "W tells of EUR and USD in these rows"),
        ("A,5,€\nB,7,$\nC,3,€", "W tells of € and $ in these rows"),
        ("A,5,LHR\nB,7,JFK\nC,3,LHR\nD,3,JFK", "sum of n: 18"),
        ("A,5.5,EUR\nB,7,EUR\nC,3,EUR", "sum of n: 15.5"),
    ],
)
def test_currencies_are_told_by_how_they_are_written(rows: str, said: str, run: Run, tmp_path: Path) -> None:
    """In a column of any name: by their signs, or by codes right beside amounts with decimals."""
    assert said in told_of(run, f"who,n,W\n{rows}\n", "total n", tmp_path)


def test_a_rounded_figure_is_said_to_be_so(run: Run, tmp_path: Path) -> None:
    """An average stands with its sum and its rows, which later tasks calculate with."""
    content = "k,n,m\nA,10,0.123456\nB,10,0.123457\nC,11,\n"
    assert ": 31 / 3 ≈ 10.3333 (3 of 3 rows)." in told_of(run, content, "average n", tmp_path)
    assert ": 10.5 (2 of 3 rows)." in told_of(run, content, "average n where k is not A", tmp_path)
    assert ": ≈ 0.123456 (2 of 3 rows" in told_of(run, content, "median m", tmp_path)


def test_two_columns_side_by_side_are_no_one(run: Run, tmp_path: Path) -> None:
    """The first of them is not blamed for holding words."""
    said = told_of(run, "who,hours,billable\nA,3,yes\nB,4,no\n", "total billable hours per who", tmp_path)
    assert "'billable hours per who' is not understood after 'total'. Two columns stand side by side" in said


@pytest.mark.parametrize(
    ("content", "question"),
    [
        ("c,who,s\na,A,12\na,B,16\na,class mean,14\nb,C,11\nb,D,17\nb,class mean,14\n", "average s per c"),
        ("who,s\nA,12\nB,16\nclass mean,14\nC,11\nD,17\nE,9\nclass mean,12.3\n", "average s"),
        ("k,n,m\nA,120,33\nB,150,41\nC,90,28\nD,171,52\nMax,171,52\nMin,90,28\nCount,4,4\n", "total n"),
        ("k,n\nA,10\nB,22\nC,35\nD,13\nTotal,80\nMean,20\nSD,11.2\n", "total n where k is not Total and k is not Mean"),
        ("month,n,m\nJan,12,3\nFeb,15,4\nMar,9,2\nApr,17,5\nPrevious year,64,18\n", "total n"),
        ("year,n\n2019,12\n2020,15\n2021,9\n2022,17\nChange,5\n", "average n"),
        (
            "k,n\nA,10\nB,10\nsub,20\nC,35\nD,13\nother,48\nE,17\nF,1\nrest,18\nGrand total,86\n",
            'total n where k is not "Grand total"',
        ),
    ],
)
def test_lines_of_figures_are_no_rows(content: str, question: str, run: Run, tmp_path: Path) -> None:
    """Within groups or below others, also those that stay where the named one is left out, and behind a grand total."""
    assert "that may hold totals or means" in told_of(run, content, question, tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        "who,n\nAnn,3\nBen,9\nCid,7\nMax,8\n",
        "shop,price,n\nA,2,3\nB,2,9\nA,4,7\nB,4,8\n",
        "month,n\nJan,12\nFeb,15\nMar,9\nApr,17\n",
        "day,note,n\n2024-01-01,x,3\n2024-01-02,y,9\n2024-01-03,z,7\n2024-01-04,w,8\n",
    ],
)
def test_rows_like_others_are_no_lines_of_figures(content: str, run: Run, tmp_path: Path) -> None:
    """Nor is who is called Max."""
    assert "sum of n: " in told_of(run, content, "total n", tmp_path)


def test_headings_within_a_table_are_told(run: Run, tmp_path: Path) -> None:
    """Who counts rows learns of those that have one word alone."""
    said = told_of(run, "item,n,m\nFruit,,\napple,1,2\npear,2,3\nGreens,,\nleek,5,9\n", "how many rows", tmp_path)
    assert "2 of them with one word and no other cell, such as 'Fruit'; 'Greens'" in said


@pytest.mark.parametrize(
    ("content", "question", "is_told"),
    [
        ("Year,R,n\n2022,N,10\n,S,20\n2023,N,1\n,S,2\n", "total n per year", False),
        ("Year,R,n\n2022,N,10\n,S,20\n2023,N,1\n,S,2\n", "total n where year is 2022", False),
        ("Day,Ward,Nurse,n\n1,A,x,1\n,,y,2\n,B,x,3\n,,y,4\n2,A,x,1\n,,y,2\n,B,x,3\n,,y,4\n", "total n per ward", False),
        ("Order,State,n,sum\n#1,paid,1,9\n#1,,2,\n#2,paid,4,8\n#2,,1,\n#3,open,2,7\n", "total n per state", False),
        ("Order,State,n,sum\n#1,paid,1,9\n#1,,2,\n#2,paid,4,8\n#2,,1,\n#3,open,2,7\n", "total sum per state", True),
        ('ward,n\nA,3\n"""",4\nB,1\n"""",2\n', "total n where ward is A", False),
        ("Code,n\nX,1\n,2\nX,3\nX,1\n,1\nY,5\n", "total n per code", True),
    ],
)
def test_what_stands_in_the_first_row_of_a_block_is_no_rows_own(
    content: str, question: str, is_told: bool, run: Run, tmp_path: Path
) -> None:
    """Numbers, what comes again in each block, and ditto marks; figures that stand in those rows alone lose nothing."""
    said = told_of(run, content, question, tmp_path)
    assert ("first row of each block" in said, "sum of" in said) == (not is_told, is_told), said


def test_units_with_figures_in_them_are_no_row(run: Run, tmp_path: Path) -> None:
    """A line of units is found by what the lines below are."""
    assert "may name columns: 's, m3/h'" in told_of(run, "t,flow\ns,m3/h\n1,3\n2,5\n", "how many rows", tmp_path)


@pytest.mark.parametrize("when", ["in Q1 2024", "in 2024-Q1", "in January 2024"])
def test_a_time_that_another_column_holds_is_in_two_columns(when: str, run: Run, tmp_path: Path) -> None:
    """Whatever it is written like."""
    content = "Date,Quarter,Month,n\n2024-01-03,2023-Q4,December 2023,4\n2024-04-05,2024-Q1,January 2024,5\n"
    assert "has 2 columns that the date may be of" in told_of(run, content, f"total n {when}", tmp_path)


@pytest.mark.parametrize(
    ("content", "question", "way"),
    [
        ("Region,Sales,Total sales\nN,3,5\nS,4,6\n", "total sales per region", "'Total sales' is a column: say 'sum of …'"),
        ("k,n,Average n\nN,3,5\nS,4,6\n", "average n per k", "'Average n' is a column: say 'average of …'"),
        ("Year,n\n2021,3\n2022,4\n", "total n since 2022", "'where Year since YEAR'"),
        ("k,n\nA,3\nB,4\n", "total n since 2022", "'where COLUMN since YEAR'"),
        ("a,b\n2024-01-01,2024-02-01\n2024-02-01,2024-03-01\n", "how many rows in March 2024", "'where COLUMN in DATE'"),
    ],
)
def test_a_refusal_says_what_was_meant_in_a_form_that_is_read(
    content: str, question: str, way: str, run: Run, tmp_path: Path
) -> None:
    """Who follows it gets that figure, and no other."""
    assert way in told_of(run, content, question, tmp_path)
