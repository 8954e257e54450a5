"""Finding names that stand whole in a text, however many they are and however much alike.

All are looked for in one reading of the text, backwards, by an automaton of their letters (Aho and Corasick, "Efficient string
matching", 1975): strangers choose the names and the text, and where each is tried at each place, two hundred thousand characters
take as many seconds as there are nearly right names in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_OF_NAMES = frozenset("_.-")
"""What besides letters and digits goes on with a name that stands before it."""
_MOST_KEPT_LETTERS = 50_000
"""Of names with more letters together an automaton is made for each text, of those that stand in it: a letter takes 245 bytes."""


class WholeNames:
    """Names to be found in some texts.

    Args:
        names: What is looked for.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(filter(None, names))
        self._is_kept = sum(map(len, self._names)) <= _MOST_KEPT_LETTERS
        self._automaton: _Automaton | None = None

    def found_in(self, text: str) -> set[str]:
        """Return the names that stand in a text and are no part of a word, nor of a longer one of them; a full stop may follow.

        Of those that begin at one place the longest counts, and what stands within it does not.
        """
        found, after = set[str](), 0
        if not (there := [name for name in self._names if name in text]):
            return found
        if self._automaton is None or not self._is_kept:
            self._automaton = _Automaton(self._names if self._is_kept else there)
        for begin, end in reversed([*self._automaton.longest(text)]):
            if begin >= after:
                found.add(text[begin:end])
                after = end
        return found


class _Automaton:
    """States are what was read last, as far as it is the end of a name; reading goes backwards.

    Args:
        names: What is looked for.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._next: list[dict[str, int]] = [{}]
        """By the letter in front of it, the state that a state goes on to."""
        self._length = [0]
        """How many letters the name has that a state is; 0 if it is none."""
        for name in names:
            state = 0
            for letter in reversed(name):
                state = self._next[state].setdefault(letter, len(self._next))
                if state == len(self._next):
                    self._next.append({})
                    self._length.append(0)
            self._length[state] = len(name)
        self._shorter = [0] * len(self._next)
        """The longest state that a state begins with, to go on from where it has no next one."""
        self._name = [0] * len(self._next)
        """The longest state that a state is or begins with that is a name; 0 if there is none."""
        self._link()

    def _link(self) -> None:
        """Link each state to the shorter ones, the shortest states first."""
        states = [0]
        for state in states:
            self._name[state] = state if self._length[state] else self._name[self._shorter[state]]
            for letter, following in self._next[state].items():
                self._shorter[following] = self._step(self._shorter[state], letter) if state else 0
                states.append(following)

    def _step(self, state: int, letter: str) -> int:
        while state and letter not in self._next[state]:
            state = self._shorter[state]
        return self._next[state].get(letter, 0)

    def longest(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where the longest name begins and ends that stands whole at each place, those last that begin first."""
        state = 0
        for begin in range(len(text) - 1, -1, -1):
            state = self._step(state, text[begin])
            name = self._name[state]
            if not name or (begin and (text[begin - 1].isalnum() or text[begin - 1] in _OF_NAMES)):
                continue
            while name:
                end = begin + self._length[name]
                if end == len(text) or not (text[end].isalnum() or text[end] == "_"):
                    yield begin, end
                    break
                name = self._name[self._shorter[name]]
