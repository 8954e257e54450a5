"""Measure a text: words, sentences and an extractive summary."""

import re
from collections import Counter
from itertools import compress, pairwise
from typing import NamedTuple

_STOP_WORDS = set(
    """a about above after again against all also am an and any are as at be because been before being below between both but by can
    could did do does doing down during each even every few for from further get had has have having he her here hers herself him
    himself his how however i if in into is it its itself just like many may me might more most much must my myself no nor not now
    of off often on once one only or other our ours ourselves out over own per rather same shall she should since so some still
    such than that the their theirs them themselves then there these they this those though through to too two under until up upon
    us very was we well were what when where whether which while who whom why will with within without would yet you your yours
    yourself""".split()
)
_ENDS = re.compile(r"[.!?…:;\"'”)]$")
_MARKS = re.compile(r"^ {0,3}(?:#{1,6}|[-*+]|\d+[.)])\s+", re.MULTILINE)
_STOPS, _CLOSING = tuple(".!?…"), "\"'”’)]"
_CUT_SHORT = re.compile(r"[b-df-hj-np-tv-xz]+|\w|\d\d|[^\W\d](\.[^\W\d])+", re.IGNORECASE)  # no vowel, one sign, a day, p.m
_EDGES = re.compile(r"^\W+|(?<=\w)\W+$")


def words_of(text: str) -> list[str]:
    """Words as `wc -w` counts them, except that a word holds a letter or a digit; punctuation at its edges is cut."""
    return [_EDGES.sub("", word) for word in text.split() if re.search(r"[^\W_]", word)]


def paragraphs_of(text: str) -> list[str]:
    """Blocks apart by blank lines."""
    return [block.strip() for block in re.split(r"\n\s*\n", text) if block.strip()]


class Sentence(NamedTuple):
    """A sentence of a text, or several: behind a word that may be cut short nobody can tell whether one ends."""

    text: str
    doubts: tuple[str, ...]  # the words on both sides of each such point

    @property
    def most(self) -> int:
        """How many sentences it may be."""
        return len(self.doubts) + 1


def sentences_of(text: str) -> list[Sentence]:
    """Sentences of the running text; a list item is one.

    A heading (a short line of its own without a full stop) is no sentence, unless the text has no other.
    """
    from sentencex import segment  # here, since an agent that has nothing to do yet should not take 4 MB for it

    blocks, headings = _blocks(text)
    found = list[Sentence]()
    for block in blocks or headings:
        parts = [one.strip() for one in segment("en", " ".join(block.split())) if re.search(r"\w", one)]
        whole = ""
        for part, following in zip(parts, [*parts[1:], None], strict=False):
            whole = f"{whole} {part}".lstrip()
            if following is None or not _may_go_on(part, following):
                ends = [(one, other) for one, other in pairwise(whole.split()) if one.rstrip(_CLOSING)[-1:] in _STOPS]
                found.append(Sentence(whole, tuple(f"{one} {other}" for one, other in ends if not other[0].islower())))
                whole = ""
    return found


def headings_of(text: str) -> list[str]:
    """The short lines that are no sentences; none if the text has no others."""
    blocks, headings = _blocks(text)
    return headings if blocks else []


def _blocks(text: str) -> tuple[list[str], list[str]]:
    blocks = paragraphs_of(_MARKS.sub("\n\n", text))
    running = ["\n" in block or len(block.split()) > 12 or _ENDS.search(block) is not None for block in blocks]
    return list(compress(blocks, running)), [block for block, runs in zip(blocks, running, strict=True) if not runs]


def _may_go_on(sentence: str, following: str) -> bool:
    """Whether a point may be that of an abbreviation: behind a word alone, or one like `Ms` or `p.m`, or before a small letter."""
    words = words_of(sentence)
    is_cut = len(words) == 1 or _CUT_SHORT.fullmatch(words[-1]) is not None or following[0].isdecimal() or following[0].islower()
    return sentence.endswith(".") and is_cut


def frequent_words(text: str) -> list[tuple[str, int]]:
    """Words and how often they occur, the most frequent first; ties in order of the alphabet."""
    words = Counter(word.lower().replace("’", "'").removesuffix("'s") for word in words_of(text))
    ranked = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    return [one for one in ranked if one[0] not in _STOP_WORDS and len(one[0]) > 1 and not re.search(r"^\d+$|'", one[0])]


def summarise(text: str, count: int) -> list[Sentence]:
    """The sentences that hold most of what the text speaks of, in their order; the second of two alike is passed over.

    What it speaks of are its frequent words (Luhn 1958). A long sentence has more of them, so that its length counts against it.
    Those that may be several are taken where there are not enough others.
    """
    sentences = list(dict.fromkeys(sentences_of(text)))
    for fits in (lambda one: one.most == 1, lambda one: len(words_of(one.text)) > 3):
        fitting = [one for one in sentences if fits(one)]
        sentences = fitting if len(fitting) >= count else sentences
    weights = dict(frequent_words(text))

    def weight(at: int) -> float:
        words = {word.lower() for word in words_of(sentences[at].text)} & weights.keys()
        return sum(weights[word] for word in words) / (len(words) + 4)

    best = sorted(range(len(sentences)), key=weight, reverse=True)[:count]
    return [sentences[at] for at in sorted(best)]


def occurrences(text: str, term: str) -> int:
    """How often a phrase occurs, in any case; a word at its edge is whole, a sign may touch anything."""
    edge = r"(?:(?<!\w)|(?!\w))"
    pattern = re.compile(rf"{edge}{re.escape(' '.join(term.split()))}{edge}", re.IGNORECASE)
    return len(pattern.findall(" ".join(text.split())))
