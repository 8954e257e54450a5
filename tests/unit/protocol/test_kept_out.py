"""Whom registries keep out, as those hear it who can refuse them."""

from __future__ import annotations

from ioa.protocol.kept_out import KeptOut, KeptOutList


def test_what_registries_tell_counts_together_and_the_newest_of_each() -> None:
    """Whoever one of them keeps out is kept out; who is left out of its next list is not."""
    heard = KeptOutList()
    heard.hear(KeptOut(by="r1", names=("eve", "mallory")), 0.0)
    heard.hear(KeptOut(by="r2", names=("eve",)), 0.0)
    assert heard.names(1.0) == {"eve", "mallory"}
    heard.hear(KeptOut(by="r1"), 1.0)
    assert heard.names(1.0) == {"eve"}


def test_a_registry_that_is_gone_keeps_nobody_out() -> None:
    """Nobody stays locked out for good by one that died."""
    heard = KeptOutList()
    heard.hear(KeptOut(by="r1", names=("eve",)), 0.0)
    assert (heard.names(14.0), heard.names(16.0)) == (frozenset({"eve"}), frozenset())
