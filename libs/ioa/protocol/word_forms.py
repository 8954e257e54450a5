"""The form that a text may have: what a policy waits for to be said, or to stand in a field."""

from __future__ import annotations

import re
from functools import lru_cache


def looks_like(text: str, pattern: str) -> bool:
    """Whether a text has the form of a pattern: `*` is anything, `?` any character, `#` a digit; case does not count.

    It takes no more steps than there are pairs of a character and a sign: what was found between two stars stays.
    """
    return _form_of(pattern).fullmatch(text.casefold()) is not None


@lru_cache(maxsize=1_024)
def _form_of(pattern: str) -> re.Pattern[str]:
    first, *others = ["".join(map(_sign, part)) for part in pattern.casefold().split("*")]
    if not others:
        return re.compile(first, re.DOTALL)
    *between, last = others
    return re.compile(f"{first}{''.join(f'(?>.*?{one})' for one in between)}.*{last}", re.DOTALL)


def _sign(sign: str) -> str:
    return {"?": ".", "#": r"\d"}.get(sign) or re.escape(sign)
