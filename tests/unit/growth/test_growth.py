"""Nobody who may send a text keeps others waiting by what it is made of: all that reads such texts is tried with each texture."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial
from html.parser import HTMLParser
from unicodedata import normalize

import msgpack
import pytest

from ioa.group.policy.conditions import said
from ioa.protocol.policy import MAX_EXITS, Condition, Exit, Guard, Node
from ioa.protocol.policy_check import MOST_GUARDED_WORDS
from tests.rig.hostile_frames import HostileFrames
from tests.unit.growth.measuring import DEAR, seconds_of, slow, times_plain
from tests.unit.growth.readers import reader_of, requests
from tests.unit.growth.shapes import Shape
from tests.unit.growth.sweep import TOLD, cases
from tests.unit.growth.textures import PLAIN, UNITS, text_of

_MOST = 32_768
"""How large what is read is here, where more may be let in. `python -m benchmarks.textures` tries larger ones."""
_FRAMES, _SEED = 40, 22
_CASES = cases(_MOST)


@pytest.mark.parametrize("reader", _CASES)
def test_nothing_takes_longer_than_its_length_explains(reader: str) -> None:
    """Neither does it grow faster than what is read and matter then, nor is it very dear by itself."""
    found = {case.texture: slow(case.read, case.make, case.most) for case in _CASES[reader]}
    assert {texture: str(one) for texture, one in found.items() if one is not None} == {}


@pytest.mark.parametrize("name", requests())
def test_what_honest_requests_become_is_read_in_no_time(name: str) -> None:
    """Bytes and values of them are exchanged by a seed."""
    reader, frames = reader_of(requests()[name]), _frames_of(name)
    dear = [frame[:60] for frame in (frames.next(name) for _ in range(_FRAMES)) if _is_dear(reader.read, frame)]
    assert dear == []


def test_of_most_requests_what_is_grown_is_valid_before() -> None:
    """So that what is read behind the first mistake is tried as well."""
    kinds = requests()
    assert len(kinds) > 30
    assert {name for name, kind in kinds.items() if not _is_read(name, Shape(kind, TOLD.get(name)).least())} == set()


def _parsed(page: str) -> None:
    parser = HTMLParser()
    parser.feed(page)
    parser.close()


@pytest.mark.parametrize(
    ("read", "texture"),
    [
        (lambda text: normalize("NFC", text), "marks out of order"),
        (_parsed, "tags"),
        (lambda text: re.sub(r"\S+\.\w{1,5}\b", "", text), "one letter"),
        (lambda text: [text[at:].count(" ") for at in range(0, len(text), 4)], "one word"),
        (lambda text: [text.casefold().split() for _ in range(1_500)], "one word"),
    ],
    ids=["marks that are sorted", "tags that are not closed", "an expression", "a text that is cut", "what is dear"],
)
def test_what_is_slow_is_found(read: Callable[[str], object], texture: str) -> None:
    """What has stalled readers before is told from what takes its time."""
    assert slow(read, lambda size, salt: text_of(UNITS[texture], size, salt), _MOST // 2) is not None


def test_what_takes_its_time_is_not_slow() -> None:
    """A few readings of a text are no more than that."""
    assert slow(lambda text: [text.split() for _ in range(20)], lambda size, salt: text_of(PLAIN, size, salt), _MOST) is None


def _guarding(word: str) -> Callable[[str], object]:
    return Guard(kind="without", words=(word,) * MOST_GUARDED_WORDS).objection


def _awaiting(word: str) -> Callable[[str], object]:
    exits = tuple(Exit(to="end", when=Condition(says=f"*{word}*")) for _ in range(MAX_EXITS))
    return partial(said, Node(name="talk", roles=("a",), exits=exits), (), ())


@pytest.mark.parametrize("looking", [_guarding, _awaiting], ids=["guards", "exits"])
def test_to_look_for_longer_words_takes_no_longer(looking: Callable[[str], Callable[[str], object]]) -> None:
    """Also in texts that are so short that Python tries words of less than a hundred letters at each place."""

    def text(size: int, salt: int) -> str:
        return f"{salt}{'a' * size}"

    def takes(letters: int) -> float:
        return seconds_of(looking(f"{'a' * (letters - 3)}baa"), text, 29_900, 9)

    takes(12)
    assert takes(96) < 3 * takes(12)  # eight times as long a word


def _frames_of(name: str) -> HostileFrames:
    honest = msgpack.packb(Shape(requests()[name], TOLD.get(name)).least())
    return HostileFrames({name: [honest]}, random.Random(_SEED), own="eve", names=("a1",))


def _is_dear(read: Callable[[bytes], object], frame: bytes) -> bool:
    def takes(repeats: int) -> float:
        return times_plain(seconds_of(read, lambda _size, _salt: frame, 0, repeats), len(frame))

    return takes(1) > DEAR and takes(5) > DEAR


def _is_read(name: str, value: object) -> bool:
    try:
        reader_of(requests()[name]).read(msgpack.packb(value))
    except ValueError:
        return False
    except Exception:  # noqa: BLE001 - which are the errors of this system
        return False
    return True
