"""The CSV analyst: its language means what pandas says, and what lies outside of it is refused by name."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import SupportsFloat

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answers import answer
from csv_analyst import agent
from ioa.errors import InvalidInputError
from questions import Question, Reader
from request import format_number
from tables import Table, read_table
from tests.rig.cpu_time import bounded
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


@pytest.mark.parametrize("seed", range(8))
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
        ("dollars", "average salary", 100250),
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


def test_a_wide_table_takes_no_minutes(tmp_path: Path) -> None:
    """Sums so far are looked for in time: one of 300 columns had everybody wait for two minutes, and was not answered."""
    rows = [[at, *(at * column % 97 for column in range(300))] for at in range(1, 40)]
    lines = [",".join(["n", *(f"c{column}" for column in range(300))]), *(",".join(map(str, row)) for row in rows)]
    (path := tmp_path / "t.csv").write_text("\n".join(lines))
    with bounded(20):
        found = answer(understand("total n", read_table(path)), read_table(path))
    assert f": {sum(range(1, 40))} (39 of 39 rows)" in found.text
