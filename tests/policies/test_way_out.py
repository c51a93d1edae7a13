"""Whoever follows a refusal's advice gets in, or was told at once that no ask fits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness_lab.budget import advice
from harness_lab.clock import Time
from harness_lab.floors import FloorKey, FloorRow, FloorTable
from harness_lab.outcome import Code, Refusal
from harness_lab.policies import Composed, Grant, SpawnAsk, compose, reservation_pool, runtime_floors
from harness_lab.usage import amounts

NOW, PATH = Time(0), FloorKey(backend="pi", model="m")


class Asking:
    """A driver that does as it is told."""

    def __init__(self, floor: int, total: int, held: int) -> None:
        floors = runtime_floors(FloorTable((FloorRow(key=PATH, floor=floor, n=6),)))
        self.policy: Composed = compose(floors, reservation_pool(input=total)).start()
        root = self.policy.spawn(SpawnAsk(None, (), amounts()), NOW)
        assert isinstance(root, Grant)
        self.root = root.ticket
        assert isinstance(self.policy.spawn(SpawnAsk(self.root, ((0, 0, 0),), amounts(input=held)), NOW), Grant)

    def ask(self, size: int) -> Grant | Refusal:
        answer = self.policy.spawn(SpawnAsk(self.root, ((0, 1, 0),), amounts(input=size), PATH), NOW)
        assert isinstance(answer, (Grant, Refusal))
        return answer


@given(floor=st.integers(0, 40), total=st.integers(0, 40), held=st.integers(0, 40), size=st.integers(0, 60))
def test_advice_leads_in_or_says_at_once_that_nothing_fits(floor: int, total: int, held: int, size: int) -> None:
    driver = Asking(floor, total, min(held, total))
    answer = driver.ask(size)
    if isinstance(answer, Grant):
        return
    helps = {short.helps for short in answer.shortfalls}
    fits = floor <= total - min(held, total)
    if not fits:  # then no size is advised: either none fits, or it is a matter of time
        assert answer.no_size_fits or helps & {"wait", "nothing"}
        return
    (short,) = answer.shortfalls
    better = short.limit if short.helps == "larger" else short.free
    assert better is not None
    assert isinstance(driver.ask(better), Grant)


def test_an_ask_below_a_floor_that_is_above_the_pool_is_told_so_and_not_sent_round_in_circles() -> None:
    low, high = Asking(8_000, 5_000, 0).ask(4_000), Asking(8_000, 5_000, 0).ask(9_000)
    assert isinstance(low, Refusal)
    assert isinstance(high, Refusal)
    assert low.code is Code.BELOW_RUNTIME_FLOOR  # the first is the one that bound
    assert high.code is Code.BUDGET_EXHAUSTED
    assert {short.code for short in low.shortfalls} == {short.code for short in high.shortfalls}
    assert low.shortfalls[1].asked == 8_000  # what the floor asks for is what the pool has not


def test_where_no_size_fits_the_sentence_for_the_model_says_what_to_do_instead() -> None:
    refusal = Asking(8_000, 5_000, 0).ask(4_000)
    assert isinstance(refusal, Refusal)
    assert refusal.no_size_fits == ("input",)
    assert advice(refusal) == (
        "below-runtime-floor and budget-exhausted: no ask of input fits: "
        "this path has never worked with less than 8000, and 5000 are left: "
        "take a path that needs less, or do the work here."
    )
