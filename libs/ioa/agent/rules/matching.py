"""Pick an agent for each need from what discovery found.

Whether somebody fits is told by the similarity, which means the same for every need; who fits better for one need is told by the
order of its hits, since the fused score behind it has seen more than the similarity.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ioa.agent.rules.lexicon import AUXILIARIES, QUESTION_WORDS, words
from ioa.agent.rules.needs import GoalNeed
from ioa.agent.rules.openings import strip_opening
from ioa.ports.brain import Contact
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.outcomes import UNTRIED, Remembered, kind_of_need, record_of, remember
from ioa.protocol.search import MAX_NEED_CHARS, Hit, Need, NeedHits

DEFAULT_THRESHOLD = 0.35
"""Of 35 needs the example agents serve all lie above it, of 18 unrelated ones 16 below (benchmarks/similarity.py)."""
AS_SIMILAR = 0.03
"""Hits this close to the first one are equally good, so that experience may decide."""
FAMILIAR = 0.10
"""How much less similar an agent may be whose examples begin as the need does, or whose card names what is to be made. The names of
a file's columns pull a need away from every example ("correlation between pallets and rainfall" lies at 0.28), while its first word
still says what is to be done."""
_FILE_NAME = re.compile(r"(?<![\w/.:@-])[\w-]+\.(?P<kind>[A-Za-z][A-Za-z0-9]{1,4})(?![\w/@])")
_COMMON_NAMES = {"csv": "the CSV file", "tsv": "the CSV file", "html": "the page", "htm": "the page", "py": "the script"}
_QUOTED_WORD = re.compile(r"[\"“‘'«](?<!\w['’])[\w-]+[\"”’'»](?!\w)")
_NUMBER = re.compile(r"(?<![\w.,/:@-])\d+(?:[.,]\d+)*(?![\w/@-])")
_ANY_NUMBER = "12"
_BEGINNING_CHARS = 40
NAMED = 0.15
"""How much less similar an agent may be whose card names what is wanted when the first one's does not."""
_PRODUCT = re.compile(r"(?:an?|the)\s+(?:[\w-]+\s+)?(?P<product>[a-z-]+)\s+(?:of|with|about|on|from|showing)\b")
_SAYS_LITTLE = (
    QUESTION_WORDS | AUXILIARIES | words("a an the it and find get give tell make create show list prepare have do produce")
)


@dataclass(frozen=True)
class Matcher:
    """Choose among hits.

    Attributes:
        threshold: The least similarity of an agent that fits.
        me: The asking agent; chosen only where it is best.
        aside: Whether the asking agent stands aside for any other that fits.
        contacts: Who the asking agent has worked with.
    """

    threshold: float
    me: AgentId
    aside: bool = False
    contacts: Sequence[Contact] = ()

    def pick(self, found: NeedHits) -> Hit | None:
        """The agent for a need, or None if nobody fits."""
        fitting = [hit for hit in found.hits if hit.similarity >= self._least_similarity(found.need.text, hit.card)]
        others = [hit for hit in fitting if hit.card.agent_id != self.me]
        if self.aside and others:
            fitting = others
        if not fitting:
            return None
        first = fitting[0]
        if first.card.agent_id == self.me:
            return first
        wanted = _wanted(found.need.text)
        # Who names what is to be made, "a chart of the totals", comes before who is only near to what it is made of.
        naming = [hit for hit in others if hit.similarity >= first.similarity - NAMED and _speaks_of(hit.card, wanted)]
        first, others = (naming[0], naming) if naming else (first, others)
        peers = [hit for hit in others if hit.similarity >= first.similarity - AS_SIMILAR]
        expected = expectations(self.contacts, found.need.text)
        return max(peers, key=lambda hit: expected.get(hit.card.pool, UNTRIED.success))

    def _least_similarity(self, need: str, card: AgentCard) -> float:
        begins_alike = _first_word(need) in {_first_word(example) for example in card.examples} - _SAYS_LITTLE - {""}
        makes_it = bool(_wanted(need)) and _speaks_of(card, _wanted(need))
        return self.threshold - (FAMILIAR if begins_alike or makes_it else 0.0)

    def nearest(self, need: GoalNeed, found: NeedHits) -> str:
        """Say who comes nearest to a need that nobody serves, how near, and what that one does; empty if nobody is even near."""
        hit = max(found.hits, key=lambda hit: hit.similarity, default=None)
        if hit is None or hit.similarity >= (least := self._least_similarity(found.need.text, hit.card)):
            return ""
        does = hit.matched_example or hit.card.description
        how_near = f"{hit.similarity:.2f} where {least:.2f} is needed"
        return f"Nearest to “{need.request}” is {hit.card.agent_id} ({how_near}), which does such as “{does}”."

    def mine(self, found: NeedHits) -> float:
        """How similar the asking agent is to a need, 0 if it was not found."""
        return next((hit.similarity for hit in found.hits if hit.card.agent_id == self.me), 0.0)


def expectations(contacts: Sequence[Contact], need: str) -> dict[PoolId, float]:
    """What share of such tasks each known pool is expected to do; one that is hardly known stays near what strangers do.

    What is old is so by the newest experience: an agent that did nothing for a month has forgotten nothing.
    """
    memories: dict[PoolId, list[Remembered]] = {}
    for contact in contacts:
        memories.setdefault(contact.card.pool, []).extend(map(remember, contact.outcomes))
    newest = max((outcome.at for contact in contacts for outcome in contact.outcomes), default=None)
    if newest is None:
        return {}
    kind = kind_of_need(need)
    return {pool: record_of(memory, kind, newest).success for pool, memory in memories.items()}


def need_for(need: GoalNeed, attached: str = "") -> Need:
    """Ask discovery for one need; `attached` says what came with it."""
    asked = without_names(need.query or need.request).strip().rstrip(".?!" if attached else "")
    return Need(text=f"{asked}{f' in {attached}' if attached else ''}"[:MAX_NEED_CHARS] or "-")


def kind_attached(inputs: Sequence[Artifact], need: GoalNeed) -> str:
    """Say what kind of file came with a goal: `the CSV file`. Empty if none or several kinds did, or if the need names a file."""
    found = (_FILE_NAME.search(artifact.name) for artifact in inputs)
    kinds = {_COMMON_NAMES.get(name["kind"].lower(), f"the {name['kind'].lower()} file") if name else "" for name in found}
    return kinds.pop() if len(kinds) == 1 and not _FILE_NAME.search(need.text) else ""


def mean_similarity(picked: Sequence[Hit | None]) -> float:
    """How well needs are served on the average; one that nobody serves counts as 0."""
    return sum(hit.similarity if hit else 0.0 for hit in picked) / len(picked) if picked else 0.0


def _first_word(request: str) -> str:
    """The first word of a request itself, in lower case."""
    found = re.match(r"[a-z]+", strip_opening(request)[1].lower())
    return found.group() if found else ""


def without_names(text: str) -> str:
    """Put common names in the place of a user's own: a file becomes one of its kind, a quoted word any word, a number any number.

    To an embedding model the name of a file or a word nobody has heard of is a topic of its own, which has nothing to do with what
    is asked for: "correlation between thickness and bottles in landings.csv" lies at 0.33 from an agent for statistics, "… in the
    CSV file" at 0.42. The similarity of "What is 7 + 7?" to a calculator goes by its digits, which say nothing of who can add.
    """
    common = _FILE_NAME.sub(lambda name: _COMMON_NAMES.get(name["kind"].lower(), "the file"), text)
    return _NUMBER.sub(_ANY_NUMBER, _QUOTED_WORD.sub("a word", common))


def _wanted(request: str) -> str:
    """What a request asks to have made: the chart of "make a pie chart of the totals"; empty if it does not say."""
    found = _PRODUCT.search(request.lower()[:_BEGINNING_CHARS])
    return found["product"] if found and found["product"] not in _SAYS_LITTLE else ""


def _speaks_of(card: AgentCard, product: str) -> bool:
    """Whether a card names a product; every card does if there is none."""
    said = " ".join((card.name, card.description, *(skill.name for skill in card.skills), *card.examples)).lower()
    return not product or re.search(rf"\b{re.escape(product)}s?\b", said) is not None
