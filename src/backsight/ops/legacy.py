"""Older memories: what a database of the three-layer scheme tells, brought over."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from backsight.arguments import Key, Name
from backsight.core.errors import Invalid
from backsight.core.memory.episodic import episode_of_trade
from backsight.core.memory.semantic import Belief, Domain, seed_belief
from backsight.importers.legacy import PATTERNS, TRADES, LegacyBelief, LegacyReport, LegacyTrade, Remark, read_legacy
from backsight.operation import command
from backsight.services.beliefs import state_belief
from backsight.services.context import Context
from backsight.services.deployments import manual_deployment
from backsight.services.learning import learn_many
from backsight.services.trade_reports import TradeTold, keyed_trade_id, trade_told
from backsight.store import trades as stored
from backsight.store.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """What the file brought, and what of it could not be converted, with the reason."""

    trades: int
    beliefs: int
    known_trades: int
    """Those that an earlier migration brought."""
    known_beliefs: int
    report: LegacyReport


@command()
def migrate_legacy(
    ctx: Context,
    *,
    path: Annotated[Key, "The SQLite file, where this runs, with trade_records and patterns."],
    timezone: Annotated[Name, "The zone of times that name none."] = "UTC",
) -> Migrated:
    """Migrate a database of the older three-layer scheme: its trades become episodes, its patterns beliefs.

    Migrating it again changes nothing. What cannot be converted, like a pattern without a domain or an adjustment, is
    in the report with the reason.
    """
    read = read_legacy(path, timezone=timezone)
    left_out, request_digest = list(read.report.left_out), ctx.request_digest
    with ctx.writing() as transaction:
        told = _unknown(transaction, ctx, read.trades)
        sound = [(trade, made) for trade in told if (made := _sound(ctx, trade, left_out)) is not None]
        homes = {name: manual_deployment(transaction, ctx, name) for name in _strategies(trade for trade, _ in sound)}
        trades = [
            made.trade(
                homes[trade.strategy_name],
                _trade_id(ctx, trade),
                equity=None,
                request_digest=request_digest,
                now=ctx.now,
            )
            for trade, made in sound
        ]
        transaction.add_all(stored.TRADES, trades)
        learn_many(transaction, [episode_of_trade(trade) for trade in trades])
        named: dict[str, str] = {}
        stated = [_belief(transaction, ctx, belief, left_out, named) for belief in read.beliefs]
    unfit = len(left_out) - len(read.report.left_out)
    return Migrated(
        trades=len(trades),
        beliefs=stated.count(False),
        known_trades=len(read.trades) - len(told),
        known_beliefs=stated.count(True),
        report=replace(read.report, left_out=tuple(left_out)) if unfit else read.report,
    )


def _unknown(transaction: Transaction, ctx: Context, told: Sequence[LegacyTrade]) -> list[LegacyTrade]:
    """The trades that no earlier migration brought."""
    known = stored.digests(transaction.connection, ctx.owner, [_trade_id(ctx, trade) for trade in told])
    return [trade for trade in told if _trade_id(ctx, trade) not in known]


def _trade_id(ctx: Context, told: LegacyTrade) -> str:
    return keyed_trade_id(ctx.owner, told.idempotency_key)


def _strategies(trades: Iterable[LegacyTrade]) -> list[str]:
    """The strategies of trades, in the order of their first ones."""
    return list(dict.fromkeys(trade.strategy_name for trade in trades))


def _sound(ctx: Context, told: LegacyTrade, left_out: list[Remark]) -> TradeTold | None:
    """The trade, if it makes sense; else why it is left out."""
    try:
        return trade_told(
            symbol=told.symbol,
            direction=told.direction,
            entry_price=told.entry_price,
            exit_price=told.exit_price,
            pnl=told.pnl,
            pnl_r=told.pnl_r,
            context=told.context,
            opened_at=told.opened_at,
            closed_at=told.closed_at,
            market_context=told.market_context,
            confidence=told.confidence,
            reflection=told.reflection,
            tags=told.tags,
            now=ctx.now,
        )
    except Invalid as unfit:
        left_out.append(Remark(table=TRADES, row=told.id, reason=str(unfit)))
        return None


def _belief(
    transaction: Transaction, ctx: Context, told: LegacyBelief, left_out: list[Remark], named: dict[str, str]
) -> bool | None:
    """Keep a belief; whether it was there before, None where it cannot be kept. `named` are those of this file."""
    try:
        belief = _seeded(ctx, told)
    except Invalid as unfit:
        left_out.append(Remark(table=PATTERNS, row=told.id, reason=str(unfit)))
        return None
    first = named.setdefault(belief.id, told.id)
    if first != told.id:
        left_out.append(Remark(table=PATTERNS, row=told.id, reason=f"says the same of the same domain as {first}"))
        return None
    return state_belief(transaction, belief, recorded_at=ctx.now)


def _seeded(ctx: Context, told: LegacyBelief) -> Belief:
    return seed_belief(
        told.proposition,
        owner_id=ctx.owner,
        mode="live",
        domain=Domain(**told.domain),  # type: ignore[arg-type]
        known_at=min(ctx.now, told.discovered_at or ctx.now),
        conditions=told.conditions,
        claims=told.claims,
        source="migrated",
        prior=(told.alpha, told.beta),
    )
