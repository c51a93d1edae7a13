"""A provider fitted to records: a model for each path, drawn together or by family, and what it falls back to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness_lab import draws
from harness_lab.agents import Call
from harness_lab.errors import InputError
from harness_lab.pricing import Price, PriceTable
from harness_lab.providers import Provider
from harness_lab.settlements import Settlements
from harness_lab.simulate import SimRuntime

PRICES = PriceTable({"m": (Price.usd_per_million(input=1, output=2),)})


def records(sizes: dict[tuple[str, str | None], int], *, seed: int = 1) -> Settlements:
    """One run of single calls for each (backend, context): long answers take long."""
    rng, nodes, calls = np.random.default_rng(seed), [], []
    for k, ((backend, context), n) in enumerate(sizes.items()):
        output = np.exp(rng.normal(5 + k, 0.5, n)).round()
        both = pd.DataFrame({"run": f"r{k}", "node": [str(i) for i in range(n)], "model": "m"})
        nodes.append(both.assign(agent="a", backend=backend, context=context, outcome="completed", calls=1))
        sent = {"input_total": 1_000, "input_fresh": 400, "cache_read": 600, "cache_write": 0}
        made = both.assign(call=0, attempt=0, status="completed", start_ns=0, **sent)
        calls.append(made.assign(output=output, duration_ns=output * 10**7))
    return Settlements.from_columns(pd.concat(nodes), pd.concat(calls))


def drawn(provider: Provider, model: str, n: int = 300) -> np.ndarray[Any, Any]:
    """Return outputs and seconds of calls."""
    runtime, answers, found = SimRuntime(), provider.compile().fresh(), []

    async def main() -> None:
        for key in range(n):
            before = runtime.now()
            reply = await answers.complete(runtime, Call(model, draws.run_key(2, key), 0, 0, 1_000))
            found.append((reply.output, (runtime.now() - before) / 1e9))

    runtime.kernel.spawn(main())
    runtime.kernel.run()
    return np.array(found)


def test_each_path_has_a_model_of_its_own() -> None:
    provider = Provider.fit(records({("cli", "a"): 200, ("cli", "b"): 200, ("api", None): 200}), prices=PRICES)
    assert sorted(provider.models) == ["m (api, unknown)", "m (cli, a)", "m (cli, b)"]
    middle = [np.median(drawn(provider, name)[:, 0]) for name in ("m (cli, a)", "m (cli, b)", "m (api, unknown)")]
    assert middle == pytest.approx(np.exp([5, 6, 7]), rel=0.2)
    assert set(provider.prices.models) == {"m", *provider.models}


def test_a_model_on_one_path_keeps_its_name() -> None:
    assert list(Provider.fit(records({("cli", "a"): 50})).models) == ["m"]


def test_recorded_answers_keep_their_times_and_families_are_drawn_apart() -> None:
    table = records({("cli", "a"): 400})
    together, apart = (drawn(Provider.fit(table, method=method), "m") for method in ("empirical", "family"))  # type: ignore[arg-type]
    assert np.corrcoef(together.T)[0, 1] > 0.99
    assert abs(np.corrcoef(apart.T)[0, 1]) < 0.2
    fits = Provider.fit(table, method="family").fits
    assert fits["reason"].str.contains("best held-out likelihood of 4 families").all()


def test_a_path_with_too_few_calls_takes_those_of_its_model_and_says_so() -> None:
    provider = Provider.fit(records({("cli", "a"): 8, ("cli", "b"): 100}))
    few = provider.fits[provider.fits["of"] == "m (cli, a)"]
    assert few["fell_back"].all()
    assert few["reason"].str.contains("n = 8 on this path is too few").all()
    assert (few["n"] == 108).all()
    assert "fell back" in provider.summary()
    alone = Provider.fit(records({("cli", "a"): 8}), method="family")
    assert alone.fits["reason"].str.startswith("n = 8 is too few to choose a family").all()


def test_what_cannot_be_fitted_is_refused_in_one_line() -> None:
    table = records({("cli", "a"): 5})
    with pytest.raises(InputError, match=r"^records to fit: expected call rows beside the nodes, got 'none'"):
        Provider.fit(Settlements.from_columns(table.nodes))
    assert table.calls is not None
    dark = Settlements.from_columns(table.nodes, table.calls.assign(output=pd.NA))
    with pytest.raises(InputError, match=r"^answers of m: expected at least one call with known usage"):
        Provider.fit(dark)
    with pytest.raises(InputError, match=r"^method: expected one of family, empirical, got 'best'"):
        Provider.fit(table, method="best")  # type: ignore[arg-type]
