"""What a question about a table comes to, as a value: which rows, grouped how, and what to compute of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from periods import Period
from words import format_number

OPERATION_NAMES = {
    "sum": "sum",
    "mean": "average",
    "median": "median",
    "min": "minimum",
    "max": "maximum",
    "std": "standard deviation",
    "var": "variance",
    "range": "range (maximum minus minimum)",
    "distinct": "number of distinct values",
    "count": "number of rows",
    "mode": "most common value",
}


@dataclass(frozen=True)
class Filter:
    """Which rows count. `sign` is a comparison, `in`, or `period`."""

    column: str
    sign: str
    values: tuple[object, ...] = ()
    negated: bool = False
    periods: tuple[Period, ...] = ()

    def mask(self, frame: pd.DataFrame) -> pd.Series:
        """Which rows pass."""
        mask = self._plain(frame[self.column])
        return ~mask if self.negated else mask

    def _plain(self, cells: pd.Series) -> pd.Series:
        if self.sign == "period":
            dates = (
                cells
                if not pd.api.types.is_numeric_dtype(cells)
                else pd.to_datetime(cells.astype("Int64").astype(str), format="%Y")
            )
            mask = self.periods[0].mask(dates)
            for period in self.periods[1:]:
                mask |= period.mask(dates)
            return mask
        if self.sign == "in":
            return cells.isin(list(self.values))
        if self.sign == "between":
            low, high = sorted(float(str(value)) for value in self.values)
            return cells.between(low, high)
        value = float(str(self.values[0]))
        compare = {">": cells.gt, "<": cells.lt, ">=": cells.ge, "<=": cells.le, "=": cells.eq, "!=": cells.ne}[self.sign]
        return compare(value) & cells.notna()

    def __str__(self) -> str:
        if self.sign == "period":
            text = f"{self.column} " + " or ".join(period.phrase for period in self.periods)
        elif self.sign == "in":
            text = f"{self.column} is " + " or ".join(map(str, self.values))
        elif self.sign == "between":
            text = f"{self.column} between " + " and ".join(format_number(float(str(value))) for value in self.values)
        else:
            text = f"{self.column} {self.sign} {format_number(float(str(self.values[0])))}"
        return f"not ({text})" if self.negated else text


@dataclass(frozen=True)
class Measure:
    """One figure: an operation over a column; no column means the rows themselves."""

    operation: str
    column: str | None = None
    quantile: float = 0.0
    grain: str = ""

    def __str__(self) -> str:
        name = (
            f"percentile {format_number(self.quantile * 100)}" if self.operation == "quantile" else OPERATION_NAMES[self.operation]
        )
        if self.grain:
            name = f"number of different {self.grain}s"
        return name if self.column is None else f"{name} of {self.column}"

    def of(self, frame: pd.DataFrame) -> object:
        """Compute the figure over the rows; missing cells are left out."""
        if self.column is None:
            return len(frame)
        cells = (Key(self.column, self.grain).of(frame) if self.grain else frame[self.column]).dropna()
        match self.operation:
            case "count":
                return len(cells)
            case "distinct":
                return cells.nunique()
            case "mode":
                return cells.mode().iloc[0] if len(cells) else None
            case "range":
                return cells.max() - cells.min()
            case "quantile":
                return cells.quantile(self.quantile)
        return getattr(cells, self.operation)() if len(cells) or self.operation == "sum" else float("nan")


@dataclass(frozen=True)
class Key:
    """What rows are grouped by: a column, or the day, week, month … of a date column."""

    column: str
    grain: str = ""

    def __str__(self) -> str:
        return f"{self.grain} of {self.column}" if self.grain else self.column

    @property
    def name(self) -> str:
        """The column's name in the result."""
        return self.grain or self.column

    @property
    def is_time(self) -> bool:
        """Whether the groups follow each other in time."""
        return self.grain not in ("", "weekday")

    def of(self, frame: pd.DataFrame) -> pd.Series:
        """The group of every row, as text that sorts in order of time."""
        cells = frame[self.column]
        match self.grain:
            case "":
                is_date = pd.api.types.is_datetime64_any_dtype(cells)
                return pd.Series(cells.dt.strftime("%Y-%m-%d")) if is_date else cells
            case "weekday":
                names = {day: f"{day + 1} {name}" for day, name in enumerate(_WEEKDAYS)}
                return pd.Series(cells.dt.day_of_week.map(names))
            case "quarter":
                years, quarters = (part.astype("Int64").astype(str) for part in (cells.dt.year, cells.dt.quarter))
                return pd.Series((years + "-Q" + quarters).where(cells.notna()))
        pattern = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "year": "%Y", "hour": "%H:00"}[self.grain]
        return pd.Series(cells.dt.strftime(pattern))


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass
class Query:
    """The whole question. `kind` says which of the answers of `table_answer` it wants."""

    kind: str = "figures"
    measures: list[Measure] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    filters: list[Filter] = field(default_factory=list)
    having: list[tuple[str, tuple[float, ...]]] = field(default_factory=list)
    limit: int | None = None
    descending: bool | None = None
    sort_column: str | None = None
    ranked: Key | None = None
    over_groups: Measure | None = None
    columns: list[str] = field(default_factory=list)
    share: bool = False
    notes: list[str] = field(default_factory=list)
