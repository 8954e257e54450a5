"""Which files a task is about, and what is written in them."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from ioa.errors import DeclinedError, InvalidInputError
from ioa.files import came, missing, pick, read_and_tell, read_text, text_of_html
from ioa.testing import RecordingContext, input_file, upstream

TABLES = (".csv", ".tsv")


def _context(folder: Path, *names: str) -> RecordingContext:
    for name in names:
        (folder / name).write_text("a,b\n")
    return RecordingContext(folder, inputs=tuple(input_file(folder / name) for name in names))


@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("total a in Año.CSV", ["Año.CSV"]),
        (f"total a in {unicodedata.normalize('NFD', 'año.csv')}", ["Año.CSV"]),
        ("total a", ["Año.CSV", "b.tsv"]),
    ],
)
def test_files_that_a_task_names_or_all_that_came(task: str, names: list[str], tmp_path: Path) -> None:
    """A name counts as a whole, in any case, however its accents are written."""
    assert [file.name for file in pick(task, _context(tmp_path, "Año.CSV", "b.tsv", "c.txt"), TABLES)] == names


@pytest.mark.parametrize(
    ("task", "names"), [("rows of a.csv", ["a.csv"]), ("rows of A.csv", ["A.csv"]), ("rows of a.CSV", ["a.csv", "A.csv"])]
)
def test_names_that_differ_by_case_alone(task: str, names: list[str], tmp_path: Path) -> None:
    """The one that is written so is meant; where none is, both may be."""
    assert [file.name for file in pick(task, _context(tmp_path, "a.csv", "A.csv"), TABLES)] == names


@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("rows of my a.csv", ["my a.csv"]),
        ("rows of tommy a.csv", ["a.csv"]),
        ("rows of a.csv", ["a.csv"]),
        ("rows of my a.csv and a.csv", ["a.csv", "my a.csv"]),
    ],
)
def test_a_name_within_a_longer_one_is_not_said(task: str, names: list[str], tmp_path: Path) -> None:
    """Where the longer one is that of a file, too."""
    assert [file.name for file in pick(task, _context(tmp_path, "a.csv", "my a.csv"), TABLES)] == names


@pytest.mark.parametrize("path", ["clean/a.csv", "./clean/a.csv", "clean\\A.csv", "clean-a.csv"])
def test_a_path_names_what_was_attached_from_that_folder(path: str, tmp_path: Path) -> None:
    """Not the file of that name that came with the goal, unless there is no other: where that was is not known."""
    told = _context(tmp_path, "a.csv", "clean-a.csv")
    assert [file.name for file in pick(f"rows of {path}.", told, TABLES)] == ["clean-a.csv"]
    assert missing(f"rows of {path}", TABLES, ["clean-a.csv"]) == ""
    assert [file.name for file in pick("rows of data/a.csv", told, TABLES)] == ["a.csv"]


def test_what_earlier_tasks_attached_comes_last(tmp_path: Path) -> None:
    """It is taken where no such file came with the goal."""
    made = tmp_path / "made.csv"
    made.write_text("a\n1\n")
    context = RecordingContext(tmp_path, results=(upstream("make a table", "made", made),))
    assert [file.name for file in pick("total a", context, TABLES)] == ["made.csv"]


def test_what_is_not_there(tmp_path: Path) -> None:
    """A file of another kind is for others, one that did not come is told, and without any name there is none."""
    context = _context(tmp_path, "c.txt")
    with pytest.raises(DeclinedError, match=r"c\.txt is not one of \.csv, \.tsv"):
        pick("count c.txt", context, TABLES)
    others = _context(tmp_path, "Año.CSV", "b.tsv")
    for lost, there in (("lost.csv", context), ("lost.csv", others), ("my-b.tsv", others), ("b.tsv and lost.csv", others)):
        with pytest.raises(InvalidInputError, match=r"'(lost\.csv|my-b\.tsv)' did not come"):
            pick(f"total a in {lost}", there, TABLES)
    assert (pick("total a", context, TABLES), came(context)) == ([], "The goal came with: c.txt.")
    assert missing("total a in my sales.csv and x.csv", TABLES, ["my sales.csv"]) == "'x.csv' did not come with the goal."
    assert missing("total a in visits.csv", TABLES, ["vet_visits.csv"]) == "'visits.csv' did not come with the goal."


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbfa\r\nb\rc", "a\nb\nc"),
        ("Müller €".encode("cp1252"), "Müller €"),
        ("Köln".encode("utf-16"), "Köln"),
        ("日本".encode(), "日本"),
    ],
)
def test_texts_of_any_machine(data: bytes, text: str, tmp_path: Path) -> None:
    """Marks of the order of bytes are none of the text, lines end in one way, and what is assumed can be told."""
    (tmp_path / "t.txt").write_bytes(data)
    assert read_text(tmp_path / "t.txt") == text
    assert read_and_tell(tmp_path / "t.txt")[1] == "Windows-1252" * (data == text.encode("cp1252", "replace"))


def test_a_page_that_says_its_encoding(tmp_path: Path) -> None:
    """Nothing is assumed of it."""
    (tmp_path / "p.html").write_bytes('<meta charset="windows-1251"><p>Привет'.encode("cp1251"))
    text, assumed = read_and_tell(tmp_path / "p.html", is_page=True)
    assert text.endswith("Привет")
    assert assumed == ""
    assert read_and_tell(tmp_path / "p.html")[1] == "Windows-1252"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b" \r\n", "has nothing but blanks"),
        (b"PK\x03\x04\x00a", "is not a text file"),
        (b"\x89PNG\x9d", "is no text that"),
    ],
)
def test_what_is_no_text(data: bytes, said: str, tmp_path: Path) -> None:
    """It is refused with its name."""
    (tmp_path / "t.txt").write_bytes(data)
    with pytest.raises(InvalidInputError, match=f"t.txt {said}"):
        read_text(tmp_path / "t.txt")


def test_a_page_says_what_a_reader_sees() -> None:
    """Menus and scripts are left out, and nothing else; lines of the source are none of the page, but in `pre`."""
    page = "<nav>Home</nav><div>Advert</div><main><h1>A\nB</h1><pre>x\ny</pre><p>one<br>two<aside>more</aside></main><p>Imprint"
    assert text_of_html(page) == "Advert\nA B\nx\ny\none\ntwo\nmore\nImprint"
    fields = "<p hidden>a<button>b</button></p>c<select><option>dog<option>cat</select><button>Save</button><button>No</button>"
    assert text_of_html(fields) == "c\ndog\ncat\nSave\nNo"
    assert text_of_html("<ruby>漢<rt>kan</rt></ruby>字") == "漢 kan 字"
    hidden = '<p hidden>a<br>b<b>c</b></p><p>d<img hidden></p><div style="display: none"><p>e</p></div>f<p style="color:red">g</p>'
    assert text_of_html(hidden) == "d\nf\ng"
    assert text_of_html("<p hidden>a<p>b<ul><li hidden>c<li>d</ul><p hidden>e<div>f</div>") == "b\nd\nf"
    assert text_of_html("<table><tr><td>1<td>2</table>", before_cells="\n") == "1\n2"


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("a < b <3 & c &lt; d &amp;lt; e", "a < b <3 & c < d &lt; e"),
        ("a<!-- <p>b --><!--> c <!doctype x><?d ?></ e>f<![CDATA[g]]>h", "a c fh"),
        ('a<img alt="x > y" title=\'"\'>b<p class=c/d>e</P\n>f', "ab\ne\nf"),
        ("a<script>if (b < c) '</p>'</SCRIPT >d<svg/>e<title>f <b>g</title>h", "ade\nf <b>g\nh"),
        ('<DIV STYLE="DISPLAY:\n&#110;one">a</DIV><i hidden=x/>b</i>c<b data-hidden title="hidden">d</b>', "cd"),
        ("<i hidden>a<b hidden>b</i>c", "c"),
        ("<i hidden>a<b hidden>b</b>c", ""),
        *[(f"a{unclosed}b <p c", "a") for unclosed in ("<!--", "<q ", '<q r="', "<q r='", "</q ", "<script>", "<q r=s t")],
        (f"a&#{'9' * 5_000};b", f"a&#{'9' * 5_000};b"),
        ("a<", "a<"),
    ],
)
def test_marks_are_told_from_words_as_browsers_do(page: str, said: str) -> None:
    """What is not closed goes on to the end of the page, and no mark is said."""
    assert text_of_html(page) == said
