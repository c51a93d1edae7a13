"""Draws v1: named by who asks and what for; the constants are published and never change."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab import draws
from harness_lab.draws import chance, child_key, mix, run_key, word
from harness_lab.outcome import Purpose

KEYS = st.integers(0, draws.MASK)


def test_the_keys_of_runs_are_the_published_splitmix64_sequence_of_seed_zero() -> None:
    # first outputs of the reference implementation for seed 0; mix(0) is 0, so the seed does not move them
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]
    assert [run_key(0, run) for run in range(4)] == published


def test_the_draws_of_version_one_do_not_change() -> None:
    root = run_key(20261130, 7)
    child = child_key(root, 3, 1)
    assert draws.VERSION == "draws v1"
    assert root == 0xDD21953673D2CCA3
    assert child == 0x01F1DA5863B266AA
    assert word(child, 2, 1, Purpose.LATENCY) == 0x827EFDF415199229


@given(KEYS)
@settings(max_examples=100, deadline=None)
def test_mixing_stays_in_64_bits_and_loses_nothing(z: int) -> None:
    assert 0 <= mix(z) <= draws.MASK
    assert _unmix(mix(z)) == z


@given(KEYS, st.permutations([(c, a, p) for c in (0, 1) for a in (0, 1) for p in (0, 3)]))
@settings(max_examples=50, deadline=None)
def test_a_draw_does_not_depend_on_the_order_of_use(key: int, order: list[tuple[int, int, int]]) -> None:
    assert {name: word(key, *name) for name in order} == {name: word(key, *name) for name in sorted(order)}


def test_words_are_uniform_enough_in_their_high_and_low_bits() -> None:
    words = [word(run_key(1, run), call, 0, Purpose.OUTPUT) for run in range(200) for call in range(50)]
    for shift in (0, 30, 60):
        cells = Counter(w >> shift & 15 for w in words)
        chi2 = sum((cells[i] - 625) ** 2 / 625 for i in range(16))
        assert chi2 < 44.3  # 15 degrees of freedom, one in ten thousand; the draws are fixed


def test_no_two_words_of_a_node_and_its_children_are_the_same() -> None:
    root = run_key(5, 0)
    children = [child_key(root, call, slot, attempt) for call in range(40) for slot in range(20) for attempt in (0, 1)]
    keys = [root, *children, *(child_key(children[0], call, slot) for call in range(40) for slot in range(20))]
    assert len(set(keys)) == len(keys)
    words = [word(root, c, a, p) for c in range(60) for a in range(32) for p in range(32)]
    assert len({*words, *keys}) == len(words) + len(keys)


@pytest.mark.parametrize("probability", [0.0, 0.02, 0.5, 1.0])
def test_a_chance_holds_as_often_as_it_says(probability: float) -> None:
    threshold = chance(probability)
    held = sum(word(run_key(3, run), 0, 0, Purpose.ERROR) >> 32 < threshold for run in range(20_000))
    assert held == pytest.approx(20_000 * probability, abs=4 * (20_000 * probability * (1 - probability)) ** 0.5)


def _unmix(z: int) -> int:
    """Undo the finaliser: it is a bijection, so no key is ever lost."""
    z = z ^ (z >> 31) ^ (z >> 62)
    z = z * pow(0x94D049BB133111EB, -1, 1 << 64) & draws.MASK
    z = z ^ (z >> 27) ^ (z >> 54)
    z = z * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & draws.MASK
    return z ^ (z >> 30) ^ (z >> 60)
