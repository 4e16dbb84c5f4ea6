"""Older memories: what a database of the three-layer scheme tells, brought over."""

from dataclasses import dataclass, replace
from typing import Annotated

from backsight.core.errors import Invalid
from backsight.core.ids import derive_id
from backsight.core.memory.episodic import episode_of_trade
from backsight.core.memory.semantic import Belief, Domain, seed_belief
from backsight.core.trades.trade import Trade
from backsight.importers.legacy import PATTERNS, TRADES, LegacyBelief, LegacyReport, LegacyTrade, Remark, read_legacy
from backsight.ops.arguments import Key, Name
from backsight.ops.beliefs import state_belief
from backsight.ops.context import Context
from backsight.ops.experience import learn_many
from backsight.ops.operation import command
from backsight.ops.strategies import manual_deployment
from backsight.ops.trades import Note, TradeTold
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
    left_out = list(read.report.left_out)
    with ctx.writing() as transaction:
        found = [_trade(transaction, ctx, trade, left_out) for trade in read.trades]
        trades = list({trade.id: trade for trade in found if trade is not None}.values())
        transaction.add_all(stored.TRADES, trades)
        learn_many(transaction, [episode_of_trade(trade) for trade in trades])
        named: dict[str, str] = {}
        stated = [_belief(transaction, ctx, belief, left_out, named) for belief in read.beliefs]
    unfit = len(left_out) - len(read.report.left_out)
    refused = sum(remark.table == TRADES for remark in left_out[len(read.report.left_out) :])
    return Migrated(
        trades=len(trades),
        beliefs=stated.count(False),
        known_trades=len(found) - len(trades) - refused,
        known_beliefs=stated.count(True),
        report=replace(read.report, left_out=tuple(left_out)) if unfit else read.report,
    )


def _trade(transaction: Transaction, ctx: Context, told: LegacyTrade, left_out: list[Remark]) -> Trade | None:
    """A trade that is not there yet, if it makes sense."""
    trade_id = derive_id("trade", ctx.owner, "key", told.arguments()["idempotency_key"])
    if stored.trade(transaction.connection, ctx.owner, trade_id) is not None:
        return None
    note = Note(
        market_context=told.market_context, confidence=told.confidence, reflection=told.reflection, tags=told.tags
    )
    try:
        sound = TradeTold(
            symbol=told.symbol,
            direction=told.direction,
            entry_price=told.entry_price,
            exit_price=told.exit_price,
            pnl=told.pnl,
            pnl_r=told.pnl_r,
            context=told.context,
            opened_at=told.opened_at,
            closed_at=told.closed_at,
            note=note,
        ).checked(now=ctx.now)
    except Invalid as unfit:
        left_out.append(Remark(table=TRADES, row=told.id, reason=str(unfit)))
        return None
    return sound.trade(ctx, manual_deployment(transaction, ctx, told.strategy_name), trade_id)


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
