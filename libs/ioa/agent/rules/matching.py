"""Tell from what discovery found who fits a need, and who comes next.

Whether somebody fits is told by the similarity, which means the same for every need; who fits better for one need is told by the
order of its hits, since the fused score behind it has seen more than the similarity: keywords, load, and how such tasks went.
Who asks makes no difference, so that a goal comes out the same whoever leads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from ioa.agent.rules.listed_parts import coordinates
from ioa.agent.rules.text.goal_splitting import GoalNeed
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.search import MAX_NEED_CHARS, Hit, Need, NeedHits

DEFAULT_THRESHOLD = 0.35
"""Of 29 needs the example agents serve 26 lie above it, of 18 unrelated ones 15 below (benchmarks/similarity.py)."""
MAX_OTHERS = 2
"""How many stand by for a need, for when the best one fails."""
NEAR = 0.10
"""By how much less similar than one that fits an agent may be that stands by where too few fit. Similarity misses who reads such
data by that much, and who is asked in vain refuses; whether a goal is anybody's at all is told by who fits."""
_FILE_NAME = re.compile(r"(?<![\w/.:@-])[\w-]+\.(?P<kind>[A-Za-z][A-Za-z0-9]{1,4})(?![\w/@])")
_COMMON_NAMES = {
    **dict.fromkeys(("csv", "tsv", "tab"), "the CSV file"), **dict.fromkeys(("json", "jsonl", "ndjson"), "the JSON file"),
    "html": "the page", "htm": "the page", "py": "the script",
}  # fmt: skip
_QUOTED_WORD = re.compile(r"[\"“‘'«](?<!\w['’])[\w-]+[\"”’'»](?!\w)")
_NUMBER = re.compile(r"(?:(?:^|(?<=[-+*/^×÷(] )|(?<=[+*/^×÷(]))[-−]|(?<![\w.,/:@-]))\d+(?:[.,]\d+)*(?![\w/@-])")
_ANY_NUMBER = "12"


@dataclass(frozen=True)
class Matcher:
    """Choose among hits.

    Attributes:
        threshold: The least similarity of an agent that fits.
        me: The asking agent.
        aside: Whether the asking agent stands aside for any other that fits.
    """

    threshold: float
    me: AgentId
    aside: bool = False

    def fitting(self, alone: NeedHits, *with_files: NeedHits) -> list[Hit]:
        """Who fits a need, and if anybody does who is near, the best first, one of each pool: a replica fails where its pool has.

        Where a file came along, the two nearest to it who refuse what they do not understand are asked first, however far: one may
        be near by the words alone, as a calculator is to a percentage of a column, and to ask in vain costs a turn.

        Args:
            alone: What was found for the need.
            with_files: What was found for it with the kind of file that came along; the best of each take turns.
        """
        found = (alone, *with_files)
        if not any(hit.similarity >= self.threshold for hits in found for hit in hits.hits):
            return []
        near = [
            hit
            for least in (self.threshold, self.threshold - NEAR)
            for at_once in zip_longest(*([hit for hit in hits.hits if hit.similarity >= least] for hits in found))
            for hit in at_once
            if hit is not None
        ]
        fitting = _one_of_each_pool((*_nearest_to_file(with_files, 2), *near))
        others = [hit for hit in fitting if hit.card.agent_id != self.me]
        fitting = others if self.aside and others else fitting
        # Who brings others together has nothing to do where no parts are listed; see `coordinator`.
        return sorted(fitting, key=lambda hit: coordinates(hit.card))[: 1 + MAX_OTHERS]

    def last_resort(self, alone: NeedHits, *with_files: NeedHits) -> list[Hit]:
        """Who is near to a need that nobody fits, and refuses what it does not understand: to ask in vain does no harm then.

        Where a file came along, whoever is nearest to it says what it does not understand of the words, which nobody else can. Who
        brings others together is not asked: whatever the need is, that one would only say that no parts are listed.

        Args:
            alone: What was found for the need.
            with_files: What was found for it with the kind of file that came along.
        """
        least = self.threshold - NEAR
        near = [
            NeedHits(need=found.need, hits=tuple(hit for hit in found.hits if _refuses(hit) and hit.similarity >= least))
            for found in (alone, *with_files)
        ]
        return _one_of_each_pool((*_nearest_to_file(with_files, 1), *replace(self, threshold=least).fitting(*near)))[
            : 1 + MAX_OTHERS
        ]

    def coordinator(self, *found: NeedHits) -> Hit | None:
        """Who fits a need and brings others together, which is what a goal that lists its parts asks for; not the asking agent."""
        fitting = [hit for hits in found for hit in hits.hits if hit.similarity >= self.threshold]
        return next((hit for hit in fitting if coordinates(hit.card) and hit.card.agent_id != self.me), None)

    def nearest(self, need: GoalNeed, found: NeedHits) -> str:
        """Say who comes nearest to a need that nobody serves, how near, and what that one does; empty if nobody is even near."""
        does_it_itself = [hit for hit in found.hits if not coordinates(hit.card)]
        hit = max(does_it_itself or found.hits, key=lambda hit: hit.similarity, default=None)
        if hit is None or hit.similarity >= self.threshold:
            return ""
        does = hit.matched_example or hit.card.description
        how_near = f"{hit.similarity:.2f} where {self.threshold:.2f} is needed"
        return f"Nearest to “{need.text}” is {hit.card.agent_id} ({how_near}), which does such as “{does}”."


def _refuses(hit: Hit) -> bool:
    return bool(hit.card.declines) and not coordinates(hit.card)


def _nearest_to_file(with_files: Iterable[NeedHits], count: int) -> list[Hit]:
    return [hit for hits in with_files for hit in list(filter(_refuses, hits.hits))[:count]]


def _one_of_each_pool(hits: Iterable[Hit]) -> list[Hit]:
    of_pool: dict[PoolId, Hit] = {}
    for hit in hits:
        of_pool.setdefault(hit.card.pool, hit)
    return list(of_pool.values())


def need_for(need: GoalNeed, attached: str = "") -> Need:
    """Ask discovery for one need; `attached` says what came with it."""
    asked = without_names(need.text).strip().rstrip(".?!" if attached else "")
    return Need(text=f"{asked}{f' in {attached}' if attached else ''}"[:MAX_NEED_CHARS] or "-")


def kind_attached(inputs: Sequence[Artifact], need: GoalNeed) -> str:
    """Say what kind of file came with a goal: `the CSV file`. Empty if none or several kinds did, or if the need names a file."""
    found = (_FILE_NAME.search(artifact.name) for artifact in inputs)
    kinds = {_common_name(name) if name else "" for name in found}
    return kinds.pop() if len(kinds) == 1 and not _FILE_NAME.search(need.text) else ""


def without_names(text: str) -> str:
    """Put common names in the place of a user's own: a file becomes one of its kind, a quoted word any word, a number any number.

    To an embedding model the name of a file or a word nobody has heard of is a topic of its own, which has nothing to do with what
    is asked for: "correlation between thickness and bottles in landings.csv" lies at 0.33 from an agent for statistics, "… in the
    CSV file" at 0.42. The similarity of "What is 7 + 7?" to a calculator goes by its digits, which say nothing of who can add.
    """
    return _NUMBER.sub(_ANY_NUMBER, _QUOTED_WORD.sub("a word", _FILE_NAME.sub(_common_name, text)))


def _common_name(name: re.Match[str]) -> str:
    kind = name["kind"].lower()
    return _COMMON_NAMES.get(kind, f"the {kind} file")
