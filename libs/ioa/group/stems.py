"""Cutting English words down to what their forms have in common, roughly; another language's words are cut alike."""

from __future__ import annotations

_DERIVED = tuple(
    "ization ational ation ating ator ated ate able ible ment ness ity ion er ied ive al ly en or es y e ing ed".split()
)
_OF_VERBS_IN_ATE = ("ated", "ating", "ized", "izing")
_LEAST_STEM = 3


def stem_of(lower: str) -> str:
    """Cut inflections and common derivations off a word, and spell it the American way."""
    word = _uninflected(singular_of(_american(lower)))
    if word.endswith(_DERIVED):
        for suffix in _DERIVED:
            if word.endswith(suffix) and len(word) - len(suffix) >= _LEAST_STEM:
                word = word[: -len(suffix)]
                break
    if len(word) > _LEAST_STEM and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    return word.rstrip("ey") if len(word) > _LEAST_STEM + 1 else word


def singular_of(word: str) -> str:
    """Cut the plural off a noun, or the third person off a verb."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > _LEAST_STEM else word


def verbs_of(participle: str) -> tuple[str, ...]:
    """What a participle may come from: `merging` from `merge`, `running` from `run`."""
    base = _uninflected(participle)
    return () if base == participle else (base, f"{base}e", base[:-1] if base[-1] == base[-2] else base)


def _uninflected(word: str) -> str:
    """Cut off what makes a verb a participle: `gathered` is `gather` before that is cut further."""
    if word.endswith(_OF_VERBS_IN_ATE):
        return word
    for suffix in ("ing", "ed"):
        if word.endswith(suffix) and len(word) - len(suffix) >= _LEAST_STEM and not word.endswith("eed"):
            return word[: -len(suffix)]
    return word


def _american(word: str) -> str:
    word = word.replace("isation", "ization").replace("yse", "yze")
    if word.endswith(("ise", "ised", "ises", "ising")):
        return word.replace("is", "iz")
    if len(word) > 4 and word.endswith(("our", "ours", "oured", "ouring")):
        return word.replace("our", "or")
    if len(word) > 4 and word.endswith(("tre", "tres")):
        return word.replace("tre", "ter")
    return word.replace("ogue", "og") if word.endswith(("ogue", "ogues")) else word
