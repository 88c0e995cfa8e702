"""What answers cost: tokens, money and time of one request, and their sum over a turn or a conversation.

Tokens are the provider's own count and None where it gave none; the caller may count instead. Money is exact
(`Decimal`, US dollars) and known only for priced tiers, so a sum says whether it is whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sentinel_rag.contracts.json_values import JsonObject

_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens of one request as the provider billed them. `cached_input` is part of `input`, `reasoning` of `output`."""

    input: int = 0
    output: int = 0
    cached_input: int = 0
    reasoning: int = 0

    def __add__(self, other: TokenCounts) -> TokenCounts:
        return TokenCounts(
            self.input + other.input,
            self.output + other.output,
            self.cached_input + other.cached_input,
            self.reasoning + other.reasoning,
        )


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens. Cached input counts in full, so a cost is never too low."""

    input_per_million: Decimal
    output_per_million: Decimal

    def cost(self, tokens: TokenCounts) -> Decimal:
        """US dollars, exact."""
        return (tokens.input * self.input_per_million + tokens.output * self.output_per_million) / _MILLION


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What one request, or a sum of requests, took. Adding is associative, and `ModelUsage()` adds nothing.

    `uncounted` requests came without token counts and `unpriced` ones without a price: `tokens` and `cost` leave them
    out. `seconds` is the time spent waiting for models, retries included; `models` names them in order of first use.
    """

    requests: int = 0
    tokens: TokenCounts = TokenCounts()
    cost: Decimal = Decimal(0)
    seconds: float = 0.0
    uncounted: int = 0
    unpriced: int = 0
    models: tuple[str, ...] = ()

    def __add__(self, other: ModelUsage) -> ModelUsage:
        return ModelUsage(
            requests=self.requests + other.requests,
            tokens=self.tokens + other.tokens,
            cost=self.cost + other.cost,
            seconds=self.seconds + other.seconds,
            uncounted=self.uncounted + other.uncounted,
            unpriced=self.unpriced + other.unpriced,
            models=tuple(dict.fromkeys(self.models + other.models)),
        )

    @property
    def cost_is_whole(self) -> bool:
        """True if every request is in `cost`."""
        return self.unpriced == 0

    def to_dict(self) -> JsonObject:
        """The form for `--json` and logs; the cost as decimal text, None where no request was priced."""
        return {
            "requests": self.requests,
            "input_tokens": self.tokens.input,
            "output_tokens": self.tokens.output,
            "cached_input_tokens": self.tokens.cached_input,
            "reasoning_tokens": self.tokens.reasoning,
            "uncounted_requests": self.uncounted,
            "cost_usd": None if self.unpriced == self.requests else format(self.cost.normalize(), "f"),
            "cost_is_whole": self.cost_is_whole,
            "seconds": round(self.seconds, 3),
            "models": list(self.models),
        }


def usage_of_request(model: str, tokens: TokenCounts | None, price: Price | None, seconds: float) -> ModelUsage:
    """The usage of one request, whatever the provider left out."""
    priced = tokens is not None and price is not None
    return ModelUsage(
        requests=1,
        tokens=tokens or TokenCounts(),
        cost=price.cost(tokens) if tokens is not None and price is not None else Decimal(0),
        seconds=seconds,
        uncounted=0 if tokens is not None else 1,
        unpriced=0 if priced else 1,
        models=(model,),
    )
