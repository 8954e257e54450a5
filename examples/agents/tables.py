"""Read a CSV file strictly: a table that can be read in two ways is rejected."""

import csv
import re
from dataclasses import dataclass
from fractions import Fraction

from ioa import InputFile, InvalidInputError
from request import read_text

_POINT = re.compile(r"-?\d+(?:\.\d+)?")
_COMMA = re.compile(r"-?\d+(?:,\d{1,2})?")
"""In files separated by semicolons, the decimals follow a comma; three digits after it can also be thousands, and are rejected."""


@dataclass(frozen=True)
class Table:
    """The cells of a file by row, without surrounding blanks; each row has a cell for each column."""

    name: str
    separator: str
    columns: list[str]
    rows: list[list[str]]

    def column(self, name: str) -> int:
        """Return the position of a column, by its name in any case."""
        at = [position for position, column in enumerate(self.columns) if column.casefold() == name.casefold()]
        if len(at) != 1:
            raise InvalidInputError(f"{name!r} is not a column of {self.name}. Its columns: {', '.join(self.columns)}.")
        return at[0]

    def number(self, row: list[str], at: int) -> Fraction | None:
        """Return the number in a cell; None if the cell is empty."""
        cell = row[at]
        if cell and not (_COMMA if self.separator == ";" else _POINT).fullmatch(cell):
            hint = "Numbers are written as 1234.5, or in files with semicolons as 1234,5; other cells must be empty."
            raise InvalidInputError(f"{cell!r} in the column {self.columns[at]} of {self.name} is not a number.", hint=hint)
        return Fraction(cell.replace(",", ".")) if cell else None


def read_table(file: InputFile) -> Table:
    """Read a CSV file whose first line names its columns, separated by commas, semicolons or tabs."""
    text = read_text(file)
    separator = max(",;\t", key=text.partition("\n")[0].count)
    try:
        reader = csv.reader(text.splitlines(keepends=True), delimiter=separator, strict=True)
        lines = [[cell.strip() for cell in row] for row in reader]
    except csv.Error as error:
        raise InvalidInputError(f"{file.name} is not a CSV file: {error}.") from None
    columns, *rows = [row for row in lines if any(row)] or [[]]
    if not rows or len({column.casefold() for column in columns}) < len(columns) or not all(columns):
        raise InvalidInputError(f"{file.name} must have a first line that gives each column a different name, and rows below it.")
    if uneven := next((row for row in rows if len(row) != len(columns)), None):
        raise InvalidInputError(f"A row of {file.name} has {len(uneven)} cells instead of {len(columns)}: {', '.join(uneven)[:80]}")
    return Table(file.name, separator, columns, rows)
