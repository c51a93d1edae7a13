from __future__ import annotations

import pandas as pd
import pytest

from harness_lab.errors import InputError
from harness_lab.widgets import CeilingExplorer, ceiling_explorer

USD = 10**9


def runs() -> pd.DataFrame:
    """Return 100 runs that cost $1 to $100 and made as many calls; every second one delivered."""
    return pd.DataFrame(
        {
            "run": [f"r{k}" for k in range(1, 101)],
            "node": "0",
            "outcome": "completed",
            "delivered": [k % 2 == 0 for k in range(1, 101)],
            "cost_nusd": [k * USD for k in range(1, 101)],
            "calls": range(1, 101),
        }
    )


@pytest.fixture
def explorer() -> CeilingExplorer:
    return ceiling_explorer(runs(), target=0.8, channels=("cost", "calls"))


def test_it_starts_at_the_ceiling_that_the_data_support(explorer: CeilingExplorer) -> None:
    assert explorer.choice.ceiling is not None
    assert explorer.limit == explorer.choice.ceiling
    assert explorer.slider.max == 100


def test_moving_the_limit_changes_the_words_and_the_picture(explorer: CeilingExplorer) -> None:
    before = explorer.picture.value
    explorer.slider.value = 60.0
    assert "A limit of $60 a run, on 100 recorded runs" in explorer.readout.value
    assert "<b>runs cut</b>: 40: 40 % [" in explorer.readout.value
    assert "20 of them had delivered" in explorer.readout.value
    assert explorer.picture.value != before
    assert "limit $60" in explorer.picture.value


def test_avoided_and_sunk_spend_are_what_a_person_would_reckon(explorer: CeilingExplorer) -> None:
    explorer.slider.value = 60.0
    effect = explorer.effect()
    assert effect["avoided_nusd"] == sum(k - 60 for k in range(61, 101)) * USD
    assert effect["sunk_nusd"] == 40 * 60 * USD
    assert "$820: 16.2 % [" in explorer.readout.value
    assert "$2,400: 47.5 % [" in explorer.readout.value


def test_another_channel_has_its_own_range_unit_and_words(explorer: CeilingExplorer) -> None:
    explorer.channel.value = "calls"
    assert (explorer.slider.step, explorer.slider.description) == (1.0, "Limit")
    explorer.slider.value = 50
    assert explorer.limit == 50
    assert "A limit of 50 calls a run" in explorer.readout.value


def test_coming_back_to_a_channel_gives_the_same_picture(explorer: CeilingExplorer) -> None:
    first = explorer.picture.value
    explorer.channel.value = "calls"
    explorer.channel.value = "cost"
    assert explorer.picture.value == first


def test_every_control_has_a_label_and_a_class(explorer: CeilingExplorer) -> None:
    assert (explorer.channel.description, explorer.slider.description) == ("Limit on", "Limit, $")
    classes = {name for part in (explorer, *explorer.children) for name in part._dom_classes}
    wanted = {"hl-ceiling-explorer", "hl-ceiling-channel", "hl-ceiling-slider", "hl-ceiling-readout"}
    assert wanted | {"hl-ceiling-picture"} <= classes


def test_where_no_ceiling_is_supported_it_starts_at_what_nine_in_ten_used() -> None:
    few = ceiling_explorer(runs().head(10), target=0.99)
    assert few.choice.ceiling is None
    assert few.slider.value == pytest.approx(9.1)


def test_a_limit_that_cuts_nothing_is_told_without_an_interval() -> None:
    explorer = ceiling_explorer(runs())
    explorer.slider.value = 100
    assert "<b>runs cut</b>: 0:" in explorer.readout.value
    assert "<b>spend avoided</b>: $0:" in explorer.readout.value


def test_nothing_to_show_is_said_and_cannot_be_moved() -> None:
    explorer = ceiling_explorer(runs().assign(outcome="unknown"))
    assert "nothing can be said" in explorer.readout.value
    assert explorer.slider.disabled
    assert "no rows" in explorer.picture.value


def test_unknown_spend_is_unknown_in_words_too() -> None:
    explorer = ceiling_explorer(runs().drop(columns="cost_nusd"), "calls", channels=("calls",))
    assert "<b>spend avoided</b>: $0: unknown" in explorer.readout.value


def test_a_channel_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match=r"^channel: expected one of cost, calls"):
        ceiling_explorer(runs(), "dollars")  # type: ignore[arg-type]
