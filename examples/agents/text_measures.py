"""Measure a text: its words, the most frequent of them, its paragraphs, and how often a phrase occurs.

No sentences are told apart: behind `Dr.` or `5 p.m.` no rule knows whether one ends.
"""

import re
from collections import Counter

_STOP_WORDS = set(
    """a about above after again against all also am an and any are as at be because been before being below between both but by can
    could did do does doing down during each even every few for from further get had has have having he her here hers herself him
    himself his how however i if in into is it its itself just like many may me might more most much must my myself no nor not now
    of off often on once one only or other our ours ourselves out over own per rather same shall she should since so some still
    such than that the their theirs them themselves then there these they this those though through to too two under until up upon
    us very was we well were what when where whether which while who whom why will with within without would yet you your yours
    yourself""".split()
)
_EDGES = re.compile(r"^\W+|(?<=\w)\W+$")


def words_of(text: str) -> list[str]:
    """Words as `wc -w` counts them, except that a word holds a letter or a digit; punctuation at its edges is cut."""
    return [_EDGES.sub("", word) for word in text.split() if re.search(r"[^\W_]", word)]


def paragraphs_of(text: str) -> list[str]:
    """Blocks apart by blank lines."""
    return [block.strip() for block in re.split(r"\n\s*\n", text) if block.strip()]


def frequent_words(text: str) -> list[tuple[str, int]]:
    """Words and how often they occur, the most frequent first; ties in order of the alphabet."""
    words = Counter(word.lower().replace("’", "'").removesuffix("'s") for word in words_of(text))
    ranked = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    return [one for one in ranked if one[0] not in _STOP_WORDS and len(one[0]) > 1 and not re.search(r"^\d+$|'", one[0])]


def occurrences(text: str, term: str) -> int:
    """How often a phrase occurs, in any case; a word at its edge is whole, a sign may touch anything."""
    edge = r"(?:(?<!\w)|(?!\w))"
    pattern = re.compile(rf"{edge}{re.escape(' '.join(term.split()))}{edge}", re.IGNORECASE)
    return len(pattern.findall(" ".join(text.split())))
