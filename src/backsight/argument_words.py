"""Words of trading for the names of arguments, for the remedy of a call that uses another name."""

from collections.abc import Collection, Mapping

_SIZE = ("size", "quantity")
_DIRECTION = ("direction",)
_SYMBOL = ("symbol", "symbols")
_ENTRY = ("entry_price", "average_price")
_EXIT = ("exit_price",)
_STOP = ("stop_price",)
_TARGET = ("target_price",)
_PNL = ("pnl", "realized_pnl")
_STRATEGY = ("strategy_name", "strategy")
_OPENED = ("opened_at",)
_CLOSED = ("closed_at",)
_WORDS = ("reflection", "reason", "market_context", "text")
_LIMIT = ("limit",)
_SINCE = ("since",)
_UNTIL = ("until",)
_EQUITY = ("equity",)

ARGUMENT_WORDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("quantity", "qty", "amount", "lots", "units", "contracts", "volume", "position_size"), _SIZE),
    **dict.fromkeys(("side", "position_side", "long_short", "trade_type"), _DIRECTION),
    "action": ("planned_action", "direction"),
    **dict.fromkeys(("ticker", "instrument", "market", "pair", "asset", "coin"), _SYMBOL),
    **dict.fromkeys(("entry", "open_price", "buy_price", "avg_price", "average_entry_price"), _ENTRY),
    **dict.fromkeys(("exit", "close_price", "sell_price"), _EXIT),
    **dict.fromkeys(("stop", "stop_loss", "sl"), _STOP),
    **dict.fromkeys(("target", "take_profit", "tp"), _TARGET),
    **dict.fromkeys(("profit", "pl", "profit_loss", "net_profit", "net_pnl", "realised_pnl"), _PNL),
    **dict.fromkeys(("strategy", "strategy_name", "strategy_id"), _STRATEGY),
    **dict.fromkeys(("open_time", "entry_time", "opened"), _OPENED),
    **dict.fromkeys(("close_time", "exit_time", "closed"), _CLOSED),
    **dict.fromkeys(("time", "timestamp", "date", "datetime"), ("at", *_CLOSED, "as_of")),
    **dict.fromkeys(("note", "notes", "comment", "thoughts", "lesson", "why"), _WORDS),
    **dict.fromkeys(("rationale", "explanation"), ("reason", "reflection", "market_context")),
    **dict.fromkeys(("setup", "description", "situation"), ("market_context",)),
    **dict.fromkeys(("commission", "commissions", "fee", "costs"), ("fees", "fee")),
    **dict.fromkeys(("balance", "account_value", "nav", "account_balance"), _EQUITY),
    **dict.fromkeys(("r", "r_multiple", "result_r"), ("pnl_r",)),
    **dict.fromkeys(("regime", "market_regime"), ("context_regime", "regime")),
    **dict.fromkeys(("atr", "volatility"), ("context_atr_d1", "atr_d1", "volatility_regime")),
    **dict.fromkeys(("mae", "max_drawdown"), ("max_adverse_excursion",)),
    **dict.fromkeys(("price", "mark_price", "current_price", "last_price"), ("price", "mark", "entry_price")),
    **dict.fromkeys(("count", "n", "k", "top_k", "max_results", "num_results"), _LIMIT),
    **dict.fromkeys(("types", "kinds", "memory_type"), ("memory_types", "kinds")),
    **dict.fromkeys(("start", "from", "start_date", "from_date", "after"), _SINCE),
    **dict.fromkeys(("end", "to", "end_date", "to_date", "before"), _UNTIL),
    **dict.fromkeys(("id", "key", "ticket"), ("position_key", "trade_id", "plan_id", "fact_id", "id")),
    **dict.fromkeys(("account", "bot", "agent"), ("deployment", "account", "agent")),
    **dict.fromkeys(("expiry", "expires", "valid_until"), ("expires_at",)),
    **dict.fromkeys(("risk_amount", "risk_usd"), ("risk",)),
}
"""What people and models call an argument, and the arguments that it may be; the first that a call has is meant."""


def argument_for(word: str, names: Collection[str]) -> str | None:
    """The name of the argument that a common word stands for; None if no argument has such a meaning.

    >>> argument_for("Quantity", ["equity", "size"]), argument_for("side", ["direction"]), argument_for("zzz", ["size"])
    ('size', 'direction', None)
    """
    meanings = ARGUMENT_WORDS.get(word.strip().lower().replace("-", "_").replace(" ", "_"), ())
    return next((name for name in meanings if name in names), None)
