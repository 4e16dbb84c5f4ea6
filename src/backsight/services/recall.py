"""Answering a recall: the same code serves an agent's query and a decision that names the recalls it was based on."""

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from backsight.core.context import ContextVector
from backsight.core.errors import Invalid, NotFound
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
from backsight.store.instruments import INSTRUMENTS, underlyings
from backsight.store.recalls import retrieval_counts
from backsight.store.trades import NO_REASONS, TradeReasons
from backsight.store.unchanged import get, has_no_later_correction, put
from backsight.store.view import View

if TYPE_CHECKING:
    from backsight.core.recall.arrays.candidates import Filters
    from backsight.core.recall.arrays.columns import Columns
    from backsight.core.recall.arrays.scan import Hit, Scan

MAX_LIMIT = 100
MAX_OPEN_TRADES = 1_000
MOST_INACTIONS = 5
MAX_HANDLE_BYTES = 100_000
MarkedTrade = tuple[Trade, PositionMark | None]
"""An open trade and its last known mark."""
QUERY: TypeAdapter[RecallQuery] = TypeAdapter(RecallQuery)
RECALLED_FROM = (stored.EPISODES, INSTRUMENTS)
"""An answer without a deployment changes only with the episodes, and with the underlyings of instruments."""


@dataclass(frozen=True, slots=True)
class RecallSession:
    """A recall query with everything that was read to answer it."""

    query: RecallQuery
    view: View
    columns: "Columns"
    deployment: Deployment | None
    mood: Mood | None
    joined: tuple[str, ...] = ()
    """The other symbols with the same underlying, as known at the horizon of the query."""

    @property
    def situation(self) -> Situation:
        query = self.query
        return Situation(
            symbol=query.symbol,
            joined=self.joined,
            direction=query.direction,
            context=query.context,
            words=stems(query.market_context),
        )

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
            joined=self.joined,
            strategy_name=query.strategy_name,
            direction=query.direction,
            deployment_id=query.deployment_id,
            mode=query.mode_filter,
            tags=query.tags,
            since=query.since,
            until=query.until,
        )

    @property
    def strategy_name(self) -> str | None:
        """The strategy whose trades make up the base rate; None for all strategies."""
        if self.query.deployment_id is None or self.deployment is None:
            return self.query.strategy_name
        return self.deployment.strategy_name

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


def open_recall(ctx: Context, connection: Connection, query: RecallQuery, *, field: str = "recall") -> RecallSession:
    """Read what a recall needs; the connection must not have uncommitted writes.

    `NotFound` if the query names a deployment that the owner does not have, as the handle of another owner may.
    """
    view, mood_of = View(connection, ctx.owner, query.horizon), query.deployment_id or query.mood_of
    deployment = None if mood_of is None else stored_strategies.deployment(connection, ctx.owner, mood_of)
    if mood_of is not None and deployment is None:
        raise NotFound("is about a deployment that is not in this store; call recall_memories again", field=field)
    return RecallSession(
        query=query,
        view=view,
        columns=ctx.database.images.at(view),
        deployment=deployment,
        mood=None if deployment is None else mood_in(view, deployment),
        joined=underlyings(view).joined(query.symbol),
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
    retrieved, situation = retrieval_counts(view, episodes), session.situation
    reasons = stored_trades.reasons_then(view, [each.trade_id for each in episodes.values() if each.trade_id])

    def recalled(hits: Sequence["Hit"]) -> tuple[RecalledMemory, ...]:
        return tuple(
            _recalled(
                hit,
                episodes[hit.id],
                retrieved[hit.id],
                situation=situation,
                now=view.as_of,
                reasons=reasons.get(episodes[hit.id].trade_id or "", NO_REASONS),
            )
            for hit in hits
        )

    return RecallAnswer(
        base_rate=rate if rate.levels[0].n or rate.levels[0].open else None,
        nearest=recalled(scan.nearest),
        warnings=recalled(scan.warnings),
        memories=recalled(scan.memories),
        candidates=scan.candidates,
    )


def inactions_of(session: RecallSession, deployments: Iterable[Deployment]) -> tuple[Episode, ...]:
    """The last inactions that pass the filters of a recall; one without a direction is about both."""
    filters = session.filters

    def matches(inaction: Episode) -> bool:
        return (
            filters.mode in (None, inaction.mode)
            and filters.strategy_name in (None, inaction.strategy_name)
            and (filters.direction is None or inaction.direction in (None, filters.direction))
            and set(filters.tags) <= set(inaction.tags)
            and (filters.since is None or inaction.ended_at >= filters.since)
            and (filters.until is None or inaction.ended_at < filters.until)
        )

    own = [each.id for each in deployments if filters.deployment_id in (None, each.id)]
    return stored.last_inactions(session.view, own, session.situation.symbols, matches, most=MOST_INACTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarEpisodes:
    """The nearest episodes and the warnings of a recall, without their retrieval strength."""

    nearest: tuple[RecalledMemory, ...]
    warnings: tuple[RecalledMemory, ...]
    scan: "Scan"
    """The ranking that they are part of."""


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
    return SimilarEpisodes(nearest=nearest, warnings=warnings, scan=scan)


def _episodes(view: View, hits: Sequence["Hit"]) -> dict[str, Episode] | None:
    """The episodes of the hits by id; None if the store lacks one, since rows were deleted without an audit entry."""
    ids = {hit.id for hit in hits}
    episodes = stored.episodes_by_id(view, ids)
    return None if len(episodes) < len(ids) else episodes


def _reopened(ctx: Context, session: RecallSession) -> RecallSession:
    """The session with columns built from the store; verify_audit reports the missing rows."""
    ctx.database.images.forget(session.view.owner)
    return replace(session, columns=ctx.database.images.at(session.view))


def _recalled(
    hit: "Hit",
    episode: Episode,
    times: int,
    *,
    situation: Situation,
    now: datetime,
    reasons: TradeReasons = NO_REASONS,
) -> RecalledMemory:
    return RecalledMemory(
        id=hit.id,
        score=hit.value,
        factors=hit.factors,
        sentence=sentence(episode, situation=situation, sim=hit.factors.Sim, now=now),
        episode=episode,
        strength=retrieval_strength(episode.ended_at, now=now, retrieved=times),
        entry_reason=reasons.entry,
        exit_reason=reasons.exit,
    )


def _base_rate(session: RecallSession) -> BaseRate:
    from backsight.core.recall.arrays.base_rate import base_rate
    from backsight.core.recall.arrays.selection import TradeFilter

    view, strategy, mode = session.view, session.strategy_name, session.query.mode_filter
    trade_filter = TradeFilter(strategy_name=strategy, mode=mode)
    if strategy is not None and mode is not None:
        trade_filter = evidence_filter(view, mode, strategy_name=strategy, symbols=session.situation.symbols)
    trade_filter = replace(trade_filter, with_calls=session.query.with_calls)
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
    return [(trade, stored_trades.last_mark(view, trade)) for trade in trades[:MAX_OPEN_TRADES]]


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


def repeat_recalls(
    ctx: Context, connection: Connection, handles: Sequence[str], *, at: datetime, field: str
) -> list[RecallResult]:
    """Answer the recalls of these handles again; must be called before the decision writes anything.

    An answer that this process computed for the same handle is reused while no episode was changed since. A recall of
    nothing, as on a day on which memory is withheld, has no answer to store.
    """
    results: list[RecallResult] = []
    for number, handle in enumerate(dict.fromkeys(handles)):
        result: RecallResult | None = get(connection, ctx.owner, ("recall", handle), RECALLED_FROM)
        query = decode_recall(handle, field=f"{field}.{number}") if result is None else result.asked
        if query.as_of > at:
            message = f"is as of {format_instant(query.as_of)}, after the decision; recall before you decide"
            raise Invalid(message, field=f"{field}.{number}")
        if result is None and query.memory_types:
            session = open_recall(ctx, connection, query, field=f"{field}.{number}")
            result = _result(query, session.scan())
            if session.deployment is None:  # with a deployment, the answer also depends on its mood
                put(connection, ctx.owner, ("recall", handle), RECALLED_FROM, result)
        results += [] if result is None else [result]
    return results


def are_kept(ctx: Context, handles: Iterable[str]) -> bool:
    """Whether this process kept the answer of every handle, unless another process wrote since."""
    return all(ctx.database.last_value(ctx.owner, ("recall", handle)) is not None for handle in handles)


def keep_answer(session: RecallSession, handle: str, scan: "Scan", *, now: datetime) -> None:
    """Keep an answer for the decision that will name its handle; it may be dropped at any time.

    The handle says what was recorded by now. An answer that could include rows recorded later is not kept.
    """
    view, query = session.view, session.query
    bounded_query = replace(query, seen_at=query.seen_at or now)
    recorded_by_now = View(view.connection, view.owner, bounded_query.horizon)
    if is_recorded_by(session.columns, now) and has_no_later_correction(recorded_by_now, stored.EPISODES):
        put(view.connection, view.owner, ("recall", handle), RECALLED_FROM, _result(bounded_query, scan))


def is_recorded_by(columns: "Columns", at: datetime) -> bool:
    """Whether every episode of the columns was recorded by an instant."""
    last = columns.blocks.recorded_range[:, 1]
    return not len(last) or EPOCH + timedelta(microseconds=int(last.max())) <= at


def _result(query: RecallQuery, scan: "Scan") -> RecallResult:
    rankings: Mapping[RankingName, Sequence[Hit]] = {
        "nearest": scan.nearest,
        "warnings": scan.warnings,
        "memories": scan.memories,
    }
    return RecallResult(
        asked=query,
        candidates=scan.candidates,
        found={
            name: tuple(RankedId(id=hit.id, value=hit.value, factors=hit.factors) for hit in hits)
            for name, hits in rankings.items()
        },
    )
