"""The text analyst: counts that can be checked by hand."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from ioa.errors import DeclinedError, InvalidInputError
from ioa.testing.task_context import upstream
from tests.unit.examples.agent_run import Run
from text_analyst import agent

STORY = "The cat sat. The dog, however, ran away!\n\nDid Dr. Smith see it? He paid 3.50 euros, e.g. for a well-fed cat.\n"


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("count the words in story.txt", "story.txt: words: 22"),
        (
            "number of paragraphs in story.txt",
            "story.txt: paragraphs (what stands between blank lines, headings and lists, too): 2",
        ),
        ("how many characters are in story.txt", f"story.txt: characters: {len(STORY)}"),
        ("how many lines has story.txt", "story.txt: lines: 3"),
        ("how many words has signs.txt", "signs.txt: words: 3 (left out: 2 without a letter or digit, such as '%')"),
        ("How many words does board.txt contain?", "board.txt: words: 10 (left out: 3 without a letter or digit, such as '#')"),
        ('count the words in "story.txt"', "story.txt: words: 22"),
        ("count the words in `drafts/Story.TXT`", "story.txt: words: 22"),
        ("count the words in lines/all/story.txt", "story.txt: words: 22"),
        ("count words, lines and characters", "notes.txt:\n- words: 3\n- lines: 1\n- characters: 14"),
    ],
)
def test_counts(task: str, expected: str, run: Run, tmp_path: Path) -> None:
    """Every count is exact, and says of which text it is."""
    path = tmp_path / expected.partition(":")[0]
    path.write_text(
        {
            "story.txt": STORY,
            "board.txt": "# The board\n\nThe fee rises.\n\n- No refunds\n- Who pays it?\n",
            "notes.txt": "All rise. Sit!",
        }.get(path.name, "up 5 % – again")
    )
    assert run(agent, task, [path]).text == expected


@pytest.mark.parametrize("task", ["Read notes.txt", "show me notes.txt", "what is in notes.txt?"])
def test_a_text_is_read(task: str, run: Run, data: Path) -> None:
    """Reading shows the text and attaches it for later tasks."""
    done = run(agent, task, [data / "notes.txt"])
    assert done.files["notes.txt"].decode() == (data / "notes.txt").read_text()
    assert done.text.startswith("notes.txt:")


def test_what_is_assumed_of_a_text_is_said(run: Run, tmp_path: Path) -> None:
    """Letters of another encoding are others: who reads them should know."""
    (tmp_path / "a.txt").write_bytes("Müller, Grüße".encode("cp1252"))
    assert run(agent, "count the words", [tmp_path / "a.txt"]).text == "a.txt (read as Windows-1252): words: 2"
    assert run(agent, "read a.txt", [tmp_path / "a.txt"]).text == "a.txt (read as Windows-1252): Müller, Grüße"


def test_any_file_that_is_a_text_is_measured_if_it_is_named(run: Run, tmp_path: Path) -> None:
    """Which file is meant is said where others than texts came; what no text is asked is for others."""
    table, text, picture = tmp_path / "t.csv", tmp_path / "a.txt", tmp_path / "p.png"
    table.write_text("item,n\nPen,1\n")
    text.write_text("a pen")
    picture.write_bytes(b"\x89PNG\x00\x9d")
    files = [table, text]
    assert run(agent, "how many lines has t.csv", files).text == "t.csv: lines: 2"
    with pytest.raises(InvalidInputError, match=r"It is not said which text file is meant.*The goal came with: t\.csv, a\.txt\."):
        run(agent, "how many words", files)
    assert run(agent, "how many words are in the files", files).text == "t.csv: words: 2\n\na.txt: words: 2"
    with pytest.raises(DeclinedError, match="'total', 'n' are not understood"):
        run(agent, "total n in t.csv", files)
    with pytest.raises(InvalidInputError, match=r"p\.png is image/png"):
        run(agent, "count the words in p.png", [picture])


def test_lines(run: Run, tmp_path: Path) -> None:
    """Only what every editor takes for the end of a line ends one."""
    path = tmp_path / "a.txt"
    path.write_text("page one\x0cpage two\u2028more\nlast", encoding="utf-8")
    assert run(agent, "how many lines has a.txt", [path]).text == "a.txt: lines: 2"


def test_earlier_result(run: Run, data: Path, tmp_path: Path) -> None:
    """`it` is the earlier result's text file before the goal's; what was answered is none, since words around it would count."""
    page = tmp_path / "page.txt"
    page.write_text("just four words here")
    of_file = run(agent, "count the words in it", [data / "notes.txt"], [upstream("read the page", "attached", page)]).text
    assert of_file == "page.txt: words: 4"
    with pytest.raises(InvalidInputError, match="only files are read here"):
        run(agent, "count the words in the result", [data / "notes.txt"], [upstream("summarise it", "x.txt: summary: hello there")])


@pytest.mark.parametrize(
    ("task", "content", "said"),
    [
        ("count the words", b"", "empty"),
        ("count the words", b" \n\t\n", "has nothing but blanks"),
        ("count the words", b"ab\x00\x01cd", "not a text file"),
        ("boil it", b"water", "'boil' is not understood"),
        ("count the words of both texts", b"water", "'both' is not understood"),
        ("summarise it", b"water", "'summarise' is not understood here. Texts are read ('read FILE')"),
        ("how many sentences has it", b"One. Two.", "'sentences' is not understood"),
        ("it", b"water", "'it' is not read as one request"),
        ("how often does 'big' occur in it", b"big water", "'often', 'big', 'occur' are not understood"),
        ("how many words start with b", b"big water", "'start', 'with', 'b' are not understood"),
        ("count the words in some.txt that begin with b", b"big water", "'begin', 'with', 'b' are not understood"),
        ("read the second part", b"big water. More water.", "'second', 'part' are not understood"),
        ("read it in 200 words", b"big water. More water.", "'200' is not understood"),
        ("the ten most frequent words", b"big water", "'ten', 'most', 'frequent' are not understood"),
        ("average line length", b"big water", "'average', 'length' are not understood"),
        ("the longest word", b"big water", "'longest' is not understood"),
        ("how long does it take to read it", b"big water", "'long', 'take' are not understood"),
        ("read https://example.org/a", b"big water", "'https', 'example', 'org', 'a' are not understood"),
        ("what was decided?", b"big water", "'was', 'decided' are not understood"),
        ("readability of the text", b"big water", "'readability' is not understood"),
        ("how many lines of words", b"big water. More water.", "is not read as one request"),
        ("how many words in total", b"big water", "'total' is not understood"),
        ("read it and count the words", b"big water", "each in a sentence of its own"),
        ("how many words does it have? And lines?", b"big water", "is not read as one request"),
        ("count the words in it: one two", b"big water", "'one', 'two' are not understood"),
        ("word count of: one two three", b"big water", "'one', 'two', 'three' are not understood"),
        ("translate and count the words", b"big water", "'translate' is not understood"),
        ("how many lines are not short", b"big water", "'not', 'short'"),
        ("count the words and the lines without 'big'", b"big water", "'without', 'big' are not understood"),
        ("count the words in 'big' lines", b"big water", "'big' is not understood"),
        ("Which lines mention ERROR in some.txt?", b"ERROR", "'which', 'mention', 'error' are not understood"),
        ("find 'big' in some.txt", b"ERROR", "such as a search or a summary, is for a language model"),
        ("which words are in some.txt", b"big water", "'which' is not understood"),
        ("how many words of some.txt are in 'big'", b"big water", "'big' is not understood"),
        ("how many words are that in it", b"big water", "is not read as one request"),
        ("how many lines are text files", b"big water", "is not read as one request"),
        ("how many files are there", b"big water", "is not read as one request"),
        ("how many words are in it and", b"big water", "is not read as one request"),
        ("how many words or lines has it", b"big water", "'or' is not understood"),
        ("count the words", "ab cd".encode("utf-16-le"), "UTF-16 without the mark that says so"),
        ("count the words", b"%PDF-1.4\n1 0 obj", "some.txt is written in PDF"),
        ("count the words", b"{\\rtf1 big}", "some.txt is written in RTF"),
        ("count the words", b"\n<!DOCTYPE html><p>big", "some.txt is written in HTML"),
        ("count the words", b"From: ann@a.example\nTo: bo@a.example,\n eve@a.example\nMIME-Version: 1.0\n\nHi", "written in MIME"),
    ],
)
def test_refusals(task: str, content: bytes, said: str, run: Run, tmp_path: Path) -> None:
    """Empty and binary files, and wishes it cannot fulfil, are errors that say so."""
    path = tmp_path / "some.txt"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError) as error:
        run(agent, task, [path])
    assert said in str(error.value)


def test_nothing_to_read(run: Run) -> None:
    """Without any text the error says what to send."""
    with pytest.raises(DeclinedError, match=r"none came, and only files are read here\. Name it\. The goal came with no files"):
        run(agent, "count the words")


def test_words_of_any_script_are_words(run: Run, tmp_path: Path) -> None:
    """Letters and digits make them, and no sign by itself is one."""
    (tmp_path / "a.txt").write_text("Straße Ελλάδα naïve ٣ ४ 7% – … don't")
    said = run(agent, "count the words in it", [tmp_path / "a.txt"]).text
    assert said == "a.txt: words: 7 (left out: 2 without a letter or digit, such as '–')"


@pytest.mark.parametrize("text", ["今日は天気がいいです。", "ฉันกินข้าว"])
def test_words_without_blanks_between_them_are_not_counted(text: str, run: Run, tmp_path: Path) -> None:
    """No rule tells them apart; they are read all the same."""
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(InvalidInputError, match="No rule tells the words of a text apart that has letters such as"):
        run(agent, "count the words in it", [tmp_path / "a.txt"])
    assert run(agent, "read it", [tmp_path / "a.txt"]).text == f"a.txt: {text}"
    assert run(agent, "count the characters", [tmp_path / "a.txt"]).text == f"a.txt: characters: {len(text)}"


@pytest.mark.parametrize("task", ["the words", "show the words in a.txt", "number the lines", "show me the paragraphs"])
def test_what_is_to_be_listed_is_not_counted(task: str, run: Run, tmp_path: Path) -> None:
    """Words, lines and paragraphs are counted where it is said so."""
    (tmp_path / "a.txt").write_text("one two")
    with pytest.raises(InvalidInputError, match="is not read as one request"):
        run(agent, task, [tmp_path / "a.txt"])


def test_a_text_in_another_encoding_is_refused(run: Run, tmp_path: Path) -> None:
    """Rather than read with signs that stand for what was not read."""
    (tmp_path / "a.txt").write_bytes("über".encode("cp850"))
    with pytest.raises(InvalidInputError, match=r"a\.txt is no text that can be read: .*save it as UTF-8"):
        run(agent, "read a.txt", [tmp_path / "a.txt"])


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("how many words, lines and also characters does the text have", ["words: 22", "lines: 3", f"characters: {len(STORY)}"]),
        ("What's the word count of story.txt?", ["words: 22"]),
        ("word count story.txt", ["words: 22"]),
        ("Please tell me how many words story.txt contains", ["words: 22"]),
        ("In story.txt, how many words and how many lines are there?", ["words: 22", "lines: 3"]),
        ("count the words and the lines in story.txt", ["words: 22", "lines: 3"]),
        ("Count how many words are in the text file story.txt", ["words: 22"]),
        ("can you show me the contents of story.txt", ["The cat sat."]),
    ],
)
def test_all_that_is_asked_is_answered_or_nothing(task: str, said: list[str], run: Run, tmp_path: Path) -> None:
    """Each word of a request has its place in a form."""
    (tmp_path / "story.txt").write_text(STORY)
    answer = run(agent, task, [tmp_path / "story.txt"]).text
    assert [one for one in said if one not in answer] == []


def test_all_texts_are_asked_the_same(run: Run, tmp_path: Path) -> None:
    """What is asked of each of them its own takes a request for each."""
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for file in files:
        file.write_text("one two")
    assert run(agent, "Count the words in a.txt and in b.txt", files).text == "a.txt: words: 2\n\nb.txt: words: 2"
    with pytest.raises(InvalidInputError, match=r"is not read as one request\..*each in a sentence of its own"):
        run(agent, "Count the words in a.txt and the lines in b.txt", files)


def test_each_text_that_is_shown_is_attached(run: Run, tmp_path: Path) -> None:
    """Under its name, as UTF-8; what is counted in it later is its own."""
    log, text = tmp_path / "p.log", tmp_path / "b.txt"
    log.write_text("one two three")
    text.write_bytes("Привет мир".encode("cp1251"))
    both = run(agent, "read p.log and b.txt", [log, text])
    assert [*both.files] == ["p.log.txt", "b.txt"]
    earlier = run(agent, "read p.log", [log])
    before = [upstream("read it", earlier.text, *earlier.paths)]
    assert run(agent, "count the words in it", [log, text], before).text == "p.log.txt: words: 3"


@pytest.mark.parametrize("name", ["a.pdf", "a.rtf", "a.eml", "a.docx", "a.json", "a.html"])
def test_what_is_no_plain_text_is_not_measured(name: str, run: Run, tmp_path: Path) -> None:
    """Its markup would be counted."""
    (tmp_path / name).write_text("one two")
    with pytest.raises(InvalidInputError, match="Plain texts are read here"):
        run(agent, f"how many words has {name}", [tmp_path / name])


def test_ends_of_lines_of_two_characters_are_told(run: Run, tmp_path: Path) -> None:
    """Others count both."""
    (tmp_path / "w.txt").write_bytes(b"one\r\ntwo\r\n")
    assert run(agent, "how many characters", [tmp_path / "w.txt"]).text == (
        "w.txt: characters: 8 (ends of lines are one each, or 10 if two)"
    )


def test_no_file_is_taken_for_a_result(run: Run, tmp_path: Path) -> None:
    """Without one it is not known what is to be shown."""
    (tmp_path / "w.txt").write_text("one")
    with pytest.raises(InvalidInputError, match="It is not said which text file is meant"):
        run(agent, "Show me the result", [tmp_path / "w.txt"])


def test_a_text_beyond_ten_megabytes_is_refused_unread(run: Run, tmp_path: Path) -> None:
    """To read it takes the memory and the time of everybody whose task is there: four of 100 MB took 5 GB."""
    with (path := tmp_path / "large.txt").open("wb") as file:
        file.truncate(10_000_001)
    for asked in ("how many words in large.txt", "read large.txt"):
        with pytest.raises(InvalidInputError, match=r"large\.txt has more than 10 MB"):
            run(agent, asked, inputs=[path])


def test_counting_takes_few_times_the_size_of_a_text(run: Run, tmp_path: Path) -> None:
    """A list of its words took twenty times as much."""
    (path := tmp_path / "words.txt").write_text("ab cd – gh\n\n" * 100_000)
    tracemalloc.start()
    try:
        answered = run(agent, "how many words and paragraphs in words.txt", inputs=[path]).text
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "words: 300000 (left out: 100000 without a letter or digit, such as '–')" in answered
    assert answered.endswith("paragraphs (what stands between blank lines, headings and lists, too): 100000")
    assert most < 8 * path.stat().st_size
