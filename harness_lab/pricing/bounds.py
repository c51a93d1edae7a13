"""The worst case of one request under a hard cap, or the reasons why it cannot be bounded.

A bound is only a bound if its prices are right, so only prices that the user has named count: written by hand, or a
table of somebody else's pinned by its date and digest. Everything that could make a call dearer than its bound and has
no figure refuses the call, each with a reason code of its own.

Source: the hard cost cap of prism-harness as its documents describe it (every byte of the request as input at the
dearest applicable rate, plus the output ceiling); what it leaves open is our own, and the deviations say so.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from harness_lab.errors import InputError
from harness_lab.outcome import CHANNELS, Code, Shortfall
from harness_lab.pricing.terms import CallTerms
from harness_lab.usage import MAX_NUSD, MAX_TOKENS, optional_count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lab.pricing.request_size import RequestSize
    from harness_lab.pricing.table import PriceTable

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
    "Name its price, CapPrices({model: {...}}), or trust a table of this day and content, "
    "CapPrices.from_table(table, trust=PricePin.of(table))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePin:
    """Somebody else's price table, named exactly: its day and the digest of its content.

    Parameters
    ----------
    date : str or None
        Date of the price table.
    digest : str
        Digest of the model's prices.
    """

    date: str | None
    digest: str

    @classmethod
    def of(cls, table: PriceTable) -> PricePin:
        """Return the pin of a table, to be looked at and written into a config.

        Notes
        -----
        SHA-256 over the table as JSON with sorted keys and no spaces.
        """
        text = json.dumps(table.to_dict(), sort_keys=True, separators=(",", ":"))
        return cls(date=table.date, digest=hashlib.sha256(text.encode()).hexdigest())


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
    untrusted : str
        How to trust these prices; empty when they are trusted.

    Examples
    --------
    >>> from harness_lab.pricing import RequestSize
    >>> prices = CapPrices({"a/m": {"inputPerMTok": 3, "outputPerMTok": 15, "cacheWritePerMTok": 3.75}})
    >>> prices.bound("m", RequestSize(text_bytes=10_000), output_ceiling=4096, provider="a").worst_nusd
    98940000
    """

    def __init__(self, models: Mapping[str, Any], *, source: str = BY_HAND, date: str | None = None) -> None:
        self.source, self.date, self.untrusted = source, date, ""
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
            Needed for a table that is not by hand: its date and digest as you have looked at them. With another date
            or digest, or without one, every call is refused, and the refusal says what the pin would be.
        tool_overhead_tokens, image_token_bound : int or None
            Figures that price tables do not have, for all its models; None: unknown.
        """
        models = {
            name: CallTerms(tiers=tiers, tool_overhead_tokens=tool_overhead_tokens, image_token_bound=image_token_bound)
            for name, tiers in table.models.items()
        }
        prices = cls(models, source=table.source, date=table.date)
        pin = PricePin.of(table)
        if table.source != BY_HAND and trust != pin:
            why = "are trusted only when pinned" if trust is None else "are not those that the pin names"
            prices.untrusted = (
                f"prices of {table.source} {why}: check them, then give "
                f"trust=PricePin(date={pin.date!r}, digest={pin.digest!r}), or write your own by hand"
            )
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
        return (_short(Code.COST_CAP_PRICE_UNTRUSTED, self.untrusted),) if self.untrusted else ()


def _missing(terms: CallTerms | None, size: RequestSize, output_ceiling: int | None) -> list[Code]:
    codes = [] if output_ceiling is not None else [Code.COST_CAP_OUTPUT_CEILING_MISSING]
    if terms is not None and size.tools and terms.tool_overhead_tokens is None:
        codes.append(Code.COST_CAP_TOOL_OVERHEAD_MISSING)
    if terms is not None and size.images and terms.image_token_bound is None:
        codes.append(Code.COST_CAP_IMAGE_BOUND_MISSING)
    return codes


def _short(code: Code, detail: str = "") -> Shortfall:
    return Shortfall(code, None, None, None, "other-path", "cost", detail or _WORDS.get(code, ""))
