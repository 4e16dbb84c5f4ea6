"""Migration of older memories: the trades and patterns of a database of the three-layer scheme."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from backsight.arguments import FilePath, Name
from backsight.core.errors import Invalid
from backsight.core.memory.episodic import episode_of_trade
from backsight.core.memory.semantic import Belief, BeliefDraft, Domain, seed_belief
from backsight.core.strategies import Deployment
from backsight.core.trades.report import checked_report, keyed_trade_id, trade_from_report
from backsight.core.trades.trade import Trade, dollars_for_one
from backsight.importers.legacy import PATTERNS, TRADES, LegacyBelief, LegacyReport, LegacyTrade, Remark, read_legacy
from backsight.operation import command
from backsight.services.beliefs import state_belief
from backsight.services.context import Context
from backsight.services.deployments import CURRENCY_OF_MANUAL, manual_deployment
from backsight.services.learning import learn_many
from backsight.store import trades as stored
from backsight.store.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """The number of trades and beliefs that were migrated, and the rows that were left out, with the reason."""

    trades: int
    beliefs: int
    known_trades: int
    """Trades that an earlier migration had stored."""
    known_beliefs: int
    report: LegacyReport

    @property
    def imported_nothing(self) -> bool:
        """Whether the database had nothing that is stored now."""
        return self.trades + self.beliefs + self.known_trades + self.known_beliefs == 0


@command()
def migrate_legacy(
    ctx: Context,
    *,
    path: Annotated[FilePath, "Path of the SQLite file on this machine; it has the tables trade_records and patterns."],
    timezone: Annotated[Name, "The time zone of times without an offset."] = "UTC",
) -> Migrated:
    """Migrate a database of the older three-layer scheme: its trades become episodes, its patterns beliefs.

    A second migration of the same file changes nothing. Rows that cannot be converted, like an adjustment or a pattern
    without a domain, are in the report with the reason.
    """
    file = read_legacy(path, timezone=timezone)
    left_out = list(file.report.left_out)
    with ctx.writing() as transaction:
        new = _unknown_trades(transaction, ctx, file.trades)
        trades = list(_trades(transaction, ctx, new, left_out))
        transaction.add_all(stored.TRADES, trades)
        learn_many(transaction, [episode_of_trade(trade) for trade in trades])
        pattern_ids: dict[str, str] = {}
        known_before = [_store_belief(transaction, ctx, belief, left_out, pattern_ids) for belief in file.beliefs]
    return Migrated(
        trades=len(trades),
        beliefs=known_before.count(False),
        known_trades=len(file.trades) - len(new),
        known_beliefs=known_before.count(True),
        report=replace(file.report, left_out=tuple(left_out)),
    )


def _unknown_trades(transaction: Transaction, ctx: Context, trades: Sequence[LegacyTrade]) -> list[LegacyTrade]:
    """The trades that no earlier migration stored."""
    known = stored.digests(transaction.connection, ctx.owner, [_trade_id(ctx, trade) for trade in trades])
    return [trade for trade in trades if _trade_id(ctx, trade) not in known]


def _trade_id(ctx: Context, trade: LegacyTrade) -> str:
    return keyed_trade_id(ctx.owner, trade.idempotency_key)


def _trades(
    transaction: Transaction, ctx: Context, legacy_trades: Sequence[LegacyTrade], left_out: list[Remark]
) -> Iterator[Trade]:
    """The rows of new trades; a trade that contradicts itself is added to `left_out` instead."""
    request_digest = ctx.request_digest
    deployments: dict[str, Deployment] = {}
    for legacy in legacy_trades:
        try:
            report = checked_report(legacy.report, now=ctx.now)
        except Invalid as error:
            left_out.append(Remark(table=TRADES, row=legacy.id, reason=str(error)))
            continue
        strategy_name = legacy.strategy_name
        if strategy_name not in deployments:
            deployments[strategy_name] = manual_deployment(transaction, ctx, strategy_name)
        yield trade_from_report(
            report,
            deployments[strategy_name],
            _trade_id(ctx, legacy),
            usd_rate=dollars_for_one(CURRENCY_OF_MANUAL),
            request_digest=request_digest,
            now=ctx.now,
        )


def _store_belief(
    transaction: Transaction, ctx: Context, legacy: LegacyBelief, left_out: list[Remark], pattern_ids: dict[str, str]
) -> bool | None:
    """Store a belief; whether it was stored before, or None if it is left out.

    `pattern_ids` has the pattern of each belief of this file, and is added to.
    """
    try:
        belief = _seeded_belief(ctx, legacy)
    except Invalid as error:
        left_out.append(Remark(table=PATTERNS, row=legacy.id, reason=str(error)))
        return None
    first = pattern_ids.setdefault(belief.id, legacy.id)
    if first != legacy.id:
        reason = f"pattern {first} claims the same for the same domain"
        left_out.append(Remark(table=PATTERNS, row=legacy.id, reason=reason))
        return None
    return state_belief(transaction, belief, recorded_at=ctx.now)


def _seeded_belief(ctx: Context, legacy: LegacyBelief) -> Belief:
    draft = BeliefDraft(
        proposition=legacy.proposition,
        domain=Domain(**legacy.domain),  # type: ignore[arg-type]
        conditions=legacy.conditions,
        about=legacy.about,
        claims=legacy.claims,
        source="migrated",
        prior=(legacy.alpha, legacy.beta),
    )
    return seed_belief(draft, owner_id=ctx.owner, known_at=min(ctx.now, legacy.discovered_at or ctx.now))
