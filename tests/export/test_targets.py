"""Every target reads back what was written for it, loses nothing silently, and survives any name."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lab.errors import InputError
from harness_lab.export import TARGETS, AgentLimits, Provenance, TunedConfig, export, read_back
from harness_lab.export.values import childless, values_of
from harness_lab.export.writers import target_of
from harness_lab.floors import FloorKey, FloorRow, FloorTable
from harness_lab.policies import (
    AtLimit,
    PolicySpec,
    compose,
    durable_account,
    iteration_budget,
    period_budget,
    reservation_pool,
    runtime_floors,
    shared_ledger,
    tree_limits,
)
from harness_lab.pricing import Price, PriceTable

PROVENANCE = Provenance(date="2026-01-31", harness_lab="0.1.0")
FORMS = [(name, form) for name, target in TARGETS.items() for form in target.forms]
HOSTILE = "a\"b'c`d\\e\n\r\t*/ ?> --> </script> ${x} $(rm) #{y} \u2028\u2029\x7f\x85\x00 模块 \U0001f600 ---\n"

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20) | st.just(HOSTILE)
counts = st.none() | st.integers(0, 2**62) | st.sampled_from([0, 1, 2**31 - 1, 2**53 - 2, 2**53])
dollars = st.none() | st.floats(0, 9e9, allow_nan=False) | st.sampled_from([0.0, 1e-9, 0.8137, 5e-324, 1e-07])
seconds = st.none() | st.floats(0, 1e9, allow_nan=False)


@st.composite
def configs(draw: st.DrawFn) -> TunedConfig:
    row = FloorRow(key=FloorKey(backend=draw(names), model=draw(names)), floor=draw(counts), n=6)
    every = draw(st.sampled_from(["day", "week", "month"]))
    steps = draw(st.integers(0, 10**9))
    parts = [
        shared_ledger(steps, draw(dollars), draw(seconds)),
        reservation_pool(calls=draw(counts), input=draw(counts), tokens=draw(counts), fresh=draw(counts)),
        tree_limits(draw(counts), draw(counts), draw(counts), draw(st.none() | st.floats(0.001, 1e8))),
        iteration_budget(steps, whose=draw(st.sampled_from(["node", "tree"])), max_refunds=0),
        runtime_floors(FloorTable((row,))),
        period_budget(cost_usd=draw(dollars), by=draw(st.sampled_from(["key", "user", "nobody"])), every=every),
    ]
    chosen = draw(st.lists(st.sampled_from(range(len(parts))), unique=True, min_size=1))
    policy = compose(*(parts[i] for i in chosen), name=draw(names))
    if draw(st.booleans()):
        policy = replace(policy, at_limit=AtLimit(warn_at=draw(st.none() | st.floats(0, 1)), cheaper_model=draw(names)))
    found = draw(st.lists(names, unique=True, max_size=2))
    agents = [AgentLimits(name=n, description=draw(names), max_calls=draw(counts), model=draw(names)) for n in found]
    return TunedConfig(policy, provenance=PROVENANCE, agents=agents)


@pytest.mark.parametrize(("target", "form"), FORMS)
@settings(max_examples=25, deadline=None)
@given(config=configs())
def test_what_is_written_is_what_is_read(target: str, form: str, config: TunedConfig) -> None:
    written = export(config, target, form=form)
    place = target_of(target)
    read = place.forms[form].read(written.files)
    told = {key: value for key, value in written.settings.items() if value is not None}
    assert {key: value for key, value in read.items() if value is not None} == told
    assert export(config, target, form=form).files == written.files


@pytest.mark.parametrize(("target", "form"), FORMS)
@settings(max_examples=20, deadline=None)
@given(config=configs())
def test_every_value_is_carried_or_listed_as_lost(target: str, form: str, config: TunedConfig) -> None:
    written = export(config, target, form=form)
    told = {one.value for one in written.carried} | {loss.value.partition(" ")[0] for loss in written.losses}
    whole = {loss.value.partition(" ")[0] for loss in written.losses if " = " not in loss.value}
    for value in values_of(config.policy):
        if value.quantity is None or not target_of(target).knobs:
            continue
        if childless(config.policy) and value.name.startswith("tree_limits"):
            continue  # where children are turned off, what else bounds them says nothing
        alike = {other.name for other in values_of(config.policy) if other.quantity == value.quantity}
        implied = alike & {one.value for one in written.carried}  # a tighter limit of the same is carried
        module = value.name.partition(".")[0]
        assert value.name in told or implied or module in whole or value.quantity == "floor", str(value)


UNSIMULATED = {"agents.job_max_runtime_seconds"}  # of no module's: listed as lost


@pytest.mark.parametrize("target", [name for name, one in TARGETS.items() if one.knobs])
@settings(max_examples=25, deadline=None)
@given(config=configs())
def test_what_a_target_enforces_is_told_to_it_in_the_same_numbers_again(target: str, config: TunedConfig) -> None:
    once = export(TunedConfig(config.policy, provenance=PROVENANCE), target)
    again = export(once.read_back(), target)
    knobs = {knob.key for knob in target_of(target).knobs} - UNSIMULATED
    first, second = ({k: v for k, v in one.settings.items() if k in knobs} for one in (once, again))
    assert second == first


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize(("target", "form"), [(name, form) for name, form in FORMS if form == "json"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_settings_that_nobody_could_mean_are_refused_in_one_line(target: str, form: str, data: st.DataObject) -> None:
    keys = [knob.key for knob in target_of(target).knobs] + ["agents", "budgets", "as_tool", "runtimeFloors"]
    values = data.draw(st.dictionaries(st.sampled_from(keys), junk, max_size=3))
    files = target_of(target).forms[form].write(values, ())
    with suppress(InputError):
        assert isinstance(read_back(target, files, form=form), PolicySpec)


@settings(max_examples=60, deadline=None)
@given(config=configs())
def test_environment_variables_lose_nothing(config: TunedConfig) -> None:
    written = export(config, "env")
    assert written.losses == ()
    assert written.read_back() == config.policy


@settings(max_examples=60, deadline=None)
@given(config=configs())
def test_toml_loses_nothing_of_modules(config: TunedConfig) -> None:
    written = export(config, "toml")
    assert written.losses == ()
    assert written.read_back() == config.policy


@pytest.mark.parametrize(("target", "form"), FORMS)
def test_a_limit_of_nothing_is_not_no_limit(target: str, form: str) -> None:
    nothing, unlimited = (
        compose(shared_ledger(5, usd), reservation_pool(tokens=usd and int(usd)), tree_limits(1, 1))
        for usd in (0.0, None)
    )
    zero, none = (export(policy, target, form=form) for policy in (nothing, unlimited))
    carries = any(knob.quantity == "cost" for knob in target_of(target).knobs) or not target_of(target).knobs
    assert not carries or zero.files != none.files or any("max_cost_usd = 0.0" in loss.value for loss in zero.losses)


@pytest.mark.parametrize(("target", "form"), FORMS)
def test_a_name_ends_no_comment_and_leaves_no_folder(target: str, form: str) -> None:
    agents = (AgentLimits(name=HOSTILE, max_calls=3), AgentLimits(name="../../etc/passwd", max_calls=2))
    policy = compose(shared_ledger(5, 0.5), tree_limits(1, 2), name=HOSTILE)
    written = export(TunedConfig(policy, provenance=PROVENANCE, agents=agents), target, form=form)
    for path, text in written.files.items():
        assert ".." not in path
        assert path.isascii()
        comments = [line for line in text.split("\n") if line.startswith(("#", "//"))]
        assert not any(end in line for line in comments for end in ("*/", "?>", "</", "\r", "\x85", "\u2028"))


@pytest.mark.parametrize("target", [name for name in TARGETS if "shadow" not in TARGETS[name].modes])
def test_a_target_without_a_shadow_refuses_to_bite(target: str) -> None:
    config = TunedConfig(shared_ledger(5), provenance=PROVENANCE, mode="shadow")
    with pytest.raises(InputError, match="limits would bite"):
        export(config, target)
    assert export(config, target, mode="enforce").files


def test_the_mode_is_carried_where_the_target_has_one() -> None:
    config = TunedConfig(period_budget(cost_usd=9, by="team", every="month"), provenance=PROVENANCE, mode="warn")
    assert "HARNESS_LAB_MODE=warn" in export(config, "env").text
    assert 'mode = "warn"' in export(config, "toml").text
    budgets = export(config, "litellm").settings["budgets"]
    assert budgets == [{"for": "team", "send_to": "/team/new", "soft_budget": 9, "budget_duration": "1mo"}]


def test_defaults_are_not_losses() -> None:
    losses = export(compose(tree_limits(2, 3), reservation_pool(tokens=5)), "codex").losses
    assert [loss.value for loss in losses] == ["reservation_pool.tokens = 5"]
    assert export(iteration_budget(20, max_refunds=0), "openai-agents").losses == ()


def test_how_a_module_answers_is_lost_where_the_target_answers_otherwise() -> None:
    policy = replace(iteration_budget(20), at_limit=AtLimit(then="wrap-up", warn_at=0.7), max_wait_s=5.0)
    assert {loss.value for loss in export(policy, "openai-agents").losses} == {
        "iteration_budget", "max_wait_s = 5.0", "at_limit.then = wrap-up", "at_limit.warn_at = 0.7",
    }  # fmt: skip
    assert "at_limit.then = wrap-up" not in {loss.value for loss in export(policy, "hermes").losses}


def test_money_under_other_prices_is_another_limit() -> None:
    prices = PriceTable({"m": (Price.usd_per_million(input=3.0, output=15.0),)}, source="by hand")
    config = TunedConfig(shared_ledger(5, 0.5), provenance=PROVENANCE, prices=prices)
    assert "prices" in [loss.value for loss in export(config, "claude-code").losses]
    assert "prices" not in [loss.value for loss in export(config, "codex").losses]
    models = export(config, "litellm").settings["models"]
    assert models["m"]["input_cost_per_token"] == 3e-06
    assert models["m"]["output_cost_per_token"] == 1.5e-05


def test_an_account_without_caps_of_its_own_is_not_lost_silently() -> None:
    account = durable_account("a.sqlite", periods=(period_budget(cost_usd=5, every="day"),))
    assert any("durable_account.periods" in loss.value for loss in export(account, "codex").losses)


def test_a_value_of_another_scope_is_refused_and_says_so() -> None:
    written = export(iteration_budget(20), "litellm")
    assert "max_iterations" not in written.settings
    assert "is counted over each agent on its own; max_iterations is counted over one session" in str(written.losses[0])


def test_where_no_child_can_start_the_tree_is_its_root() -> None:
    alone = compose(shared_ledger(12), tree_limits(0))
    assert export(alone, "openai-agents").settings == {"max_turns": 12}
    assert export(alone, "claude-code").settings == {"--max-turns": 12, "permissions.deny": ["Agent"]}
    assert export(alone, "codex").settings == {"agents.enabled": False}


def test_claude_agents_have_turns_of_their_own_or_those_of_every_child() -> None:
    agents = (AgentLimits(name="own", max_calls=3, disallowed_tools=("Bash",)), AgentLimits(name="shared"))
    policy = compose(iteration_budget(20, name="b").with_module("iteration_budget", max_child_iterations=9))
    written = export(TunedConfig(policy, provenance=PROVENANCE, agents=agents), "claude-code")
    assert [agent["maxTurns"] for agent in written.settings["agents"]] == [3, 9]
    assert written.settings["--max-turns"] == 20
    assert written.files[".claude/agents/own.md"].startswith('---\nname: "own"\ndescription: "own"\nmaxTurns: 3\n')
    assert "holds for the agents that the config names" in str(written.losses[0])


def test_one_level_of_children_is_counted_alike_for_tree_and_parent() -> None:
    assert export(tree_limits(1, 3), "hermes").settings["delegation.max_concurrent_children"] == 3
    assert "delegation.max_concurrent_children" not in export(tree_limits(2, 3), "hermes").settings


def test_the_tighter_of_two_limits_is_written() -> None:
    written = export(compose(shared_ledger(60, 2.0), reservation_pool(calls=50, cost_usd=3.0)), "pydantic-ai")
    assert (written.settings["request_limit"], written.settings["cost_limit"]) == (50, 2.0)


def test_what_is_cut_to_fit_is_said_and_never_exceeds_the_limit() -> None:
    written = export(shared_ledger(5, None, 300.7), "prism")
    assert written.settings["max_seconds"] == 300
    assert "300.7 s is cut to 300.0 s" in str(written.carried[-1])


def test_milliseconds_are_not_lost_to_binary_fractions() -> None:
    assert export(tree_limits(timeout_s=0.57), "tanstack").settings == {"timeoutMs": 570}
    assert export(tree_limits(timeout_s=67_108_864.527), "tanstack").settings == {"timeoutMs": 67_108_864_527}


def test_money_is_written_as_it_is_enforced_here() -> None:
    written = export(shared_ledger(5, 0.12345678949), "pydantic-ai")
    assert written.settings["cost_limit"] == 0.123456789
    assert "0.12345678949 is 0.123456789, to the nano-dollar" in str(written.carried[-1])
    nothing = export(shared_ledger(5, 5e-324), "claude-code")
    assert "must be greater than 0" in str(next(loss for loss in nothing.losses if "max_cost_usd" in loss.value))


def test_knobs_that_are_reported_not_to_hold_say_so() -> None:
    written = export(tree_limits(2, 3), "codex")
    depth = next(one for one in written.carried if one.key == "agents.max_depth")
    assert "openai/codex#32027" in depth.reported
    assert "reported: " in written.text


def test_a_limit_that_the_target_would_set_by_itself_is_named() -> None:
    assert any("delegation.max_iterations: 50" in text for text in export(tree_limits(1), "hermes").defaults)


def test_the_floor_table_of_tangle_takes_the_lowest_of_a_backend() -> None:
    keys = [FloorKey(backend="pi", model=model) for model in ("a", "b")]
    rows = (FloorRow(key=keys[0], floor=31_211), FloorRow(key=keys[1], floor=40_000))
    written = export(runtime_floors(FloorTable(rows)), "tangle")
    assert written.settings["runtimeFloors"] == {"pi": 31_211}
    assert any("40000" in loss.value and "31211" in loss.means for loss in written.losses)


def test_a_floor_in_another_unit_is_not_written() -> None:
    row = FloorRow(key=FloorKey(backend="pi", model="a", unit="total"), floor=31_211)
    written = export(runtime_floors(FloorTable((row,))), "tangle")
    assert written.settings["runtimeFloors"] == {}
    assert "this floor counts total" in str(written.losses[0])


def test_an_unknown_target_or_form_names_those_that_exist() -> None:
    with pytest.raises(InputError, match="claude-code, codex, litellm"):
        export(shared_ledger(1), "fax")
    with pytest.raises(InputError, match="json, python, typescript, php"):
        export(shared_ledger(1), "prism", form="cobol")


@pytest.mark.parametrize(("target", "form"), FORMS)
@pytest.mark.parametrize("text", ["", "\x00", "]", "{", "][", "{}", "- 1\n", "nonsense = ", "---\n"])
def test_what_no_writer_wrote_is_refused_or_read_as_nothing(target: str, form: str, text: str) -> None:
    with suppress(InputError):
        assert isinstance(read_back(target, text, form=form), PolicySpec)
