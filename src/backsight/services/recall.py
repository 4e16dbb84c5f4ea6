"""Answering a recall: the same code serves an agent's query and a decision that names the recalls it was based on."""

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from backsight.core.context import ContextVector
from backsight.core.errors import Invalid
from backsight.core.ids import canonical_json, plain
from backsight.core.instants import EPOCH, format_instant
from backsight.core.memory.affective import Mood
from backsight.core.memory.episodic import Episode, retrieval_strength
from backsight.core.portfolio import Mode
from backsight.core.recall.base_rate import BaseRate, OpenTrade
from backsight.core.recall.rank import RecalledMemory, sentence
from backsight.core.recall.record import RankedId, RankingName, RecallQuery, RecallResult
from backsight.core.recall.score import RecallMood, Situation
from backsight.core.strategies import Deployment
from backsight.core.text.stems import stems
from backsight.core.trades.mark import PositionMark, open_result
from backsight.core.trades.trade import Trade
from backsight.services.context import Context
from backsight.services.habit_learning import evidence_filter
from backsight.services.mood import mood_in
from backsight.store import memories as stored
from backsight.store import strategies as stored_strategies
from backsight.store import trades as stored_trades
from backsight.store.database import Connection
from backsight.store.view import View

if TYPE_CHECKING:
    from backsight.core.recall.arrays.candidates import Filters
    from backsight.core.recall.arrays.columns import Columns
    from backsight.core.recall.arrays.scan import Hit, Scan

MAX_LIMIT = 100
MAX_OPEN_TRADES = 1_000
MAX_HANDLE_BYTES = 100_000
MarkedTrade = tuple[Trade, PositionMark | None]
"""An open trade and its last known mark."""
QUERY: TypeAdapter[RecallQuery] = TypeAdapter(RecallQuery)


@dataclass(frozen=True, slots=True)
class RecallSession:
    """A recall query with everything that was read to answer it."""

    query: RecallQuery
    view: View
    columns: "Columns"
    deployment: Deployment | None
    mood: Mood | None

    @property
    def situation(self) -> Situation:
        query = self.query
        words = stems(query.market_context)
        return Situation(symbol=query.symbol, direction=query.direction, context=query.context, words=words)

    @property
    def recall_mood(self) -> RecallMood:
        if self.mood is None:
            return RecallMood()
        return RecallMood(drawdown_state=self.mood.drawdown_state, consecutive_losses=self.mood.consecutive_losses)

    @property
    def filters(self) -> "Filters":
        from backsight.core.recall.arrays.candidates import Filters

        query = self.query
        return Filters(
            symbol=query.symbol,
            strategy_name=query.strategy_name,
            deployment_id=query.deployment_id,
            mode=query.mode_filter,
            tags=query.tags,
            since=query.since,
            until=query.until,
        )

    @property
    def strategy_name(self) -> str | None:
        """The strategy whose trades make up the base rate; None for all strategies."""
        return self.query.strategy_name or (None if self.deployment is None else self.deployment.strategy_name)

    def scan(self, *, after: tuple[float, str] | None = None) -> "Scan":
        """Rank the episodes; `after` is the score and id of the last memory of the previous page."""
        from backsight.core.recall.arrays.scan import scan

        return scan(
            self.columns,
            self.situation,
            self.filters,
            horizon=self.query.horizon,
            limit=self.query.limit,
            mood=self.recall_mood,
            period_weight=self.query.period_weight,
            after=after,
        )


def open_recall(ctx: Context, connection: Connection, query: RecallQuery) -> RecallSession:
    """Read what a recall needs; the connection must not have uncommitted writes."""
    view, deployment = View(connection, ctx.owner, query.horizon), None
    if query.deployment_id is not None:
        deployment = stored_strategies.deployment(connection, ctx.owner, query.deployment_id)
    return RecallSession(
        query=query,
        view=view,
        columns=ctx.database.images.at(view),
        deployment=deployment,
        mood=None if deployment is None else mood_in(View(connection, ctx.owner, query.horizon), deployment),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallAnswer:
    """The base rate and the ranked episodes of a recall."""

    base_rate: BaseRate | None = None
    """None if there are no trades."""
    nearest: tuple[RecalledMemory, ...] = ()
    warnings: tuple[RecalledMemory, ...] = ()
    memories: tuple[RecalledMemory, ...] = ()
    candidates: int = 0


EMPTY_ANSWER = RecallAnswer()


def answer_recall(ctx: Context, session: RecallSession, *, after: tuple[float, str] | None = None) -> RecallAnswer:
    """Compute the base rate, and rank the episodes with the reasons for their ranks."""
    view, scan, rate = session.view, session.scan(after=after), _base_rate(session)
    episodes = _episodes(view, (*scan.nearest, *scan.warnings, *scan.memories))
    if episodes is None:
        return answer_recall(ctx, _reopened(ctx, session), after=after)
    retrieved, situation = stored.retrieval_counts(view, episodes), session.situation

    def recalled(hits: Sequence["Hit"]) -> tuple[RecalledMemory, ...]:
        return tuple(
            _recalled(hit, episodes[hit.id], retrieved[hit.id], situation=situation, now=view.as_of) for hit in hits
        )

    return RecallAnswer(
        base_rate=rate if rate.levels[0].n or rate.levels[0].open else None,
        nearest=recalled(scan.nearest),
        warnings=recalled(scan.warnings),
        memories=recalled(scan.memories),
        candidates=scan.candidates,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarEpisodes:
    """The nearest episodes and the warnings of a recall, without their retrieval strength."""

    nearest: tuple[RecalledMemory, ...]
    warnings: tuple[RecalledMemory, ...]


def similar_episodes(ctx: Context, session: RecallSession) -> SimilarEpisodes:
    """Rank the episodes by similarity, and the losses among them."""
    scan, situation, now = session.scan(), session.situation, session.view.as_of
    episodes = _episodes(session.view, (*scan.nearest, *scan.warnings))
    if episodes is None:
        return similar_episodes(ctx, _reopened(ctx, session))
    nearest, warnings = (
        tuple(_recalled(hit, episodes[hit.id], 0, situation=situation, now=now) for hit in hits)
        for hits in (scan.nearest, scan.warnings)
    )
    return SimilarEpisodes(nearest=nearest, warnings=warnings)


def _episodes(view: View, hits: Sequence["Hit"]) -> dict[str, Episode] | None:
    """The episodes of the hits by id; None if the store lacks one, since rows were deleted without an audit entry."""
    ids = {hit.id for hit in hits}
    episodes = stored.episodes_by_id(view, ids)
    return None if len(episodes) < len(ids) else episodes


def _reopened(ctx: Context, session: RecallSession) -> RecallSession:
    """The session with columns built from the store; verify_audit reports the missing rows."""
    ctx.database.images.forget(session.view.owner)
    return replace(session, columns=ctx.database.images.at(session.view))


def _recalled(hit: "Hit", episode: Episode, times: int, *, situation: Situation, now: datetime) -> RecalledMemory:
    return RecalledMemory(
        id=hit.id,
        score=hit.value,
        factors=hit.factors,
        sentence=sentence(episode, situation=situation, sim=hit.factors.Sim, now=now),
        episode=episode,
        strength=retrieval_strength(episode.ended_at, now=now, retrieved=times),
    )


def _base_rate(session: RecallSession) -> BaseRate:
    from backsight.core.recall.arrays.base_rate import base_rate
    from backsight.core.recall.arrays.selection import TradeFilter

    query, view, strategy, mode = session.query, session.view, session.strategy_name, session.query.mode_filter
    trade_filter = TradeFilter(strategy_name=strategy, mode=mode)
    if strategy is not None and mode is not None:
        trade_filter = evidence_filter(view, mode, strategy_name=strategy, symbol=query.symbol)
    return base_rate(
        session.columns,
        session.situation,
        trade_filter=trade_filter,
        horizon=view.horizon,
        open_trades=[
            as_open_trade(trade, mark) for trade, mark in marked_trades(view, strategy_name=strategy, mode=mode)
        ],
    )


def marked_trades(view: View, *, strategy_name: str | None, mode: Mode | None) -> list[MarkedTrade]:
    """The open trades, each with its last known mark."""
    return with_marks(view, stored_trades.every_open(view, strategy_name=strategy_name, mode=mode))


def with_marks(view: View, trades: Sequence[Trade]) -> list[MarkedTrade]:
    """Each of the trades with its last known mark."""
    return [(trade, stored_trades.last_mark(view, trade.id)) for trade in trades[:MAX_OPEN_TRADES]]


def as_open_trade(trade: Trade, mark: PositionMark | None) -> OpenTrade:
    """An open trade as the base rate counts it."""
    result = open_result(trade, mark)
    return OpenTrade(
        id=trade.id,
        symbol=trade.symbol,
        direction=trade.direction,
        context=trade.context,
        outcome=None if result is None else result.outcome,
    )


# Handles: a recall query as one opaque string


def encode_recall(query: RecallQuery, *, now: datetime) -> str:
    """Encode a recall query as a handle, by which the recall can be explained or stored with a decision.

    The handle fixes `seen_at`, so that repeating the recall later gives the same answer.
    """
    text = _query_json(replace(query, seen_at=query.seen_at or now))
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")


def _query_json(query: RecallQuery) -> str:
    """The query as canonical JSON, without the fields that have their default value."""
    values = {name: plain(value) for name, value in _fields(query).items() if value != DEFAULTS[name]}
    context = {name: value for name, value in _fields(query.context).items() if value is not None}
    return canonical_json({**values, "context": context})


def _fields(value: RecallQuery | ContextVector) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


DEFAULTS = _fields(RecallQuery(symbol="", as_of=EPOCH))


def decode_recall(handle: str, *, field: str) -> RecallQuery:
    """The recall query that a handle encodes; `Invalid` unless `encode_recall` made the handle."""
    try:
        decompressor = zlib.decompressobj()
        compressed = base64.urlsafe_b64decode(handle + "=" * (-len(handle) % 4))
        text = decompressor.decompress(compressed, MAX_HANDLE_BYTES).decode()
        query = QUERY.validate_json(text)
        canonical = decompressor.eof and text == _query_json(query)
        if canonical and 1 <= query.limit <= MAX_LIMIT and query.seen_at is not None:
            return query
    except (ValueError, zlib.error):  # pydantic, base64 and UTF-8 errors are ValueErrors
        pass
    raise Invalid("not a recall; give the `recall` of an answer unchanged", field=field)


# Recalls of a decision


def repeat_recalls(ctx: Context, handles: Sequence[str], *, at: datetime, field: str) -> list[RecallResult]:
    """Answer the recalls of these handles again; must be called before the decision writes anything.

    A recall of nothing, as on a day on which memory is withheld, has no answer to store.
    """
    queries = [decode_recall(handle, field=f"{field}.{number}") for number, handle in enumerate(dict.fromkeys(handles))]
    for number, query in enumerate(queries):
        if query.as_of > at:
            message = f"is as of {format_instant(query.as_of)}, after the decision; recall before you decide"
            raise Invalid(message, field=f"{field}.{number}")
    if not queries:
        return []
    with ctx.reading() as connection:
        return [_result(open_recall(ctx, connection, query)) for query in queries if query.memory_types]


def _result(session: RecallSession) -> RecallResult:
    scan = session.scan()
    rankings: Mapping[RankingName, Sequence[Hit]] = {
        "nearest": scan.nearest,
        "warnings": scan.warnings,
        "memories": scan.memories,
    }
    return RecallResult(
        asked=session.query,
        candidates=scan.candidates,
        found={
            name: tuple(RankedId(id=hit.id, value=hit.value, factors=hit.factors) for hit in hits)
            for name, hits in rankings.items()
        },
    )
