"""Recall: what comes to mind?"""

from typing import Any, get_args

from starlette.responses import Response

from backsight.core.errors import BacksightError, Invalid
from backsight.core.portfolio import Direction
from backsight.core.regime import REGIMES, SESSIONS, VOLATILITY_REGIMES
from backsight.core.strategies import Deployment
from backsight.surfaces.web.page import PageRequest

FACTORS = ("Q", "Sim", "Rec", "Conf", "Aff", "Period")
LABELS = {"regime": REGIMES, "volatility_regime": VOLATILITY_REGIMES, "session": SESSIONS}
NUMBERS = ("atr_d1", "spread_as_atr_pct", "drawdown_pct")
RECALLED, NEAR_MISSES = 10, 5
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


def show(page: PageRequest) -> Response:
    page = page.with_deployment()
    symbol = page.text("symbol") or _last_symbol(page)
    values: dict[str, Any] = {"labels": LABELS, "numbers": NUMBERS, "directions": DIRECTIONS, "symbol": symbol}
    if symbol is None:
        return page.render("empty.html", title="Recall")
    query = _arguments(page, symbol)
    answer = page.memory.recall_memories(**query, limit=RECALLED + NEAR_MISSES)
    own = page.own_deployment()
    results: dict[str, Any] = {
        "answer": answer,
        "recalled": answer.memories[:RECALLED],
        "nearest": answer.nearest[:RECALLED],
        "near_misses": answer.memories[RECALLED:],
        "size": _size(page, symbol, own),
        "holdout": own.memory.holdout if own is not None else 0.0,
        "factors": FACTORS,
    }
    if page.fragment == "results":
        return page.render("recall_results.html", **results)
    return page.render("recall.html", title="Recall", **values, **results)


def explain(page: PageRequest) -> Response:
    """Why a memory has its rank, or why it was not a candidate."""
    memory_id, recall = page.text("memory"), page.text("recall")
    if memory_id is None or recall is None:
        raise Invalid("is missing; open this page from a recall", field="memory")
    explained = page.memory.explain_recall(memory_id=memory_id, recall=recall)
    episodes = {each.id: each for each in explained.episodes}
    values: dict[str, Any] = {"explained": explained, "episodes": episodes, "recall": recall}
    return page.render("recall_why.html", title="Recall", factors=FACTORS, **values)


def _last_symbol(page: PageRequest) -> str | None:
    trades = page.memory.list_trades(mode="all", limit=1, **page.deployment, **page.when).trades
    return trades[0].symbol if trades else None


def _context(page: PageRequest) -> dict[str, Any]:
    labels = {name: page.text(name) for name in LABELS}
    numbers = {name: page.number(name) for name in NUMBERS}
    return {name: value for name, value in {**labels, **numbers}.items() if value is not None}


def _arguments(page: PageRequest, symbol: str) -> dict[str, Any]:
    values = {
        "symbol": symbol,
        "direction": page.text("direction"),
        "market_context": page.text("market_context"),
        "context": _context(page) or None,
        "mode": page.state.mode,
    }
    return {
        **{name: value for name, value in values.items() if value is not None},
        **page.deployment,
        **page.explicit_when,
    }


def _size(page: PageRequest, symbol: str, own: Deployment | None) -> Any:
    """The recommended size, or the reason why there is none."""
    direction = page.choice("direction", DIRECTIONS)
    if direction is None or own is None:
        return "Choose a side to see the recommended size."
    context: dict[str, Any] = {"context": _context(page)} if _context(page) else {}
    try:
        return page.memory.position_size(
            symbol=symbol,
            direction=direction,
            strategy_name=own.strategy_name,
            deployment=own.id,
            **context,
            **page.explicit_when,
        )
    except BacksightError as error:
        return f"No size: {error.message}"
