"""The first schema: accounts, strategies, deployments, trades, episodes, bars and the audit chain."""

import sqlalchemy as sa
from alembic import op

from backsight.store.mapping import PlainText, TextTuple, UtcInstant

revision = "0001_0.1.0"
down_revision = None

TEXT, TEXTS, INSTANT, WHOLE = PlainText, TextTuple(), UtcInstant(), sa.BigInteger()
DOUBLE: sa.Double[float] = sa.Double()


def upgrade() -> None:
    op.create_table(
        "accounts",
        sa.Column("owner_id", TEXT, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("venue", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("currency", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("position_mode", TEXT, nullable=False),
        sa.Column("known_at", INSTANT, nullable=False),
        sa.Column("recorded_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("owner_id", "id"),
    )
    op.create_table(
        "audit_log",
        sa.Column("owner_id", TEXT, nullable=False),
        sa.Column("sequence", WHOLE, nullable=False),
        sa.Column("at", INSTANT, nullable=False),
        sa.Column("actor", TEXT, nullable=False),
        sa.Column("operation", TEXT, nullable=False),
        sa.Column("changes", TEXT, nullable=False),
        sa.Column("previous", TEXT, nullable=False),
        sa.Column("hash", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("owner_id", "sequence"),
    )
    op.create_table(
        "bars",
        sa.Column("owner_id", TEXT, nullable=False),
        sa.Column("symbol", TEXT, nullable=False),
        sa.Column("interval_seconds", WHOLE, nullable=False),
        sa.Column("opened_at", INSTANT, nullable=False),
        sa.Column("open", DOUBLE, nullable=False),
        sa.Column("high", DOUBLE, nullable=False),
        sa.Column("low", DOUBLE, nullable=False),
        sa.Column("close", DOUBLE, nullable=False),
        sa.Column("volume", DOUBLE, nullable=True),
        sa.Column("known_at", INSTANT, nullable=False),
        sa.Column("recorded_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("owner_id", "symbol", "interval_seconds", "opened_at"),
    )
    op.create_table(
        "strategies",
        sa.Column("owner_id", TEXT, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("version", WHOLE, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("thesis", TEXT, nullable=True),
        sa.Column("rules", TEXTS, nullable=False),
        sa.Column("avoid", TEXTS, nullable=False),
        sa.Column("known_at", INSTANT, nullable=False),
        sa.Column("recorded_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("owner_id", "id", "version"),
    )
    op.create_index("strategies_by_name", "strategies", ["owner_id", "name"])
    op.create_table(
        "deployments",
        sa.Column("owner_id", TEXT, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("strategy_id", TEXT, nullable=False),
        sa.Column("strategy_name", TEXT, nullable=False),
        sa.Column("strategy_version", WHOLE, nullable=True),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("known_at", INSTANT, nullable=False),
        sa.Column("recorded_at", INSTANT, nullable=False),
        sa.ForeignKeyConstraint(
            ["owner_id", "account_id"], ["accounts.owner_id", "accounts.id"], name="deployments_within_accounts"
        ),
        sa.PrimaryKeyConstraint("owner_id", "id"),
    )
    op.create_index("deployments_by_name", "deployments", ["owner_id", "name"])
    op.create_table(
        "trade_history",
        sa.Column("owner_id", TEXT, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("deployment_id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("skill_id", TEXT, nullable=False),
        sa.Column("strategy_name", TEXT, nullable=False),
        sa.Column("version", WHOLE, nullable=True),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("position_key", TEXT, nullable=False),
        sa.Column("symbol", TEXT, nullable=False),
        sa.Column("side", TEXT, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("entry_tick_at", INSTANT, nullable=True),
        sa.Column("exit_tick_at", INSTANT, nullable=True),
        sa.Column("entry_price", DOUBLE, nullable=False),
        sa.Column("exit_price", DOUBLE, nullable=True),
        sa.Column("size", DOUBLE, nullable=True),
        sa.Column("stop_price", DOUBLE, nullable=True),
        sa.Column("risk", DOUBLE, nullable=True),
        sa.Column("pnl", DOUBLE, nullable=True),
        sa.Column("realized_pnl", DOUBLE, nullable=True),
        sa.Column("fees", DOUBLE, nullable=False),
        sa.Column("funding", DOUBLE, nullable=False),
        sa.Column("outcome_value", DOUBLE, nullable=True),
        sa.Column("outcome_unit", TEXT, nullable=True),
        sa.Column("mae", DOUBLE, nullable=True),
        sa.Column("context_symbol", TEXT, nullable=True),
        sa.Column("context_price", DOUBLE, nullable=True),
        sa.Column("context_atr_d1", DOUBLE, nullable=True),
        sa.Column("context_atr_h1", DOUBLE, nullable=True),
        sa.Column("context_atr_m5", DOUBLE, nullable=True),
        sa.Column("context_atr_ratio_h1_d1", DOUBLE, nullable=True),
        sa.Column("context_regime", TEXT, nullable=True),
        sa.Column("context_volatility_regime", TEXT, nullable=True),
        sa.Column("context_session", TEXT, nullable=True),
        sa.Column("context_hour_utc", WHOLE, nullable=True),
        sa.Column("context_day_of_week", WHOLE, nullable=True),
        sa.Column("context_spread_points", DOUBLE, nullable=True),
        sa.Column("context_spread_as_atr_pct", DOUBLE, nullable=True),
        sa.Column("context_drawdown_pct", DOUBLE, nullable=True),
        sa.Column("context_consecutive_losses", WHOLE, nullable=True),
        sa.Column("context_confidence", DOUBLE, nullable=True),
        sa.Column("market_context", TEXT, nullable=True),
        sa.Column("confidence", DOUBLE, nullable=True),
        sa.Column("reflection", TEXT, nullable=True),
        sa.Column("tags", TEXTS, nullable=False),
        sa.Column("request_digest", TEXT, nullable=False),
        sa.Column("known_at", INSTANT, nullable=False),
        sa.Column("recorded_at", INSTANT, nullable=False),
        sa.ForeignKeyConstraint(
            ["owner_id", "deployment_id"],
            ["deployments.owner_id", "deployments.id"],
            name="trade_history_within_deployments",
        ),
        sa.PrimaryKeyConstraint("owner_id", "id"),
    )
    op.create_index(
        "trade_history_by_deployment_id_known_at", "trade_history", ["owner_id", "deployment_id", "known_at"]
    )
    op.create_index("trade_history_by_known_at_id", "trade_history", ["owner_id", "known_at", "id"])
    op.create_index(
        "trade_history_by_request_digest_recorded_at", "trade_history", ["owner_id", "request_digest", "recorded_at"]
    )
    op.create_table(
        "episodic_memory",
        sa.Column("owner_id", TEXT, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("trade_id", TEXT, nullable=True),
        sa.Column("deployment_id", TEXT, nullable=False),
        sa.Column("strategy_name", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("symbol", TEXT, nullable=False),
        sa.Column("direction", TEXT, nullable=True),
        sa.Column("reason", TEXT, nullable=True),
        sa.Column("run_id", TEXT, nullable=False),
        sa.Column("count", WHOLE, nullable=False),
        sa.Column("context_symbol", TEXT, nullable=True),
        sa.Column("context_price", DOUBLE, nullable=True),
        sa.Column("context_atr_d1", DOUBLE, nullable=True),
        sa.Column("context_atr_h1", DOUBLE, nullable=True),
        sa.Column("context_atr_m5", DOUBLE, nullable=True),
        sa.Column("context_atr_ratio_h1_d1", DOUBLE, nullable=True),
        sa.Column("context_regime", TEXT, nullable=True),
        sa.Column("context_volatility_regime", TEXT, nullable=True),
        sa.Column("context_session", TEXT, nullable=True),
        sa.Column("context_hour_utc", WHOLE, nullable=True),
        sa.Column("context_day_of_week", WHOLE, nullable=True),
        sa.Column("context_spread_points", DOUBLE, nullable=True),
        sa.Column("context_spread_as_atr_pct", DOUBLE, nullable=True),
        sa.Column("context_drawdown_pct", DOUBLE, nullable=True),
        sa.Column("context_consecutive_losses", WHOLE, nullable=True),
        sa.Column("context_confidence", DOUBLE, nullable=True),
        sa.Column("market_context", TEXT, nullable=True),
        sa.Column("entry_price", DOUBLE, nullable=True),
        sa.Column("exit_price", DOUBLE, nullable=True),
        sa.Column("pnl", DOUBLE, nullable=True),
        sa.Column("outcome_value", DOUBLE, nullable=True),
        sa.Column("outcome_unit", TEXT, nullable=True),
        sa.Column("hold_seconds", DOUBLE, nullable=True),
        sa.Column("mae", DOUBLE, nullable=True),
        sa.Column("confidence", DOUBLE, nullable=True),
        sa.Column("reflection", TEXT, nullable=True),
        sa.Column("tags", TEXTS, nullable=False),
        sa.Column("known_at", INSTANT, nullable=False),
        sa.Column("recorded_at", INSTANT, nullable=False),
        sa.ForeignKeyConstraint(
            ["owner_id", "deployment_id"],
            ["deployments.owner_id", "deployments.id"],
            name="episodic_memory_within_deployments",
        ),
        sa.ForeignKeyConstraint(
            ["owner_id", "trade_id"],
            ["trade_history.owner_id", "trade_history.id"],
            name="episodic_memory_within_trade_history",
        ),
        sa.PrimaryKeyConstraint("owner_id", "id"),
    )
    op.create_index(
        "episodic_memory_by_deployment_id_symbol_known_at",
        "episodic_memory",
        ["owner_id", "deployment_id", "symbol", "known_at"],
    )
    op.create_index("episodic_memory_by_known_at_id", "episodic_memory", ["owner_id", "known_at", "id"])
