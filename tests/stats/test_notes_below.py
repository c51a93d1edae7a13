"""What figures rest on stands once below a text."""

from __future__ import annotations

from harness_lab.stats.estimates import Estimate, Interval
from harness_lab.stats.notes import notes_below


def an_estimate(effective: float | None = None, n: int = 1_240, method: str = "Wilson") -> Estimate:
    interval = Interval(low=0.1, high=0.3, confidence=0.95, method=method)
    clusters = None if effective is None else 60
    return Estimate(value=0.2, interval=interval, n=n, method="share", clusters=clusters, effective_n=effective)


def test_estimates_that_rest_on_the_same_share_a_note_and_give_their_effective_n_as_a_range() -> None:
    text = notes_below(f"a {an_estimate(90.0)}; b {an_estimate(1_100.0)}\nc {an_estimate()}")
    assert text.splitlines() == [
        "a 0.2 [0.1, 0.3] ¹; b 0.2 [0.1, 0.3] ¹",
        "c 0.2 [0.1, 0.3] ²",
        "¹ 95 %, n = 1,240, 60 clusters, effective n 90 to 1,100, Wilson",
        "² 95 %, n = 1,240, Wilson",
    ]


def test_a_text_of_two_estimates_stays_as_it_is() -> None:
    text = f"a {an_estimate()}; b {an_estimate()}"
    assert notes_below(text) == text


def test_brackets_that_are_no_basis_stay() -> None:
    text = "\n".join(f"a run (2,000 of them) has {an_estimate(n=n)}" for n in (1, 2, 3))
    assert "(2,000 of them) has 0.2 [0.1, 0.3] ³" in notes_below(text)
