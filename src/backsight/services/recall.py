"""How a recall is answered: the same for one who asks and for a decision that says what it was made on."""

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from backsight.core.context import ContextVector
from backsight.core.errors import Invalid
from backsight.core.ids import canonical_json, derive_id, digest, plain
from backsight.core.instants import Horizon, format_instant
from backsight.core.memory.affective import Mood
from backsight.core.memory.episodic import Episode, Retrieval, retrieval_strength
from backsight.core.portfolio import Mode
from backsight.core.recall.base_rate import BaseRate, OpenTrade
from backsight.core.recall.rank import RecalledMemory, sentence
from backsight.core.recall.record import KeptRecall, Part, RankedId, RecallAsked, RecallMade
from backsight.core.recall.score import Query, Temper
from backsight.core.strategies import Deployment
from backsight.core.text.stems import stems
from backsight.core.trades.trade import Outcome, Trade, outcome_of
from backsight.services.context import Context
from backsight.services.mood import falling_outcomes_since, mood_then
from backsight.store import memories as stored
from backsight.store import strategies as stored_strategies
from backsight.store import trades as stored_trades
from backsight.store.database import Connection
from backsight.store.transaction import Transaction

if TYPE_CHECKING:
    from backsight.core.recall.arrays.candidates import Filters
    from backsight.core.recall.arrays.columns import Columns
    from backsight.core.recall.arrays.scan import Hit, Scan

MOST_SHOWN = 100
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ASKED: TypeAdapter[RecallAsked] = TypeAdapter(RecallAsked)
MADE: TypeAdapter[RecallMade] = TypeAdapter(RecallMade)


@dataclass(frozen=True, slots=True)
class Looked:
    """What a recall sees at its horizon."""

    asked: RecallAsked
    columns: "Columns"
    home: Deployment | None
    mood: Mood | None

    @property
    def query(self) -> Query:
        asked = self.asked
        return Query(
            symbol=asked.symbol, direction=asked.direction, context=asked.context, words=stems(asked.market_context)
        )

    @property
    def temper(self) -> Temper:
        if self.mood is None:
            return Temper()
        return Temper(drawdown_state=self.mood.drawdown_state, consecutive_losses=self.mood.consecutive_losses)

    @property
    def filters(self) -> "Filters":
        from backsight.core.recall.arrays.candidates import Filters

        asked = self.asked
        return Filters(
            symbol=asked.symbol,
            strategy_name=asked.strategy_name,
            deployment_id=asked.deployment_id,
            mode=asked.one_mode,
            tags=asked.tags,
            since=asked.since,
            until=asked.until,
        )

    @property
    def strategy_name(self) -> str | None:
        """Whose trades tell what usually happens; None: everybody's."""
        return self.asked.strategy_name or (None if self.home is None else self.home.strategy_name)

    def scan(self, *, after: tuple[float, str] | None = None) -> "Scan":
        """What comes to mind."""
        from backsight.core.recall.arrays.scan import scan

        return scan(
            self.columns,
            self.query,
            self.filters,
            as_of=self.asked.as_of,
            seen_at=self.asked.seen_at,
            limit=self.asked.limit,
            temper=self.temper,
            period_weight=self.asked.period_weight,
            after=after,
        )


def look(ctx: Context, connection: Connection, asked: RecallAsked) -> Looked:
    """What there is to recall from; the connection must not have written."""
    home = None
    if asked.deployment_id is not None:
        home = stored_strategies.deployment(connection, ctx.owner, asked.deployment_id)
    return Looked(
        asked=asked,
        columns=ctx.database.images.at(connection, ctx.owner, asked.horizon),
        home=home,
        mood=None if home is None else mood_then(connection, home, asked.horizon),
    )


def usual(connection: Connection, owner: str, looked: Looked) -> BaseRate:
    """What usually happens here."""
    from backsight.core.recall.arrays.base_rate import Among, base_rate

    asked, strategy = looked.asked, looked.strategy_name
    fallen = {}
    if strategy is not None and asked.one_mode is not None:
        since = falling_outcomes_since(
            connection, owner, asked.one_mode, asked.horizon, strategy_name=strategy, symbol=asked.symbol
        )
        fallen = {} if since is None else {(strategy, asked.symbol): since}
    return base_rate(
        looked.columns,
        looked.query,
        among=Among(strategy_name=strategy, mode=asked.one_mode, fallen=fallen),
        as_of=asked.as_of,
        seen_at=asked.seen_at,
        open_trades=still_open(connection, owner, asked.horizon, strategy_name=strategy, mode=asked.one_mode),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What episodes have to say."""

    base_rate: BaseRate | None = None
    """None without trades."""
    nearest: tuple[RecalledMemory, ...] = ()
    warnings: tuple[RecalledMemory, ...] = ()
    memories: tuple[RecalledMemory, ...] = ()
    candidates: int = 0


NOTHING_FOUND = Found()


def bring_to_mind(
    ctx: Context, connection: Connection, looked: Looked, *, after: tuple[float, str] | None = None
) -> Found:
    """What usually happens here, and the memories that come to mind, each with its reasons."""
    found, rate = looked.scan(after=after), usual(connection, ctx.owner, looked)
    shown = {hit.id for hit in (*found.nearest, *found.warnings, *found.memories)}
    episodes = stored.episodes_by_id(connection, ctx.owner, shown, looked.asked.horizon)
    if len(episodes) < len(shown):  # somebody removed rows behind our back, as verify_audit will tell
        ctx.database.images.forget(ctx.owner)
        return bring_to_mind(ctx, connection, look(ctx, connection, looked.asked), after=after)
    retrieved = stored.retrieval_counts(connection, ctx.owner, episodes, looked.asked.horizon)

    def told(hits: Sequence["Hit"]) -> tuple[RecalledMemory, ...]:
        return tuple(_recalled(hit, episodes[hit.id], retrieved[hit.id], now=looked.asked.as_of) for hit in hits)

    return Found(
        base_rate=rate if rate.levels[0].n or rate.levels[0].open else None,
        nearest=told(found.nearest),
        warnings=told(found.warnings),
        memories=told(found.memories),
        candidates=found.candidates,
    )


def _recalled(hit: "Hit", episode: Episode, times: int, *, now: datetime) -> RecalledMemory:
    return RecalledMemory(
        id=hit.id,
        score=hit.value,
        factors=hit.factors,
        sentence=sentence(episode, sim=hit.factors.Sim, now=now),
        episode=episode,
        strength=retrieval_strength(episode.ended_at, now=now, retrieved=times),
    )


MOST_OPEN = 1_000


def still_open(
    connection: Connection, owner: str, horizon: Horizon, *, strategy_name: str | None, mode: Mode | None
) -> list[OpenTrade]:
    """The open trades, at their last mark known then."""
    found = stored_trades.every_open(connection, owner, horizon, strategy_name=strategy_name, mode=mode)[:MOST_OPEN]
    return [
        OpenTrade(
            id=trade.id,
            symbol=trade.symbol,
            direction=trade.direction,
            context=trade.context,
            outcome=_marked(connection, trade, horizon),
        )
        for trade in found
    ]


def _marked(connection: Connection, trade: Trade, horizon: Horizon) -> Outcome | None:
    """What an open trade would have brought at its last mark."""
    mark = stored_trades.last_mark(connection, trade.owner_id, trade.id, horizon)
    if mark is None or trade.average_cost is None:
        return None
    gained = (mark.position.mark - trade.average_cost) * mark.position.signed_size
    atr = trade.context.atr_d1
    return outcome_of(
        gained + (trade.realized_pnl or 0.0) + trade.funding - trade.fees,
        risk=mark.reach.risk,
        notional=None if trade.size is None else trade.size * trade.entry_price,
        atr_share=abs(atr / trade.entry_price) if atr and trade.entry_price else None,
    )


# Handles: a recall in a word


def handle_of(asked: RecallAsked, *, now: datetime) -> str:
    """A word for a recall, by which it can be explained, or kept with a decision.

    What was recorded later than now is no part of it, so that it is answered alike whenever it is asked again.
    """
    said = _in_json(replace(asked, seen_at=asked.seen_at or now))
    return base64.urlsafe_b64encode(zlib.compress(said.encode(), 9)).decode().rstrip("=")


def _in_json(asked: RecallAsked) -> str:
    """What was asked, without what was left out."""
    told = {name: plain(value) for name, value in as_fields(asked).items() if value != UNSAID[name]}
    given = {name: value for name, value in as_fields(asked.context).items() if value is not None}
    return canonical_json({**told, "context": given})


def as_fields(value: RecallAsked | ContextVector) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


UNSAID = as_fields(RecallAsked(symbol="", as_of=EPOCH))
MOST_BYTES = 100_000


def read_handle(handle: str, *, field: str) -> RecallAsked:
    """The recall that a handle stands for."""
    try:
        unpacking = zlib.decompressobj()
        packed = base64.urlsafe_b64decode(handle + "=" * (-len(handle) % 4))
        said = unpacking.decompress(packed, MOST_BYTES).decode()
        asked = ASKED.validate_json(said)
        if unpacking.eof and said == _in_json(asked) and 1 <= asked.limit <= MOST_SHOWN and asked.seen_at is not None:
            return asked
    except (ValueError, zlib.error):  # among them what pydantic, base64 and UTF-8 have to say
        pass
    raise Invalid("not a recall; give the `recall` of an answer, as it was", field=field)


# Keeping


def made_for(ctx: Context, handles: Sequence[str], *, at: datetime, field: str) -> list[RecallMade]:
    """What came to mind by each of these recalls, answered again; it must be asked before anything is written."""
    recalls = [read_handle(handle, field=f"{field}.{number}") for number, handle in enumerate(dict.fromkeys(handles))]
    for number, asked in enumerate(recalls):
        if asked.as_of > at:
            told = f"is as of {format_instant(asked.as_of)}, after the decision; recall before you decide"
            raise Invalid(told, field=f"{field}.{number}")
    if not recalls:
        return []
    with ctx.reading() as connection:
        return [_made(look(ctx, connection, asked)) for asked in recalls]


def _made(looked: Looked) -> RecallMade:
    found = looked.scan()
    parts: Mapping[Part, Sequence[Hit]] = {
        "nearest": found.nearest,
        "warnings": found.warnings,
        "memories": found.memories,
    }
    return RecallMade(
        asked=looked.asked,
        candidates=found.candidates,
        found={part: tuple(_ranked(hit) for hit in hits) for part, hits in parts.items()},
    )


def _ranked(hit: "Hit") -> RankedId:
    return RankedId(id=hit.id, value=hit.value, factors=hit.factors)


def keep_recalls(
    transaction: Transaction,
    owner: str,
    decision_id: str,
    recalls: Sequence[RecallMade],
    recalled: Sequence[str],
    *,
    known_at: datetime,
    recorded_at: datetime,
) -> None:
    """Keep what was recalled for a decision: the recalls, and that each of the episodes came to mind."""
    for made in recalls:
        told = canonical_json(plain(made))
        kept = KeptRecall(
            owner_id=owner,
            id=derive_id("recall", owner, decision_id, digest(plain(made.asked))),
            decision_id=decision_id,
            symbol=made.asked.symbol,
            as_of=made.asked.as_of,
            seen_at=made.asked.seen_at,
            made=told,
            known_at=known_at,
            recorded_at=recorded_at,
        )
        transaction.add(stored.RECALLS, kept)
    found = [ranked.id for made in recalls for ranks in made.found.values() for ranked in ranks]
    rows = [
        Retrieval(owner_id=owner, episode_id=each, decision_id=decision_id, known_at=known_at, recorded_at=recorded_at)
        for each in dict.fromkeys([*recalled, *found])
    ]
    transaction.add_all(stored.RETRIEVALS, rows)
