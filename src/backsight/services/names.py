"""Names as people and models write them: what a strategy or a symbol of a call means in this store."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from backsight.core.context import ContextVector
from backsight.core.instruments import Underlyings
from backsight.services.context import Context
from backsight.store import strategies as stored
from backsight.store.view import View

STRATEGIES = ("strategy_name", "strategy")
"""The arguments that name a strategy."""
WRITES_SYMBOL = frozenset(
    [
        "remember_trade",
        "remember_inaction",
        "record_decision",
        "save_instrument",
        "record_bars",
        "open_tick",
        "close_tick",
    ]
)
"""Operations that record a symbol as the broker has it."""


def names_of_store(ctx: Context, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The arguments that mean another name than they say, as this store has it, with a note on each.

    A strategy is found without regard to case where exactly one matches. A symbol in which nothing is stored is read as
    the only spelling of its market that there is; several spellings are one market anyway, see `Underlyings`.
    """
    named = [name for name in STRATEGIES if isinstance(arguments.get(name), str)]
    symbol = None if ctx.operation in WRITES_SYMBOL else arguments.get("symbol")
    if not named and symbol is None:
        return {}, ()
    if _are_exact(ctx, arguments, named, symbol):
        return {}, ()
    changes: dict[str, Any] = {}
    with ctx.reading() as connection:
        view = ctx.view(connection, arguments.get("as_of"), arguments.get("seen_at"))
        for name in named:
            changes[name] = only_match(arguments[name], stored.strategy_names(connection, ctx.owner))
        if symbol is not None:
            from backsight.store.instruments import underlyings  # only a call with a symbol needs it

            known = underlyings(view)
            changes["symbol"] = stored_spelling(view, known, symbol)
            context = arguments.get("context")
            if isinstance(context, ContextVector) and context.symbol is not None:
                is_same = known.markets.same(context.symbol, symbol)
                changes["context"] = replace(context, symbol=changes["symbol"]) if is_same else context
    changes = {name: value for name, value in changes.items() if value != arguments[name]}
    return changes, tuple(
        f"{name}: {arguments[name]!r} read as {value!r}" for name, value in changes.items() if name != "context"
    )


def _are_exact(ctx: Context, arguments: Mapping[str, Any], named: Iterable[str], symbol: str | None) -> bool:
    """Whether this process has read each name in the store as it is written, so that it means itself.

    Nothing is read for it: a strategy that was there is there, and so is a symbol from its first episode on.
    """
    last_value, owner = ctx.database.last_value, ctx.owner
    if not {arguments[name] for name in named} <= (last_value(owner, stored.STRATEGY_NAMES) or set()):
        return False
    if symbol is None:
        return True
    from backsight.store.symbols import SYMBOLS_OF_EPISODES  # only a call with a symbol needs it

    context, seen_at = arguments.get("context"), arguments.get("seen_at")
    if seen_at is not None or (isinstance(context, ContextVector) and context.symbol not in (None, symbol)):
        return False
    as_of = arguments.get("as_of") or ctx.now
    return any(name == symbol and at <= as_of for name, at in last_value(owner, SYMBOLS_OF_EPISODES) or ())


def only_match(name: str, names: Iterable[str]) -> str:
    """The name among some, else the only one that is equal without regard to case and outer blanks, else itself.

    >>> names = ["VolBreakout", "Fade", "fade"]
    >>> [only_match(name, names) for name in ("volbreakout ", "fade", "FADE", "Other")]
    ['VolBreakout', 'fade', 'FADE', 'Other']
    """
    every = set(names)
    alike = [each for each in every if each.casefold() == name.strip().casefold()]
    return name if name in every or len(alike) != 1 else alike[0]


def stored_spelling(view: View, known: Underlyings, symbol: str) -> str:
    """The spelling of a symbol's market in which something is stored, if there is only one; else the symbol."""
    if symbol in known.traded:
        return symbol
    from backsight.store import bars as stored_bars  # only a symbol without trades needs it

    others = known.spellings(symbol)[1:]
    if len(others) != 1 or stored_bars.intervals(view.connection, view.owner, symbol):
        return symbol
    return others[0]
