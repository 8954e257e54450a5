"""The ratchet counts code without prose, and finds unclear phrases in prose without code."""

from __future__ import annotations

from pathlib import Path

from tools.ratchet import count_tokens, unclear_phrases

_CODE = '''"""A module."""


def told_who(name: str) -> None:  # nobody reads this
    """Say it."""
    raise ValueError("There is somebody else here.")
'''


def test_docstrings_comments_and_layout_are_no_code() -> None:
    """Only tokens of code count, so that a better docstring never makes the product larger."""
    assert count_tokens(_CODE) == count_tokens("def told_who(name: str) -> None:\n  raise ValueError('')\n") == 15


def test_phrases_are_found_in_comments_errors_and_names(tmp_path: Path) -> None:
    """A comment, an error message and a name with an unclear phrase are found; code and fenced blocks are not searched."""
    source, page = tmp_path / "module.py", tmp_path / "page.md"
    source.write_text(_CODE)
    page.write_text("```python\nnobody = 1\n```\nCall `nobody` or everybody.\n")
    phrases, _ = unclear_phrases([source, page])
    assert sorted((phrase.path.name, phrase.line) for phrase in phrases) == [
        ("module.py", 4),
        ("module.py", 4),
        ("module.py", 6),
        ("page.md", 4),
    ]
