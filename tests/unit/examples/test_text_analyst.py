"""The text analyst: counts that can be checked by hand."""

from __future__ import annotations

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
        ("how many characters are in story.txt", f"story.txt: characters: {len(STORY)}"),
        ("how many words has signs.txt", "signs.txt: words: 3 (left out: 2 without a letter or digit, such as '%')"),
        ("How many words does board.txt contain?", "board.txt: words: 10 (left out: 3 without a letter or digit, such as '#')"),
        ("count the words in `drafts/Story.TXT`", "story.txt: words: 22"),
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
        ("how many words start with b", b"big water", "'start', 'with', 'b' are not understood"),
        ("read https://example.org/a", b"big water", "'https', 'example', 'org', 'a' are not understood"),
        ("translate and count the words", b"big water", "'translate' is not understood"),
        ("how many words are that in it", b"big water", "is not read as one request"),
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


def test_all_texts_are_asked_the_same(run: Run, tmp_path: Path) -> None:
    """What is asked of each of them its own takes a request for each."""
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for file in files:
        file.write_text("one two")
    assert run(agent, "Count the words in a.txt and in b.txt", files).text == "a.txt: words: 2\n\nb.txt: words: 2"
    with pytest.raises(InvalidInputError, match=r"is not read as one request\..*each in a sentence of its own"):
        run(agent, "Count the words in a.txt and the lines in b.txt", files)
