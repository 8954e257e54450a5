"""Measure a text by an expression that is made of what is looked for."""

import re


def occurrences(text: str, term: str) -> int:
    """How often a phrase occurs, in any case; a word at its edge is whole, a sign may touch anything."""
    edge = r"(?:(?<!\w)|(?!\w))"
    pattern = re.compile(rf"{edge}{re.escape(' '.join(term.split()))}{edge}", re.IGNORECASE)
    return len(pattern.findall(" ".join(text.split())))
