"""Metrics for the path of every message: they tell what prometheus-client's own would."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
from prometheus_client.core import Metric

from ioa.telemetry.fast_metrics import TalliedTimes, Tally

_BOUNDS = (0.001, 0.5, 1.0)
_numbers = itertools.count()
_labels = st.tuples(st.sampled_from(["say", "sync"]), st.sampled_from(["ok", "internal"]))


def _told(metrics: Iterable[Metric]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    samples = [sample for metric in metrics for sample in metric.samples if not sample.name.endswith("_created")]
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for one in samples}


@given(counted=st.lists(_labels))
def test_a_tally_tells_what_a_counter_does(counted: list[tuple[str, str]]) -> None:
    """By its labels; what was never counted is not told."""
    name, labels = f"tested_{next(_numbers)}", ("subject", "code")
    tally, counter = Tally(f"{name}_total", "Tested", labels), Counter(name, "Tested", labels, registry=CollectorRegistry())
    for values in counted:
        tally.counts[values] += 1
        counter.labels(*values).inc()
    REGISTRY.unregister(tally)
    assert _told(tally.collect()) == _told(counter.collect())


@given(observed=st.lists(st.tuples(_labels, st.floats(0, 2) | st.sampled_from(_BOUNDS))))
def test_tallied_times_tell_what_a_histogram_does(observed: list[tuple[tuple[str, str], float]]) -> None:
    """In each bucket, at its end as well, in all, and together."""
    name, labels = f"tested_{next(_numbers)}", ("subject", "code")
    times = TalliedTimes(name, "Tested", _BOUNDS, labels)
    histogram = Histogram(name, "Tested", labels, buckets=_BOUNDS, registry=CollectorRegistry())
    for values, seconds in observed:
        times.observe(seconds, values)
        histogram.labels(*values).observe(seconds)
    REGISTRY.unregister(times)
    assert _told(times.collect()) == _told(histogram.collect())


def test_what_is_known_beforehand_is_told_from_the_start() -> None:
    """So that the first event is an increase; what has no labels is known."""
    made = (
        Tally("tested_known_total", "Tested", ["event"], [("a",)]),
        Tally("tested_plain_total", "Tested"),
        TalliedTimes("tested_times", "Tested", _BOUNDS),
    )
    for one in made:
        REGISTRY.unregister(one)
    told = [_told(one.collect()) for one in made]
    assert told[0] == {("tested_known_total", (("event", "a"),)): 0}
    assert (told[1], told[2]["tested_times_count", ()]) == ({("tested_plain_total", ()): 0}, 0)
