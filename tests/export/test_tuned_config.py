"""A tuned config survives its file, says what stands behind it, and is refused when it was changed."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.errors import InputError, ReadError
from harness_lab.export import AgentLimits, Evidence, Provenance, TunedConfig
from harness_lab.export.canonical import canonical, number_text
from harness_lab.export.schema import make_schema, schema
from harness_lab.floors import FloorKey, FloorRow, FloorTable
from harness_lab.policies import PolicySpec, compose, reservation_pool, runtime_floors, shared_ledger, tree_limits
from harness_lab.pricing import Price, PriceTable

PROVENANCE = Provenance(date="2026-01-31", harness_lab="0.1.0", seed=7)
KEY = b"sixteen bytes or more"
WHY = Evidence(value="reservation_pool.cost_usd", chosen=0.5, unit="USD per run", target="85 %", method="m", n=6)
VERSION_1 = Path(__file__).with_name("config_version_1.json")

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
counts = st.none() | st.integers(0, 10**12)
dollars = st.none() | st.floats(0, 1e6, allow_nan=False)


@st.composite
def policies(draw: st.DrawFn) -> PolicySpec:
    row = FloorRow(key=FloorKey(backend=draw(names), model=draw(names)), floor=draw(counts), n=6, note=draw(names))
    parts = [
        shared_ledger(draw(st.integers(0, 10**9)), draw(dollars), draw(st.none() | st.integers(0, 10**6))),
        reservation_pool(tokens=draw(counts), cost_usd=draw(dollars), inside=draw(st.sampled_from(["stop", "record"]))),
        tree_limits(draw(counts), draw(counts), draw(counts), concurrency="parent"),
        runtime_floors(FloorTable((row,))),
    ]
    chosen = draw(st.lists(st.sampled_from(range(4)), unique=True, min_size=1))
    return compose(*(parts[i] for i in chosen), name=draw(names))


@settings(max_examples=60, deadline=None)
@given(policies(), st.sampled_from(["enforce", "warn", "shadow"]))
def test_a_config_is_the_same_after_its_file(policy: PolicySpec, mode: str) -> None:
    agents = (AgentLimits(name=policy.name, max_calls=0),)
    config = TunedConfig(policy, provenance=PROVENANCE, mode=mode, agents=agents, evidence=(WHY,))  # type: ignore[arg-type]
    back = TunedConfig.from_json(config.to_json())
    assert (back.policy, back.mode, back.agents, back.evidence) == (policy, mode, agents, (WHY,))
    assert back.to_json() == config.to_json()
    assert back.digest() == config.digest()


@settings(max_examples=40, deadline=None)
@given(policies())
def test_every_file_is_valid_by_the_published_schema(policy: PolicySpec) -> None:
    text = TunedConfig(policy, provenance=PROVENANCE, evidence=(WHY,)).to_json()
    jsonschema.Draft202012Validator(schema()).validate(json.loads(text))


def test_the_published_schema_is_the_one_of_the_types() -> None:
    how = "python -c 'from harness_lab.export import schema; print(schema.text(), end=\"\")'"
    assert schema() == make_schema(), f"write it again: {how} > harness_lab/export/tuned-config.schema.json"


def test_the_schema_refuses_what_the_reader_refuses() -> None:
    plain = json.loads(TunedConfig(shared_ledger(1), provenance=PROVENANCE).to_json())
    plain["policy"]["modules"][0]["max_stepz"] = 3
    assert not jsonschema.Draft202012Validator(schema()).is_valid(plain)


def test_prices_stay_with_the_config() -> None:
    table = PriceTable({"m": (Price.usd_per_million(input=3.0, output=15.0),)}, source="by hand")
    config = TunedConfig(shared_ledger(1), provenance=PROVENANCE, prices=table)
    assert TunedConfig.from_json(config.to_json()).prices == table


def test_a_file_of_the_first_version_is_read() -> None:
    config = TunedConfig.read(VERSION_1)
    assert config.policy.module("reservation_pool").cost_usd == 0.82
    assert config.mode == "enforce"
    assert config.evidence[0].n == 2229


def test_a_value_has_the_evidence_of_the_file_where_it_states_none() -> None:
    own = WHY.model_copy(update={"date": "2026-02-01"})
    config = TunedConfig(reservation_pool(cost_usd=0.5), provenance=PROVENANCE, evidence=(own,))
    found = config.evidence_of("reservation_pool.cost_usd")
    assert found is not None
    assert (found.date, found.seed, found.harness_lab) == ("2026-02-01", 7, "0.1.0")
    assert config.evidence_of("reservation_pool.calls") is None


def test_a_file_that_was_changed_after_it_was_written_is_refused() -> None:
    text = TunedConfig(shared_ledger(41), provenance=PROVENANCE).to_json().replace('"max_steps": 41', '"max_steps": 42')
    with pytest.raises(InputError, match="changed after it was written"):
        TunedConfig.from_json(text)
    plain = json.loads(text)
    del plain["seal"]
    assert TunedConfig.from_json(json.dumps(plain)).policy == shared_ledger(42)


def test_a_signature_holds_for_one_key_and_one_content() -> None:
    signed = TunedConfig(shared_ledger(41), provenance=PROVENANCE).to_json(key=KEY)
    assert TunedConfig.from_json(signed, key=KEY).policy == shared_ledger(41)
    with pytest.raises(InputError, match="a signature by this key"):
        TunedConfig.from_json(signed, key=b"another key, as long")
    with pytest.raises(InputError, match="no signature"):
        TunedConfig.from_json(TunedConfig(shared_ledger(1), provenance=PROVENANCE).to_json(), key=KEY)
    with pytest.raises(InputError, match="at least 16 bytes"):
        TunedConfig(shared_ledger(1), provenance=PROVENANCE).to_json(key=b"short")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e21, "1e+21"),
        (999999999999999900000.0, "999999999999999900000"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (-1.5e300, "-1.5e+300"),
        (0.1 + 0.2, "0.30000000000000004"),
        (333333333.33333329, "333333333.3333333"),
    ],
)
def test_numbers_are_written_as_ecmascript_writes_them(value: float, text: str) -> None:
    assert number_text(value) == text


def test_canonical_keys_are_in_the_order_of_their_utf16_units() -> None:
    # the example of RFC 8785, section 3.2.3
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    text = canonical(dict.fromkeys(keys, 0))
    assert list(json.loads(text)) == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "other"}', '{"policy": NaN}', "\x00", "9" * 5000])
def test_what_is_no_tuned_config_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError) as refused:
        TunedConfig.from_json(text)
    assert "\n" not in str(refused.value)


def test_a_newer_version_is_refused() -> None:
    text = TunedConfig(shared_ledger(1), provenance=PROVENANCE).to_json()
    with pytest.raises(InputError, match="at most 3"):
        TunedConfig.from_json(text.replace('"schema_version": 3', '"schema_version": 4'))


def test_the_share_that_an_older_file_promised_in_words_is_read_as_a_number() -> None:
    old = TunedConfig.read(VERSION_1)
    assert [(one.target, one.target_share) for one in old.evidence] == [("at least 85% of runs complete", 0.85)]
    again = TunedConfig.from_json(old.to_json())
    assert again.evidence == old.evidence
    assert json.loads(old.to_json())["schema_version"] == 3


def test_words_alone_promise_nothing_in_a_file_of_today() -> None:
    text = TunedConfig(shared_ledger(1), provenance=PROVENANCE, evidence=(WHY,)).to_json()
    assert TunedConfig.from_json(text).evidence[0].target_share is None


def test_what_is_missing_is_said_in_our_words() -> None:
    with pytest.raises(InputError, match=r"^Provenance\.date: expected a value, got 'nothing'$"):
        Provenance()
    with pytest.raises(InputError, match=r"^Evidence\.n: "):
        Evidence(value="a.b", chosen=1, unit="u", target="t", method="m", n=-1)


def test_agents_have_names_of_their_own() -> None:
    twice = (AgentLimits(name="a"), AgentLimits(name="a"))
    with pytest.raises(InputError, match="different names"):
        TunedConfig(shared_ledger(1), provenance=PROVENANCE, agents=twice)


def test_a_missing_file_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="a tuned config"):
        TunedConfig.read(tmp_path / "nowhere.json")
