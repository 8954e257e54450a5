"""The CSV analyst on files it knows and files it has never seen; the truth is computed by pandas beside it."""

from __future__ import annotations

import io
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import SupportsFloat

import pandas as pd
import pytest

from csv_analyst import agent
from ioa.errors import InvalidInputError
from tests.unit.examples.agent_run import Run
from words import format_number


def figures(text: str) -> dict[str, float]:
    """Read the `- label: number` lines of an answer."""
    return {label: float(value) for label, value in re.findall(r"^- (.+): (-?[\d.]+)$", text, re.MULTILINE)}


def last_number(text: str) -> float:
    """Read the number an answer without groups ends in."""
    found = re.search(r": (-?[\d.]+?)(?: %[^:]*| \(in .*)?\.?$", text.splitlines()[0])
    assert found, text
    return float(found[1])


Truth = Callable[[pd.DataFrame], SupportsFloat]
SINGLE: list[tuple[str, Truth]] = [
    ("total revenue", lambda f: f.revenue.sum()),
    ("what is the overall turnover?", lambda f: f.revenue.sum()),
    ("compute the total sales in sales.csv", lambda f: f.revenue.sum()),
    ("average unit price", lambda f: f.unit_price.mean()),
    ("the mean of units", lambda f: f.units.mean()),
    ("median revenue for Electronics", lambda f: f[f.category == "Electronics"].revenue.median()),
    ("how many orders are there", lambda f: len(f)),
    ("number of rows where units are above 10", lambda f: (f.units > 10).sum()),
    ("count the orders with revenue of at least 2988", lambda f: (f.revenue >= 2988).sum()),
    ("how many units were sold in the North region", lambda f: f[f.region == "North"].units.sum()),
    ("how many laptops were sold", lambda f: f[f["product"] == "Laptop"].units.sum()),
    ("how many different products are there", lambda f: f["product"].nunique()),
    ("number of distinct products sold in the East", lambda f: f[f.region == "East"]["product"].nunique()),
    ("total revenue in March 2024", lambda f: f[f.date.str.startswith("2024-03")].revenue.sum()),
    ("total revenue in march", lambda f: f[f.date.str.startswith("2024-03")].revenue.sum()),
    ("revenue between January and March 2024", lambda f: f[f.date < "2024-04"].revenue.sum()),
    ("total revenue from 2024-02-10 to 2024-03-05", lambda f: f[f.date.between("2024-02-10", "2024-03-05")].revenue.sum()),
    ("units sold since October", lambda f: f[f.date >= "2024-10"].units.sum()),
    ("units before 2024-02-01", lambda f: f[f.date < "2024-02-01"].units.sum()),
    ("total units in the second quarter of 2024", lambda f: f[f.date.between("2024-04", "2024-06-31")].units.sum()),
    ("total revenue excluding laptops", lambda f: f[f["product"] != "Laptop"].revenue.sum()),
    ("revenue where region is not West", lambda f: f[f.region != "West"].revenue.sum()),
    ("total units between 2 and 4", lambda f: f[f.units.between(2, 4)].units.sum()),
    ("standard deviation of revenue", lambda f: f.revenue.std()),
    ("90th percentile of revenue", lambda f: f.revenue.quantile(0.9)),
    ("the highest revenue", lambda f: f.revenue.max()),
    ("minimum unit price", lambda f: f.unit_price.min()),
    ("correlation between units and revenue", lambda f: f.units.corr(f.revenue)),
    ("what share of the revenue comes from the North", lambda f: f[f.region == "North"].revenue.sum() / f.revenue.sum() * 100),
    ("percentage of orders from the East", lambda f: (f.region == "East").mean() * 100),
    ("average monthly revenue", lambda f: f.groupby(f.date.str[:7]).revenue.sum().mean()),
    ("how many days are in the data", lambda f: f.date.nunique()),
    ("what is the average number of units per order", lambda f: f.units.mean()),
    ("average revenue per order", lambda f: f.revenue.mean()),
    (
        "sum of units for phones in the West in June",
        lambda f: f[(f["product"] == "Phone") & (f.region == "West") & (f.date.str[:7] == "2024-06")].units.sum(),
    ),
]


@pytest.mark.parametrize(("question", "truth"), SINGLE)
def test_one_figure(question: str, truth: Truth, run: Run, data: Path) -> None:
    """A question for one figure is answered with that figure."""
    expected = float(truth(pd.read_csv(data / "sales.csv")))
    done = run(agent, question, [data / "sales.csv"])
    shown = done.text.split(" %")[0] if "%" in done.text else done.text
    assert last_number(shown) == pytest.approx(expected, rel=1e-5)


GROUPED: list[tuple[str, Callable[[pd.DataFrame], pd.Series]]] = [
    ("compute the total sales per region in sales.csv", lambda f: f.groupby("region").revenue.sum()),
    ("total revenue by product", lambda f: f.groupby("product").revenue.sum()),
    ("average units for each product category", lambda f: f.groupby("category").units.mean()),
    ("monthly revenue", lambda f: f.groupby(f.date.str[:7]).revenue.sum()),
    ("number of orders per region", lambda f: f.groupby("region").size()),
    ("compare North and South by revenue", lambda f: f[f.region.isin(["North", "South"])].groupby("region").revenue.sum()),
    ("top 3 products by revenue", lambda f: f.groupby("product").revenue.sum().nlargest(3)),
    ("bottom 2 regions by units in Q1", lambda f: f[f.date < "2024-04"].groupby("region").units.sum().nsmallest(2)),
    (
        "which product had the highest revenue in March 2024?",
        lambda f: f[f.date.str.startswith("2024-03")].groupby("product").revenue.sum().nlargest(1),
    ),
    ("which month had the lowest revenue", lambda f: f.groupby(f.date.str[:7]).revenue.sum().nsmallest(1)),
    ("the ten days with the highest revenue", lambda f: f.groupby("date").revenue.sum().nlargest(10)),
    ("rank the regions by revenue", lambda f: f.groupby("region").revenue.sum().sort_values(ascending=False)),
    ("what was the best month for revenue and how much was it?", lambda f: f.groupby(f.date.str[:7]).revenue.sum().nlargest(1)),
    ("which products were sold in the East", lambda f: f[f.region == "East"]["product"].value_counts()),
    ("max revenue per product", lambda f: f.groupby("product").revenue.max()),
    ("best-selling product", lambda f: f.groupby("product").units.sum().nlargest(1)),
    ("most common product", lambda f: f["product"].value_counts().head(1)),
    ("regions with total revenue above 200000", lambda f: f.groupby("region").revenue.sum().loc[lambda s: s > 200_000]),
    ("total revenue where units above 10 by region", lambda f: f[f.units > 10].groupby("region").revenue.sum()),
    ("revenue by category in descending order", lambda f: f.groupby("category").revenue.sum().sort_values(ascending=False)),
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
        ("total profit per region", "profit"),
        ("total revenue in Atlantis", "Atlantis"),
        ("total revenue for region Nort", "Did you mean North?"),
        ('total revenue where colour is "Red"', "Red"),
        ("revenue per colour", "colour"),
        ("make me a sandwich", "sandwich"),
        ("how many orders failed", "failed"),
        ("total revenue minus cost", "minus"),
        ("cumulative revenue by month", "cumulative"),
        ("number of orders with units above average", "above"),
        ("revenue per unit", "ratio"),
        ("average revenue of refunded products", "refunded"),
        ("total revenue in the last month", "last"),
        ("total revenue in 2019", "No row"),
    ],
)
def test_refuses_what_it_does_not_understand(question: str, said: str, run: Run, data: Path) -> None:
    """A name that the file does not hold is an error that names it, never an answer to another question."""
    with pytest.raises(InvalidInputError, match=re.escape(said)) as error:
        run(agent, question, [data / "sales.csv"])
    assert said == "No row" or "unit_price" in str(error.value)


REGIONS = ["Lakeside", "Old Town", "São Paulo", "Zürich", "R&D", "Naïve Quarter"]
NOUNS = ["plant", "crew", "vessel", "clinic", "branch_office", "Turbine Model", "harbourMaster"]
AMOUNTS = ["tonnage", "fuel_burned_l", "Output (kWh)", "visitorFee", "crop_yield", "Noise Level", "defects"]
OPERATIONS = {
    "total": "sum",
    "average": "mean",
    "median": "median",
    "maximum": "max",
    "minimum": "min",
    "standard deviation of": "std",
}


def _spoken(column: str) -> str:
    """Say a column's name as a person would: without its unit, underscores and capitals."""
    bare = re.sub(r"\(.*?\)|_l$", "", column)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", bare).replace("_", " ").strip().lower()


@pytest.mark.parametrize("seed", range(40))
def test_unseen_tables(seed: int, run: Run, tmp_path: Path) -> None:
    """Columns, values, delimiters and decimal signs that nobody foresaw give the figures that pandas gives."""
    rng = random.Random(seed)
    group, amount, other = rng.choice(NOUNS), *rng.sample(AMOUNTS, 2)
    size = rng.randint(5, 120)
    frame = pd.DataFrame(
        {
            group: [rng.choice(REGIONS) for _ in range(size)],
            amount: [round(rng.uniform(-50, 5000), 2) for _ in range(size)],
            other: [rng.randint(0, 90) for _ in range(size)],
            "logged_on": [f"20{rng.randint(21, 23)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}" for _ in range(size)],
        }
    )
    delimiter, decimal = rng.choice([(",", "."), (";", ","), ("\t", "."), ("|", "."), (";", ".")])
    encoding = rng.choice(["utf-8", "utf-8-sig", "cp1252", "utf-16"])
    path = tmp_path / "measurements.csv"
    path.write_bytes(frame.to_csv(index=False, sep=delimiter, decimal=decimal).encode(encoding))
    word, operation = rng.choice(list(OPERATIONS.items()))
    chosen, limit = frame[group].iloc[0], rng.randint(10, 80)

    grouped = run(agent, f"{word} {_spoken(amount)} per {_spoken(group)}", [path]).text
    filtered = run(agent, f"{word} {_spoken(amount)} for {_spoken(group)} {chosen.lower()}", [path]).text
    yearly = run(agent, f"total {_spoken(amount)} by year", [path]).text
    above = run(agent, f"how many rows have {_spoken(other)} above {limit}", [path]).text

    truth = frame.groupby(group)[amount].agg(operation)
    assert figures(grouped) == pytest.approx({label: value for label, value in truth.items() if value == value}, rel=1e-4, abs=1e-4)
    wanted = frame[frame[group] == chosen][amount].agg(operation)
    assert format_number(wanted) == format_number(wanted) and f": {format_number(wanted)}" in filtered
    totals = frame.groupby(frame.logged_on.str[:4])[amount].sum()
    assert figures(yearly) == pytest.approx(totals.to_dict(), rel=1e-6, abs=1e-4)
    assert last_number(above) == int((frame[other] > limit).sum())


MESSY = {
    "german": (
        "Kunde;Betrag (EUR);Datum\nMüller GmbH;1.234,50;01.02.2024\nSchäfer AG;99,90;15.02.2024\nMüller GmbH;12.000,00;31.03.2024\n"
    ),
    "dollars": 'who,salary\nAda,"$120,000"\nBob,"$80,500"\nCy,\n',
    "percent": "shop,discount\nA,5%\nB,2.5%\nC,n/a\n",
    "brackets": "item,balance\na,(12.50)\nb,20.00\n",
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
        ("german", "total betrag for Müller", 13234.5),
        ("german", "total betrag for mueller gmbh", 13234.5),
        ("german", "betrag in February 2024", 1334.4),
        ("dollars", "average salary", 100250),
        ("dollars", "number of missing salary", 1),
        ("percent", "average discount", 3.75),
        ("brackets", "total balance", 7.5),
        ("quoted", "sum of points", 7),
        ("quoted", "points of Lee; Bo", 3),
        ("booleans", "total hours of remote persons", 40),
        ("booleans", "how many are not remote", 1),
        ("invoices", "total amount of unpaid invoices", 399.5),
        ("invoices", "how many invoices were due in March 2024", 2),
        ("invoices", "number of invoices in 2023", 1),
        ("invoices", "which customer spent the most", 1300),
        ("invoices", "amount of invoice 1002", 300),
        ("invoices", "which customer has the most invoices", 2),
    ],
)
def test_messy_files(kind: str, question: str, expected: float, run: Run, tmp_path: Path) -> None:
    """Decimal commas, currency and percent signs, brackets, quotes, umlauts and empty cells are read as people mean them."""
    path = tmp_path / "messy.csv"
    path.write_text(MESSY[kind], encoding="utf-8")
    text = run(agent, question, [path]).text
    found = figures(text) or {"": float(re.findall(r"-?\d+(?:\.\d+)?", text.splitlines()[0].split(":", 2)[-1])[0])}
    assert next(iter(found.values())) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "empty"), (b"\xef\xbb\xbf\n\n", "empty"), (b"a,b,c\n", "no rows"), (b"\x89PNG\x00\x01\x02\x00rest", "not a text file")],
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
    assert str(error.value) == "There is no CSV file to analyse. The goal came with no files."


def test_several_files(run: Run, tmp_path: Path, data: Path) -> None:
    """The file that is named is used; without a name, the one whose columns are spoken of; equal files are taken as one."""
    pets = tmp_path / "pets.csv"
    pets.write_text("animal,legs\ncat,4\nbird,2\n")
    more = tmp_path / "more.csv"
    more.write_text("animal,legs\nant,6\n")
    files = [data / "sales.csv", pets]
    named = run(agent, "total legs in pets.csv", files).text
    fitting = run(agent, "total legs", files).text
    together = run(agent, "total legs", [pets, more]).text
    assert [last_number(text) for text in (named, fitting, together)] == [6, 6, 12]


def test_several_questions(run: Run, data: Path) -> None:
    """Two questions in one request get two answers and two tables."""
    done = run(agent, "compute the total sales per region and the average units per product", [data / "sales.csv"])
    assert sorted(done.files) == ["1-sum-of-revenue-by-region.csv", "2-average-of-units-by-product.csv"]


def test_says_what_it_computed(run: Run, data: Path) -> None:
    """The answer names the file, the rows, the filter and the operation."""
    text = run(agent, "average revenue of phones in the West since June", [data / "sales.csv"]).text
    scope, figure = text.rsplit(": ", 1)
    assert re.sub(r"\d+ of", "N of", scope) == (
        "sales.csv, rows where product is Phone and region is West and date since 2024-06: N of 500: average of revenue"
    )
    assert float(figure.rstrip(".")) > 0


def test_growth_between_periods(run: Run, data: Path) -> None:
    """Growth names both figures, their difference and the percentage."""
    frame = pd.read_csv(data / "sales.csv")
    first, last = (frame[frame.date.str.startswith(month)].revenue.sum() for month in ("2024-01", "2024-03"))
    text = run(agent, "growth of revenue from January to March", [data / "sales.csv"]).text
    percent = format_number((last - first) / first * 100)
    expected = f"{format_number(first)} to {format_number(last)}, a change of {format_number(last - first)} ({percent} %)."
    assert text.endswith(expected)


def test_describes_a_file(run: Run, data: Path) -> None:
    """A description says the type and the range of every column."""
    text = run(agent, "describe sales.csv", [data / "sales.csv"]).text
    assert text.splitlines()[0] == "sales.csv, all 500 rows, 7 columns:"
    assert "- date: dates from 2024-01-01 to 2024-12-31" in text.splitlines()


def test_lists_rows(run: Run, data: Path) -> None:
    """Rows that are asked for come as a table."""
    done = run(agent, "rows where units above 11 and region is East", [data / "sales.csv"])
    frame = pd.read_csv(data / "sales.csv")
    expected = frame[(frame.units > 11) & (frame.region == "East")].reset_index(drop=True)
    assert pd.read_csv(io.BytesIO(done.files["rows.csv"])).revenue.tolist() == expected.revenue.tolist()


def test_large_file_in_time(run: Run, tmp_path: Path) -> None:
    """A hundred thousand rows are answered within seconds, and rightly."""
    rng = random.Random(7)
    rows = [
        (rng.choice(REGIONS), rng.randint(1, 999), f"2023-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}") for _ in range(100_000)
    ]
    frame = pd.DataFrame(rows, columns=["district", "meter_reading", "day"])
    path = tmp_path / "large.csv"
    frame.to_csv(path, index=False)
    started = time.perf_counter()
    text = run(agent, "total meter reading per district in May", [path]).text
    took = time.perf_counter() - started
    expected = frame[frame.day.str.startswith("2023-05")].groupby("district").meter_reading.sum()
    assert figures(text) == expected.to_dict()
    assert took < 20
