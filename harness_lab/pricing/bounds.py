"""The worst case of one request under a hard cap, or the reasons why it cannot be bounded.

A bound is only a bound if its prices are right, so only prices that the user has named count: written by hand, or those
of somebody else's table, pinned by the digest of each model's. Everything that could make a call dearer than its bound
and has no figure refuses the call, each with a reason code of its own.

Source: the hard cost cap of prism-harness as its documents describe it (every byte of the request as input at the
dearest applicable rate, plus the output ceiling); what it leaves open is our own, and the deviations say so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from harness_lab.errors import InputError, check_kind
from harness_lab.outcome import CHANNELS, Code, Shortfall
from harness_lab.pricing.terms import CallTerms
from harness_lab.usage import MAX_NUSD, MAX_TOKENS, optional_count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness_lab.pricing.request_size import RequestSize
    from harness_lab.pricing.table import Price, PriceTable

BY_HAND = "by hand"
_MEDIA = (
    ("documents", Code.COST_CAP_DOCUMENT_UNBOUNDED),
    ("audio", Code.COST_CAP_AUDIO_UNBOUNDED),
    ("video", Code.COST_CAP_VIDEO_UNBOUNDED),
    ("unknown", Code.COST_CAP_MEDIA_UNKNOWN),
)
_WORDS = {
    Code.COST_CAP_COMPACTION_CONFLICT: "a model that summarises the history makes calls that nobody bounds",
    Code.COST_CAP_OUTPUT_CEILING_MISSING: "name the most output tokens of a call, and send it to the provider",
    Code.COST_CAP_TOOL_OVERHEAD_MISSING: "tools are offered: name toolOverheadTokens (tool_overhead_tokens)",
    Code.COST_CAP_IMAGE_BOUND_MISSING: "pictures are sent: name imageTokenBound (image_token_bound)",
}


class CallBound(tuple[int | None, ...]):
    """The worst case of a call by channel, with what it is the bound of. It is an amounts tuple and serves as one.

    Attributes
    ----------
    provider, model : str
        Where the call goes.
    prompt : tuple of (int or None)
        The part of the worst case that is the prompt's, by channel.
    shortfalls : tuple of Shortfall
        Why it cannot be bounded; empty when it can.
    terms : CallTerms or None
        The prices that it was worked out with.
    """

    provider: str
    model: str
    prompt: tuple[int | None, ...]
    shortfalls: tuple[Shortfall, ...]
    terms: CallTerms | None

    @classmethod
    def of(cls, provider: str, model: str, terms: CallTerms, prompt: int, output: int) -> CallBound:
        """Return the bound of a call of so many prompt tokens and at most so many output tokens.

        Raises
        ------
        InputError
            If a count is none, or the worst case lies above a billion tokens or nine billion dollars.
        """
        whole, worst = prompt + output, terms.worst_nusd(prompt, output)
        if worst > MAX_NUSD or whole > MAX_TOKENS:
            raise InputError("worst case of a call", expected="at most a billion tokens", got=whole)
        bound = cls((1, prompt, whole, whole, worst))
        bound.provider, bound.model, bound.terms, bound.shortfalls = provider, model, terms, ()
        bound.prompt = (1, prompt, prompt, prompt, terms.worst_nusd(prompt, 0))
        return bound

    @classmethod
    def refused(cls, provider: str, model: str, shortfalls: tuple[Shortfall, ...]) -> CallBound:
        """Return the bound of a call that cannot be bounded."""
        bound = cls((1,) + (None,) * (len(CHANNELS) - 1))
        bound.provider, bound.model, bound.terms, bound.shortfalls = provider, model, None, shortfalls
        bound.prompt = tuple(bound)
        return bound

    @property
    def worst_nusd(self) -> int | None:
        """The worst case in nano-dollars; None: it cannot be bounded."""
        return self[-1]


_HOW_TO_TRUST = (
    "Name its price, CapPrices({model: {...}}), or trust what a table says of it, "
    "CapPrices.from_table(table, trust=PricePin.of(table))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePin:
    """Prices of somebody else's table that you have looked at, named by their content, model by model.

    A model is trusted as long as its own prices are the ones that were pinned, whatever the day and whatever else the
    table has come to know.

    Parameters
    ----------
    models : mapping of str to str
        Model → digest of its prices, as :meth:`of` gives it.

    Raises
    ------
    InputError
        If it is no such mapping.
    """

    models: Mapping[str, str]

    def __post_init__(self) -> None:
        check_kind("models of a pin", self.models, Mapping, expected="digests of prices by model")
        for name, digest in self.models.items():
            if not isinstance(name, str) or not isinstance(digest, str):
                raise InputError("models of a pin", expected="digests of prices by model", got={name: digest})

    @classmethod
    def of(cls, table: PriceTable, models: Iterable[str] | None = None) -> PricePin:
        """Return the pin of a table, to be looked at and written into a config.

        Parameters
        ----------
        table : PriceTable
            Whose prices you have looked at.
        models : iterable of str, optional
            Of which models; all that the table has if None.

        Raises
        ------
        InputError
            If the table has no price for one of them.

        Notes
        -----
        SHA-256 over the model's tiers as JSON with sorted keys and no spaces, the first 16 digits.
        """
        named = list(table.models) if models is None else list(models)
        if missing := [name for name in named if name not in table.models]:
            raise InputError("models of a pin", expected=f"some of {sorted(table.models)}", got=missing)
        return cls(models={name: _digest(table.models[name]) for name in named})

    def says(self, model: str, tiers: tuple[Price, ...]) -> str:
        """Return why a model's prices are not what is pinned; empty when they are."""
        if model not in self.models:
            return "are not among those that the pin names"
        return "" if self.models[model] == _digest(tiers) else "are no longer those that the pin names"


def _digest(tiers: tuple[Price, ...]) -> str:
    text = json.dumps([asdict(tier) for tier in tiers], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class CapPrices:
    """The prices that a hard cap may rely on.

    Parameters
    ----------
    models : mapping of str to (CallTerms or mapping)
        By ``provider/model`` or ``model``; the longer name wins. A mapping is read by :meth:`CallTerms.from_config`. An
        entry that cannot be read is kept with what is wrong with it, and refuses the calls of its model only.
    source : str
        Where they come from.
    date : str or None
        The day they hold for, ISO format.

    Attributes
    ----------
    invalid : dict of str to str
        Entries that could not be read, and why.
    untrusted : dict of str to str
        Models whose prices are not trusted, and how to trust them.

    Examples
    --------
    >>> from harness_lab.pricing import RequestSize
    >>> prices = CapPrices({"a/m": {"inputPerMTok": 3, "outputPerMTok": 15, "cacheWritePerMTok": 3.75}})
    >>> prices.bound("m", RequestSize(text_bytes=10_000), output_ceiling=4096, provider="a").worst_nusd
    98940000
    """

    def __init__(self, models: Mapping[str, Any], *, source: str = BY_HAND, date: str | None = None) -> None:
        self.source, self.date = source, date
        self.untrusted: dict[str, str] = {}
        self.models: dict[str, CallTerms] = {}
        self.invalid: dict[str, str] = {}
        for name, entry in models.items():
            try:
                provider = name.rpartition("/")[0]
                terms = entry if isinstance(entry, CallTerms) else CallTerms.from_config(entry, provider=provider)
                self.models[name] = terms
            except InputError as error:
                self.invalid[name] = str(error)

    @classmethod
    def from_table(
        cls,
        table: PriceTable,
        *,
        trust: PricePin | None = None,
        tool_overhead_tokens: int | None = None,
        image_token_bound: int | None = None,
    ) -> CapPrices:
        """Take the prices of a table.

        Parameters
        ----------
        table : PriceTable
            By hand, or from a collection of list prices.
        trust : PricePin or None
            Needed for a table that is not by hand: its prices as you have looked at them. Calls of a model that it does
            not name, or whose prices have changed since, are refused, and the refusal says what its pin would be.
        tool_overhead_tokens, image_token_bound : int or None
            Figures that price tables do not have, for all its models; None: unknown.
        """
        models = {
            name: CallTerms(tiers=tiers, tool_overhead_tokens=tool_overhead_tokens, image_token_bound=image_token_bound)
            for name, tiers in table.models.items()
        }
        prices = cls(models, source=table.source, date=table.date)
        if table.source != BY_HAND:
            prices.untrusted = {
                name: f"prices of {table.source} for {name} {why}: check them, then name them in "
                f"trust=PricePin(models={dict(PricePin.of(table, [name]).models)!r}), or write your own by hand"
                for name, tiers in table.models.items()
                if (why := "are trusted only when pinned" if trust is None else trust.says(name, tiers))
            }
        return prices

    def terms(self, model: str, *, provider: str = "") -> CallTerms | None:
        """Return the terms of a model; None: it has no price, or none that can be read."""
        return self.models.get(self._name(model, provider))

    def bound(
        self,
        model: str,
        size: RequestSize,
        *,
        output_ceiling: int | None,
        provider: str = "",
        summarising_compaction: bool = False,
    ) -> CallBound:
        """Return the worst case of a request, or all the reasons why it cannot be bounded.

        Parameters
        ----------
        model : str
            The model asked for.
        size : RequestSize
            What is sent.
        output_ceiling : int or None
            The most output tokens that the provider was told to give; None: there is no such bound.
        provider : str
            Where it goes.
        summarising_compaction : bool
            Whether a model may summarise the history on the way.
        """
        optional_count("output_ceiling", output_ceiling, maximum=MAX_TOKENS)
        terms = self.terms(model, provider=provider)
        codes = [code for name, code in _MEDIA if getattr(size, name)]
        if summarising_compaction:
            codes.append(Code.COST_CAP_COMPACTION_CONFLICT)
        short = [*self._price_short(model, provider), *(_short(code) for code in codes)]
        short += [_short(code) for code in _missing(terms, size, output_ceiling)]
        if short or terms is None or output_ceiling is None:
            return CallBound.refused(provider, model, tuple(short))
        prompt = size.text_bytes + size.images * (terms.image_token_bound or 0)
        prompt += (terms.tool_overhead_tokens or 0) if size.tools else 0
        return CallBound.of(provider, model, terms, prompt, output_ceiling)

    def _name(self, model: str, provider: str) -> str:
        named = f"{provider}/{model}"
        return named if named in self.models or named in self.invalid else model

    def _price_short(self, model: str, provider: str) -> tuple[Shortfall, ...]:
        name = self._name(model, provider)
        if name in self.invalid:
            return (_short(Code.COST_CAP_PRICE_INVALID, f"{name}: {self.invalid[name]}"),)
        if name not in self.models:
            near = get_close_matches(name, list(self.models), n=1, cutoff=0.7)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            words = f"no price for {name!r} among those that are trusted ({self.source}){meant}"
            return (_short(Code.COST_CAP_PRICE_MISSING, f"{words}. {_HOW_TO_TRUST}"),)
        if name in self.untrusted:
            return (_short(Code.COST_CAP_PRICE_UNTRUSTED, self.untrusted[name]),)
        return ()


def _missing(terms: CallTerms | None, size: RequestSize, output_ceiling: int | None) -> list[Code]:
    codes = [] if output_ceiling is not None else [Code.COST_CAP_OUTPUT_CEILING_MISSING]
    if terms is not None and size.tools and terms.tool_overhead_tokens is None:
        codes.append(Code.COST_CAP_TOOL_OVERHEAD_MISSING)
    if terms is not None and size.images and terms.image_token_bound is None:
        codes.append(Code.COST_CAP_IMAGE_BOUND_MISSING)
    return codes


def _short(code: Code, detail: str = "") -> Shortfall:
    return Shortfall(code, None, None, None, "other-path", "cost", detail or _WORDS.get(code, ""))
