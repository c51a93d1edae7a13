"""Drift, the split of a change of spend, and a config held against newer records."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.analyze import check_config, drift, spend_split
from harness_lab.cli import main
from harness_lab.errors import InputError
from harness_lab.export import Evidence, Provenance, TunedConfig
from harness_lab.floors import FloorKey, FloorRow, FloorTable
from harness_lab.policies import compose, reservation_pool, runtime_floors
from harness_lab.settlements import Settlements

DAY = 86_400_000_000_000


def runs(n: int, *, seed: int = 0, scale: float = 1.0, **columns: object) -> pd.DataFrame:
    tokens = np.random.default_rng(seed).lognormal(10, 0.5, n).astype(np.int64)
    frame = {"run": [f"{seed}-{k}" for k in range(n)], "outcome": "completed", "input_total": tokens, "output": 0}
    frame |= {"cost_nusd": (tokens * 3000 * scale).astype(np.int64), "start_ns": np.arange(n) * DAY}
    return pd.DataFrame(frame | {"agent": "a", "model": "m", "backend": "b"} | columns)


def config(*, usd: float = 0.2, share: float | None = 0.9, **provenance: str) -> TunedConfig:
    row = FloorRow(key=FloorKey(agent="a", backend="b", model="m"), floor=8_000, n=40)
    policy = compose(runtime_floors(FloorTable((row,))), reservation_pool(cost_usd=usd), name="p")
    stated = Evidence(
        value="reservation_pool.cost_usd", chosen=usd, unit="USD", target="so many complete", target_share=share,
        method="m", n=100,
    )  # fmt: skip
    return TunedConfig(
        policy, provenance=Provenance(date="2026-01-01", harness_lab="0", **provenance), evidence=(stated,)
    )


def statuses(found) -> dict[str, str]:
    return {one.what.split(" = ")[0].split(" of ")[0]: one.status for one in found.checked}


def test_the_same_world_has_not_moved() -> None:
    assert drift(runs(300), runs(300, seed=1)).moved == ()


def test_dearer_tokens_move_spend_and_not_tokens() -> None:
    found = drift(runs(300), runs(300, seed=1, scale=1.5))
    assert [one.column for one in found.moved] == ["cost_nusd"]
    assert "cost_nusd: mean moved by" in found.summary()


def test_false_alarms_stay_within_the_stated_rate() -> None:
    alarms = sum(bool(drift(runs(60, seed=2 * s), runs(60, seed=2 * s + 1)).moved) for s in range(150))
    assert alarms <= 14  # 5 % of 150 is 7.5; 99 % of binomial draws lie at or below 14


def test_a_change_point_says_when() -> None:
    old = runs(100)
    new = runs(100, seed=1, scale=3.0, start_ns=(100 + np.arange(100)) * DAY)
    found = drift(old, new)
    assert found.change.place.holds(100)
    assert abs(found.changed_ns // DAY - 100) < 8
    assert "cost_nusd changed level after row" in found.summary()


def test_a_context_change_names_the_fields() -> None:
    old = runs(40, context="c1", context_fields=json.dumps({"client": "1.0", "tools": 9}))
    new = runs(40, context="c2", context_fields=json.dumps({"client": "1.1", "tools": 9}))
    (change,) = drift(old, new).contexts
    assert change.fields == {"client": ("1.0", "1.1")}
    assert "client '1.0' -> '1.1'" in str(change)


def test_groups_that_come_and_go_are_listed() -> None:
    found = drift(runs(40), runs(40, agent="z"), by="agent")
    assert (found.appeared, found.vanished) == ((("z",),), (("a",),))


def test_too_few_runs_cannot_be_said() -> None:
    found = drift(runs(3), runs(300))
    assert found.moved == ()
    assert "cannot be said: cost_nusd" in found.summary()


def test_a_hand_worked_split() -> None:
    def month(cheap: int, dear: int, tokens: int, price: int) -> pd.DataFrame:
        models = ["cheap"] * cheap + ["dear"] * dear
        cost = [tokens * price * (1 if m == "cheap" else 10) for m in models]
        frame = {"run": range(len(models)), "outcome": "completed", "model": models, "input_total": tokens, "output": 0}
        return pd.DataFrame(frame | {"cost_nusd": cost})

    only_mix = spend_split(month(30, 10, 1000, 1000), month(20, 20, 1000, 1000), by="model")
    assert only_mix.effects["mix"].value == pytest.approx(only_mix.change_usd)
    only_tokens = spend_split(month(30, 10, 1000, 1000), month(30, 10, 1500, 1000), by="model")
    assert only_tokens.effects["tokens"].value == pytest.approx(only_tokens.change_usd)
    only_price = spend_split(month(30, 10, 1000, 1000), month(60, 20, 1000, 2000), by="model")
    assert only_price.effects["price"].value == pytest.approx(only_price.change_usd)
    assert only_price.volume_usd == pytest.approx(40 * (0.00325 + 0.0065) / 2)


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_the_effects_and_the_volume_sum_to_the_change(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sides = [runs(int(rng.integers(12, 60)), seed=seed + k, scale=1 + k, model=None) for k in (0, 1)]
    sides = [side.assign(model=rng.choice(["x", "y", "z"], len(side))) for side in sides]
    found = spend_split(*sides)
    effects = sum(one.value for one in found.effects.values())
    assert effects == pytest.approx(found.change_usd)
    total = effects * sum(found.runs) / 2 + found.volume_usd
    assert total == pytest.approx(found.totals_usd[1] - found.totals_usd[0])


def test_the_interval_of_a_price_effect_covers() -> None:
    hits = 0
    for seed in range(200):
        sides = []
        for side in (0, 1):
            rng = np.random.default_rng(2 * seed + side)
            user = np.repeat(np.arange(14), 6)
            level = rng.normal(0, 0.4, 14)[user]
            tokens = np.exp(9 + level + rng.normal(0, 0.4, user.size))
            price = np.exp(rng.normal(0, 0.3, 14)[user] - 0.045 + rng.normal(0, 0.2, user.size) - 0.02) * (1 + side)
            frame = {"run": range(user.size), "outcome": "completed", "input_total": tokens.astype(int), "output": 0}
            frame |= {"cost_nusd": (tokens * price * 1000).astype(int), "user": [f"{side}-{u}" for u in user]}
            sides.append(pd.DataFrame(frame))
        effect = spend_split(*sides).effects["price"]
        truth = np.exp(9 + 0.08 + 0.08) * 1e-6  # tokens are the same on both sides: tokens x (2 - 1) micro-dollars
        hits += bool(effect.holds(truth))
    assert hits >= 181  # 1 % of binomial draws at 0.95 lie below


def test_unknown_spend_is_left_out_and_counted() -> None:
    cost = pd.array([None, *[5] * 39], dtype="Int64")
    found = spend_split(runs(40, cost_nusd=cost), runs(40))
    assert (found.runs, found.unknown) == ((39, 40), (1, 0))
    with pytest.raises(InputError, match=r"^later records"):
        spend_split(runs(40), runs(40, cost_nusd=pd.array([None] * 40, dtype="Int64")))


def test_a_config_that_holds() -> None:
    found = check_config(config(), runs(200).query("input_total >= 8000"))
    assert statuses(found)["reservation_pool.cost_usd"] == "holds"
    assert statuses(found)["floor 8,000"] == "holds"
    assert not found.stale


def test_a_broken_promise_is_stale_and_says_what_the_newer_runs_give() -> None:
    found = check_config(config(), runs(300, scale=3.0))
    (one,) = [one for one in found.stale if one.what.startswith("reservation_pool")]
    assert "90 % shall complete within it" in one.found
    assert "the newer runs give cost ceiling" in one.suggestion


def test_a_floor_with_a_newer_settlement_below_it_is_stale() -> None:
    below = runs(60).assign(input_total=[7_000, *[9_000] * 59])
    (one,) = [one for one in check_config(config(), below).stale if one.what.startswith("floor")]
    assert "1 of 60 newer eligible settlements lie below it; the lowest is 7,000" in one.found


def test_another_context_makes_a_floor_stale_and_names_the_fields() -> None:
    key = FloorKey(agent="a", backend="b", model="m", context="c1")
    policy = runtime_floors(FloorTable((FloorRow(key=key, floor=100, n=40),)))
    tuned = TunedConfig(policy, provenance=Provenance(date="2026-01-01", harness_lab="0"))
    old, new = (runs(40, context=c, context_fields=json.dumps({"tools": t})) for c, t in (("c1", 9), ("c2", 12)))
    one = next(one for one in check_config(tuned, new, reference=old).checked if one.what.startswith("floor"))
    assert (one.status, "tools: 9 -> 12" in one.found) == ("stale", True)


def test_records_of_other_paths_are_no_all_clear() -> None:
    found = check_config(config(share=None), runs(60, agent="z"))
    assert set(statuses(found).values()) == {"unknown"}


def test_a_config_past_its_date_is_stale() -> None:
    tuned = config(stale_after="2026-03-01")
    late, early = (int(datetime(2026, m, 2, tzinfo=UTC).timestamp()) * 10**9 for m in (3, 2))
    assert statuses(check_config(tuned, runs(40), now_ns=late))["age"] == "stale"
    assert statuses(check_config(tuned, runs(40), now_ns=early))["age"] == "holds"


def test_with_a_reference_the_drift_says_why() -> None:
    found = check_config(config(), runs(300, seed=1, scale=3.0), reference=runs(300))
    assert any("cost_nusd, against the records" in one.what for one in found.stale)
    assert found.split.effects["price"].low > 0
    assert "price per token" in found.summary()


def test_an_unbroken_promise_is_seldom_called_broken() -> None:
    usd = float(np.exp(10 + 0.5 * 1.2815516) * 3e-6)  # exactly 90 % of the runs lie below
    broken = 0
    for seed in range(200):
        stale = check_config(config(usd=usd), runs(120, seed=seed)).stale
        broken += any(one.what.startswith("reservation_pool") for one in stale)
    assert broken <= 6  # 1 % of 200 is 2; 99 % of binomial draws lie at or below 6


def test_the_command_exits_with_1_when_stale(tmp_path, capsys) -> None:
    place = config().write(tmp_path / "config.json")
    newer = tmp_path / "new.parquet"
    Settlements.from_columns(runs(300, scale=3.0).assign(node="0")).to_parquet(newer)
    with pytest.raises(SystemExit) as ended:
        main(["check", str(place), "--against", str(newer), "--reference", str(newer), "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert (ended.value.code, answer["stale"]) == (1, True)
    with pytest.raises(SystemExit) as ended:
        main(["drift", str(newer), str(newer)])
    assert ended.value.code == 0
    assert "nothing is seen to have moved" in capsys.readouterr().out


def test_the_parts_of_the_groups_sum_to_the_whole_and_have_intervals() -> None:
    sides = [runs(80, seed=k, scale=1 + k, model=None) for k in (0, 1)]
    sides = [side.assign(model=np.where(np.arange(80) % 3, "x", "y")) for side in sides]
    found = spend_split(*sides)
    for name, one in found.effects.items():
        assert found.groups[f"{name}_usd"].sum() == pytest.approx(one.value)
    assert (found.groups["price_usd_low"] > 0).all()  # prices doubled in each
    assert (found.groups["price_usd_low"] < found.groups["price_usd"]).all()
    assert "The largest part of a single group: price of a / x, +$" in found.summary()


def test_a_group_in_too_few_runs_has_no_interval_and_says_what_it_needs() -> None:
    sides = [runs(40, seed=k, model=None) for k in (0, 1)]
    sides = [side.assign(model=np.where(np.arange(40) < 3, "rare", "common")) for side in sides]
    groups = spend_split(*sides).groups.set_index("group")
    assert groups.loc["a / common", "note"] == ""
    assert groups.loc["a / rare", "note"] == "needs n >= 10: 3 run(s) with this group"
    assert np.isnan(groups.loc["a / rare", "price_usd_low"])


def test_the_interval_of_a_groups_price_effect_covers() -> None:
    hits = 0
    for seed in range(120):
        sides = []
        for side in (0, 1):
            rng = np.random.default_rng(5_000 + 2 * seed + side)
            tokens = np.exp(9 + rng.normal(0, 0.4, 60))
            price = np.exp(rng.normal(0, 0.3, 60) - 0.045) * (1 + side)
            frame = {"run": range(60), "outcome": "completed", "input_total": tokens.astype(int), "output": 0}
            frame |= {"cost_nusd": (tokens * price * 1000).astype(int), "model": np.repeat(["x", "y"], 30)}
            sides.append(pd.DataFrame(frame))
        row = spend_split(*sides, by="model").groups.iloc[0]
        hits += bool(row["price_usd_low"] <= np.exp(9.08) * 1e-6 / 2 <= row["price_usd_high"])
    assert hits >= 107  # 1 % of binomial draws of 120 at 0.95 lie below
