"""What is shown of each answer in brief: a sentence first, then which lines and columns, in which order.

`LAYOUTS` is keyed by the name of the result type. The shell, the text of MCP and its structured content are made from
the same layout.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from backsight.answers.blocks import (
    MORE,
    REPLAYED,
    Block,
    Body,
    Each,
    Excerpts,
    Handle,
    Line,
    Quoted,
    Rows,
    Values,
    default_parts,
    parts_of,
)
from backsight.answers.brief import Brief
from backsight.answers.values import Template, columns, fill, short_id, text_of, value_at, with_unit
from backsight.core.agents.run import shortened_text
from backsight.core.call_notes import notes_of
from backsight.core.memory.drift_report import amount_of
from backsight.core.memory.plan_words import action_in_words, end_in_words, plan_with_reason
from backsight.core.numbers import half_width, with_margin
from backsight.core.text.counts import count_of
from backsight.core.text.tokens import estimate
from backsight.core.text.untrusted_text import clause, flat

LINE_WIDTH = 140
GROUPS_SHOWN = 12
"""Groups of trades that a brief answer shows, the clearest first."""
SNIPPET_LINES = 6
REASON_TOKENS = 8
"""Tokens of the reason of an exit in a row."""
CLAUSE_TOKENS = 24
"""Tokens of what an agent wrote about a trade, in a row."""
PASSAGE_TOKENS = 300
"""Tokens of each text of one trade that is read on its own."""
WORDS_TOKENS = 60
"""Tokens of all that an agent wrote about one of the most relevant memories."""
WHOLE_MEMORIES = 3
"""The most relevant memories, whose words a recall does not cut to a clause."""
FINDINGS_SHOWN = 10
HISTORY_SHOWN = 20
"""Points of a series that a brief answer shows, the last ones."""
DAYS_SHOWN = TRADES_SHOWN = 30
FACTORS = ("Q", "Sim", "Rec", "Conf", "Aff", "Period")


def brief_of(answer: Any) -> Brief:
    """The brief form of the answer of an operation."""
    layout = LAYOUTS.get(type(answer).__name__)
    form = default_parts(answer) if layout is None else parts_of(layout, answer)
    notes = notes_of(answer)
    return form.with_note(f"{'; '.join(notes)}.") if notes else form


def brief(answer: Any) -> str:
    """The brief form of the answer of an operation as text: a sentence, then slim rows."""
    return brief_of(answer).text()


def brief_schema(result: str) -> dict[str, Any]:
    """JSON schemas of the parts of a brief answer, by name; parts that would be empty are left out of an answer."""
    schemas: dict[str, Any] = {"message": {"type": "string"}, "notes": {"type": "array"}}
    for block in LAYOUTS.get(result, ()):
        match block:
            case Rows():
                names = ", ".join(column.key for column in block.slim_columns())
                schemas[block.key] = {"type": "object", "description": f"columns and rows: {names}"}
            case Each() | Values():
                schemas[block.key] = {"type": ["array", "object"]}
            case Handle():
                schemas[block.key] = {"type": "string"}
            case Body(for_people=False) | Excerpts():
                schemas[block.key] = {}
            case Line() | Body():
                pass
    return schemas


def _list(path: str, noun: str, *, order: str = "", empty: str = "") -> Line:
    """The sentence of a list: how many items it has, and in which order; or that there are none."""

    def sentence(answer: Any) -> str:
        items = getattr(answer, path)
        if not items:
            return empty or f"No {count_of(0, noun).partition(' ')[2]} were known at that time."
        more = "; there are more" if getattr(answer, "next_cursor", None) else ""
        return f"{count_of(len(items), noun)}{f', {order}' if order else ''}{more}."

    return Line(sentence)


def _done(text: Template) -> Line:
    """The sentence of a command: what it did, or that the call was a repeat."""
    return Line(lambda answer: REPLAYED if answer.replayed else fill(text, answer))


def _mean(value: str, interval: str = "") -> Template:
    """A cell with a mean in the unit of its row, and half the width of its interval."""
    return lambda row: with_unit(getattr(row, value), row.unit, getattr(row, interval) if interval else None)


def _figure(name: str, spec: str = "+.2f", scale: float = 1.0) -> Template:
    """A habit with its interval and its sample size; a dash if the sample is too small, and nothing without a trade."""

    def cell(behavior: Any) -> str:
        figure = behavior.exit_timing if name == "exit_timing" else getattr(behavior.habits, name)
        if figure.value is None and not figure.n:
            return ""
        value = "–" if figure.value is None else format(figure.value * scale, spec)
        low, high = getattr(figure, "low", None), getattr(figure, "high", None)
        interval = "" if low is None or high is None else f"90%: {low:{spec}} to {high:{spec}}, "
        return f"{value} ({interval}n={figure.n})"

    return cell


def _mean_outcome(outcome: Any) -> str:
    return with_unit(outcome.mean, outcome.unit, None if outcome.low is None else (outcome.low, outcome.high))


def _known_mean(outcome: Any) -> str:
    """A mean outcome, and for how many of the trades it is known where it is not for all."""
    known = f" ({outcome.n} of {outcome.n + outcome.unknown})" if outcome.unknown else ""
    return f"{_mean_outcome(outcome)}{known}"


def _win_rate_of_belief(row: Any) -> str:
    """The win rate and its interval; nothing before the first trade, when only the prior is known."""
    return fill("{posterior.win_rate:.0%} ({win_rate_low:.0%} to {win_rate_high:.0%})", row) if row.posterior.n else ""


def _claim(belief: Any) -> str:
    if belief.about == "win_rate":
        return f"win rate {belief.claims} {belief.reference:.0%}"
    return f"mean outcome {belief.claims} {with_unit(belief.reference, 'R')}"


def _first_lesson(bullets: Any) -> str:
    more = f" … and {len(bullets) - 1} more" if len(bullets) > 1 else ""
    return bullets[0].text + more if bullets else "none"


def _counts(counts: Mapping[str, int]) -> str:
    """The counts that are not zero, each with its name."""
    return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items() if count)


def _ids(identifiers: Iterable[str]) -> str:
    return ", ".join(map(short_id, identifiers))


REGIME = columns("regime: {context.regime}")
TRADES = {
    "opened": lambda trade: "" if trade.closed_at else text_of(trade.opened_at),
    **columns("closed: {closed_at} | symbol | side: {direction} | strategy: {strategy_name}"),
    "open": lambda trade: "" if trade.closed_at else fill("{open_size:.6g} at {entry_price:price}", trade),
    **columns("~>entry: {entry_price:price} | ~>exit: {exit_price:price}"),
    **columns(">net: {pnl:+.2f} | >outcome"),
    "why closed": Quoted("{exit_reason}", REASON_TOKENS),
    **columns("id: {id:id}"),
    "words": Quoted(lambda trade: trade.reflection or _setup(trade.entry.reason, trade.market_context), CLAUSE_TOKENS),
}
TRADES_OF_SYMBOL = {
    name: template
    for column, its_template in TRADES.items()
    for name, template in ({column: its_template} | (REGIME if column == "side" else {})).items()
}
"""With the regime. Beside other symbols or strategies a row would take more than 40 tokens, the most for a trade."""
DECISIONS = {
    **columns("tick: {at}"),
    "verdict": lambda decision: " ".join(filter(None, (decision.verdict.kind, decision.verdict.rule))),
    "symbol": lambda decision: (decision.symbol or "") + _more_orders(decision),
    **columns("memory: {memory_arm} | >equity: {equity:.2f}"),
    "reason": lambda decision: decision.reason or decision.verdict.detail or "",
    **columns("id: {id:id}"),
}
RUNS = columns("at | kind | deployment | status | headline | model | >cost: {cost:.4f} | id: {id:id}")
RUN_VALUES = {
    **columns("kind | status | started: {started_at} | ended: {ended_at} | card: {card_type} | model"),
    **columns("tokens read: {input_tokens} | tokens written: {output_tokens} | cost: {cost:.4f} | id: {id:id}"),
}
RUN_TEXTS = (
    Body("run", lambda run: shortened_text(run.result or "", most=600), title="── result", name="result"),
    Body("run", lambda run: shortened_text(run.output or "", most=2_000), title="── output", name="output"),
    Body("run", lambda run: shortened_text(run.prompt, most=800), title="── prompt", name="prompt"),
)
ANSWER = Body("run", lambda run: shortened_text(run.output or "", most=2_000), name="output", for_models=True)
"""The answer of a run that has ended; a terminal has shown it while it was written."""
PROPOSED = {
    **columns("symbol: {order.symbol} | >quantity: {order.quantity:price}"),
    "verdict": lambda proposal: " ".join(filter(None, (proposal.verdict.kind, proposal.verdict.rule))),
    "reason": lambda proposal: proposal.order.reason or proposal.verdict.detail or "",
    **columns("order: {order.order_id}"),
}
BELIEFS = {
    **columns(">credibility: {posterior.credibility:.2f}"),
    ">win rate (90%)": _win_rate_of_belief,
    "claim": lambda row: _claim(row.belief),
    **columns(">n: {posterior.n}"),
    ">mean outcome": lambda row: ", ".join(map(_known_mean, row.outcomes)),
    ">strength": "{strength:.2f}",
    "status": lambda row: (
        fill("retired {belief.retired_at:%Y-%m-%d}", row) or ("worth testing" if row.worth_testing else "")
    ),
    **columns("belief: {belief.proposition} | id: {belief.id:id}"),
}
PLANS = {
    **columns("status | >fired: {times_fired} | if: {plan.condition}"),
    "then": lambda row: action_in_words(row.plan.action),
    "ends": lambda row: end_in_words(row.plan).removeprefix("until "),
    **columns("ended: {ended_at:%Y-%m-%d} | made: {plan.known_at:%Y-%m-%d} | reason when made: {plan.reasoning}"),
    **columns("id: {plan.id:id}"),
}
MEMORIES = {
    **columns("listed as: {listed} | ~>score: {memory.score:.3f}"),
    ">outcome": lambda row: text_of(row.memory.episode.outcome) or fill("{pnl:+.2f}", row.memory.episode),
    **columns("side: {memory.episode.direction} | regime: {memory.episode.context.regime}"),
    **columns("~>Q: {memory.factors.Q:.2f} | >Sim: {memory.factors.Sim:.2f} | ~>Rec: {memory.factors.Rec:.2f}"),
    **columns("~>Conf: {memory.factors.Conf:.2f} | ~>Aff: {memory.factors.Aff:.2f}"),
    "~>Period": lambda row: "" if row.memory.factors.Period == 1.0 else f"{row.memory.factors.Period:.2f}",
    **columns("ended: {memory.episode.ended_at:%Y-%m-%d}"),
    "id": lambda row: short_id(row.memory.episode.trade_id or row.memory.id),
    "setup": Quoted("{words.setup}", CLAUSE_TOKENS, whole="is_whole"),
    "why closed": Quoted("{words.exit}", REASON_TOKENS, whole="is_whole"),
    "reflection": Quoted("{words.reflection}", CLAUSE_TOKENS, whole="is_whole"),
}
INACTIONS = {
    **columns("not traded: {ended_at:%Y-%m-%d} | side: {direction} | >times: {count} | id: {id:id}"),
    "why not": Quoted("{reason}", CLAUSE_TOKENS),
    "market": Quoted("{market_context}", CLAUSE_TOKENS),
}
GROUPS = {
    "group": lambda group: group.label + (" (share of the best price kept)" if group.measure == "captured" else ""),
    **columns(">n | >days"),
    ">mean (90%)": _mean("mean", "interval"),
    ">rest": _mean("rest_mean"),
    ">difference": _mean("difference", "difference_interval"),
    "result": lambda group: "lesson" if group.missing is None else group.missing,
}
DEPLOYMENTS = {
    "deployment": "{deployment.name}",
    "strategy": lambda row: (
        fill("{deployment.strategy_name} v{deployment.strategy_version}", row) or row.deployment.strategy_name
    ),
    **columns("mode: {deployment.mode} | >trades: {tally.trades} | >won: {tally.wins} | >net: {tally.pnl:+.2f}"),
    ">mean R (90%)": lambda row: _mean_figure(row.performance.figures.r, "R"),
    **columns(">Sharpe: {performance.returns.sharpe:.2f} | >drawdown: {performance.returns.drawdown.share:.1%}"),
    **columns("last close: {tally.last_closed_at} | stopped: {stopped_at:%Y-%m-%d} | why: {stop_reason}"),
}
FACTS = {
    **columns("fact | topic | confidence | source | strategy: {strategy_name}"),
    **columns("created: {created_at:%Y-%m-%d} | shown: {last_referenced_at:%Y-%m-%d}"),
    "stale": lambda fact: "yes" if fact.stale else "",
    **columns("archived: {archived_at:%Y-%m-%d} | why: {archived_reason} | id: {id:id}"),
}
FIGURES = {
    **columns(">n: {figures.trades}"),
    ">won (90%)": lambda group: _win_rate(group.figures),
    ">mean (90%)": lambda group: _expectancy(group.figures),
    **columns(">net: {figures.net:+.2f}"),
}
RESULT_SO_FAR = {
    "net if closed at the mark": "{pnl:+.2f}",
    "outcome so far": "{outcome}",
    "best and worst so far": "{excursions.mfe:+.2f}, {excursions.mae:+.2f}",
}
PERFORMANCE: tuple[Block, ...] = (
    Line(lambda answer: _results(answer.performance.figures)),
    Line(lambda answer: _returns(answer.performance.returns)),
    Line("{memory_help}"),
    Rows(lambda answer: _groups(answer.performance), {"group": "{label}", **FIGURES}, name="groups"),
)
MOODS = {
    **columns("deployment: {deployment.name} | mode: {deployment.mode} | >closed trades: {closes}"),
    **columns(">confidence: {mood.confidence:.2f} | >risk appetite: {mood.risk_appetite:.2f}"),
    **columns(">won in a row: {mood.consecutive_wins} | >lost in a row: {mood.consecutive_losses}"),
    ">drawdown": lambda row: fill("{mood.drawdown:.1%}", row) if row.equity_seen else "",
}
LESSONS = {
    **columns("revision: {content_hash}"),
    "status": lambda note: note.status + ("" if note.deployment_id else " (strategy)"),
    **columns("written: {generated_at} | author | >trades: {trades_considered}"),
    "lessons": lambda note: _first_lesson(note.bullets),
}
ATTEMPTS = {
    **columns("attempt: {at} | result: {came}"),
    "author": lambda attempt: attempt.model_used or attempt.author,
    **columns(">trades: {closed} | reason"),
}
INSTRUMENTS = columns(
    "symbol | kind | >multiplier: {multiplier:.10g} | inverse | >lot step: {lot_step:.10g} |"
    " >tick: {tick_size:.10g} | currency | underlying"
)
EDITS = columns("status | proposed: {known_at} | agent | run: {run_id} | path | reason | id: {id:id}")
LINKS = columns(">sequence | at | actor | operation | hash: {hash:id}")
FINDINGS = columns("kind | table | key | detail")
SKIPPED = Rows("skipped", columns("path | reason"))
PROMPT: tuple[Block, ...] = (
    Line("The prompt: {total_tokens:count token}, {memory_tokens} of them memory (memory {memory_arm}).", "bold"),
    Each(
        "cuts",
        lambda cut: f"{cut.name} was cut {'entirely' if cut.whole else 'by ' + count_of(cut.rows, 'row')}",
        "yellow",
    ),
    Body("system", "{text}", title="── system: {name}"),
    Body("segments", "{text}", title="── message: {name}"),
    Rows("tokens", columns("segment: {name} | >tokens")),
)
LEARNED: tuple[Block, ...] = (
    Line(lambda answer: _mood_after(answer.learned)),
    Each(
        "learned.evidence",
        lambda change: fill(
            ("confirms" if change.confirms else "contradicts")
            + ": {proposition} (credibility {credibility:.2f}, n={n})",
            change,
        ),
    ),
    Each(
        "learned.drifted",
        lambda drifted: fill(
            "drift: {series} of "
            + (drifted.symbol or "the strategy")
            + " turned {alarm.turn}, {alarm.magnitude:+.1f} deviations since {alarm.since}",
            drifted,
        ),
    ),
    Each("learned.induced", "new belief: {proposition}"),
    Each("learned.retired", "retired belief: {proposition}"),
    Each("learned.proposals", "proposes a plan, see list_proposals: {}"),
)


def _setup(entry_reason: str | None, market_context: str | None) -> str:
    """Why a trade was opened, and the market then, in the words of the agent."""
    return "; ".join(filter(None, (entry_reason, market_context)))


class MemoryWords(NamedTuple):
    """What an agent wrote about a trade or a call."""

    setup: str
    exit: str
    reflection: str

    @classmethod
    def of(cls, memory: Any) -> "MemoryWords":
        episode = memory.episode
        setup = _setup(memory.entry_reason or episode.reason, episode.market_context)
        return cls(setup, memory.exit_reason or "", episode.reflection or "")

    def within(self, tokens: int) -> "MemoryWords":
        """The words within a number of tokens: short texts whole, and the rest shared by the long ones.

        >>> MemoryWords("a b c d e f g h", "stop", "i j").within(8)
        MemoryWords(setup='a b c d…', exit='stop', reflection='i j')
        """
        texts = list(self)
        for number, index in enumerate(sorted(range(len(texts)), key=lambda index: estimate(flat(texts[index])))):
            texts[index] = clause(texts[index], tokens // (len(texts) - number))
            tokens -= estimate(texts[index])
        return MemoryWords(*texts)


class ListedMemory(NamedTuple):
    """A recalled memory with the names of the lists that contain it."""

    memory: Any
    listed: str
    words: MemoryWords
    is_whole: bool
    """Whether its words are shown whole, as far as there is room for them."""


def _recalled(recall: Any) -> tuple[ListedMemory, ...]:
    """The nearest episodes, the warnings and the best memories of a recall, each memory once."""
    lists = {"nearest": recall.nearest, "warning": recall.warnings, "best": recall.memories}
    memories = {memory.id: memory for listed in lists.values() for memory in listed}
    names = {
        key: [name for name, each in lists.items() if any(key == memory.id for memory in each)] for key in memories
    }
    return tuple(
        ListedMemory(memory, "+".join(names[key]), MemoryWords.of(memory).within(WORDS_TOKENS), number < WHOLE_MEMORIES)
        for number, (key, memory) in enumerate(memories.items())
    )


class WithUnit(NamedTuple):
    """A row of figures, and the unit of its means."""

    row: Any
    unit: str | None
    label: str


def _revisions(answer: Any) -> tuple[WithUnit, ...]:
    comparison = answer.comparison
    return tuple(WithUnit(each, comparison.unit, each.lessons_hash or "none") for each in comparison.revisions)


def _money_help(answer: Any) -> str:
    """The difference in money, with its interval."""
    result = answer.help
    if result.money_difference is None or result.money_interval is None:
        return ""
    low, high = result.money_interval
    return f"In money: {result.money_difference:+,.2f} {answer.currency} a day (90%: {low:+,.2f} to {high:+,.2f})."


def _arms(answer: Any) -> tuple[WithUnit, ...]:
    """Trades with memory shown, and trades with memory withheld."""
    result = answer.help
    return WithUnit(result.shown, result.unit, "shown"), WithUnit(result.withheld, result.unit, "withheld")


def _mean_figure(figure: Any, unit: str) -> str:
    """A mean with half the width of its interval."""
    if figure is None:
        return ""
    interval = None if figure.low is None else (figure.low, figure.high)
    if unit == "R":
        return with_unit(figure.mean, "R", interval)
    return with_margin(f"{figure.mean:+.2f}", half_width(interval))


def _win_rate(figures: Any) -> str:
    return fill("{win_rate:.0%} ({win_rate_low:.0%} to {win_rate_high:.0%})", figures)


def _expectancy(figures: Any) -> str:
    """The mean in R, else in money."""
    return _mean_figure(figures.r, "R") or _mean_figure(figures.money, "money")


def _results(figures: Any) -> str:
    """The figures of trades in one line."""
    if not figures.trades:
        return ""
    parts = [
        f"won {_win_rate(figures)}",
        f"net {figures.net:+,.2f}",
        fill("profit factor {profit_factor:.2f}", figures),
        f"a trade {' or '.join(filter(None, (_mean_figure(figures.r, 'R'), _mean_figure(figures.money, 'money'))))}",
        fill("held {average_minutes:,.0f} min, median {median_minutes:,.0f}", figures),
        fill("best {best:+,.2f}, worst {worst:+,.2f}", figures),
        figures.r_missing or "",
    ]
    return "; ".join(filter(None, parts)) + "."


def _returns(returns: Any) -> str:
    """The figures of daily returns in one line."""
    drawdown = "largest drawdown {drawdown.share:.1%} from {drawdown.peak_on} to {drawdown.trough_on}, "
    recovered = "recovered {drawdown.recovered_on}" if value_at(returns, "drawdown.recovered_on") else "not recovered"
    parts = [
        fill("Sharpe {sharpe:.2f}", returns),
        fill("Sortino {sortino:.2f}", returns),
        fill("{deflated_sharpe:.0%} likely to be more than the best of several by luck", returns),
        fill(drawdown + recovered, returns),
        returns.missing or f"{count_of(returns.days, 'day')} of returns",
    ]
    text = "; ".join(filter(None, parts)) + "."
    return text[0].upper() + text[1:]


def _about_deployment(row: Any) -> str:
    """What is missing for ratios, whether memory helps, and the recent activity of a deployment."""
    activity = [line.removeprefix("- ") for line in (row.activity or "").splitlines() if line.startswith("- ")]
    texts = (
        row.performance.returns.missing if row.tally.trades else "",
        row.memory_help,
        f"lately: {', '.join(activity)}" if activity else "",
    )
    about = "; ".join(text.removesuffix(".") for text in texts if text)
    return f"{row.deployment.name}: {about}." if about else ""


class DayOfEquity(NamedTuple):
    """A day of an equity history on which something changed, with its recorded equity."""

    day: Any
    start: float
    net: float
    transfers: float | None
    end: float
    recorded: float | None


def _last_days(answer: Any) -> tuple[DayOfEquity, ...]:
    """The last days on which something changed, newest first."""
    recorded = {each.day: each.equity for each in answer.recorded}
    changed = [day for day in answer.days if day.net or day.transfers or day.day in recorded]
    return tuple(
        DayOfEquity(day.day, day.start, day.net, day.transfers or None, day.end, recorded.get(day.day))
        for day in reversed(changed[-DAYS_SHOWN:])
    )


def _returns_drawdown(answer: Any) -> str:
    drawdown = answer.drawdown
    if drawdown is None:
        return ""
    again = f", recovered {drawdown.recovered_on}" if drawdown.recovered_on else ", not recovered"
    return f"Largest drawdown {drawdown.share:.1%}, {drawdown.peak_on} to {drawdown.trough_on}{again}."


class LabelledFigures(NamedTuple):
    """The figures of a group, with the category of its label."""

    label: str
    figures: Any


def _groups(performance: Any) -> tuple[LabelledFigures, ...]:
    """The groups by regime, symbol and direction; a category with one group says nothing more than the whole."""
    categories = {name: getattr(performance, f"by_{name}") for name in ("regime", "symbol", "direction")}
    return tuple(
        LabelledFigures(f"{name} {group.label}", group.figures)
        for name, groups in categories.items()
        if len(groups) > 1
        for group in groups
    )


def _lessons_line(note: Any) -> str:
    window = fill(", {window_start:%Y-%m-%d} to {window_end:%Y-%m-%d}", note)
    return f"Lessons {short_id(note.content_hash)} from {count_of(note.trades_considered, 'trade')}{window}:"


def _recent_trades(answer: Any) -> tuple[Any, ...]:
    return tuple(trade for each in answer.deployments for trade in each.recent_trades)


def _trade_rows(trades_of: Callable[[Any], Sequence[Any]], name: str, *, most: int) -> tuple[Block, ...]:
    """A table of trades; with the regime of each where all are of one symbol and strategy, which then are no columns.

    Of more trades than `most`, only where the reason of the exits is no column either: they would be too long.
    """

    def with_regime(answer: Any) -> tuple[Any, ...]:
        trades = trades_of(answer)
        has_room = len(trades) <= most or len({trade.exit_reason for trade in trades}) == 1
        return tuple(trades) if has_room and len({(each.symbol, each.strategy_name) for each in trades}) == 1 else ()

    def without_regime(answer: Any) -> tuple[Any, ...]:
        return () if with_regime(answer) else tuple(trades_of(answer))

    return Rows(without_regime, TRADES, name=name), Rows(with_regime, TRADES_OF_SYMBOL, name=name)


def _snippet(answer: Any, citation: Any) -> str:
    """The lines around the first line that contains a word of the query."""
    lines = [line[:LINE_WIDTH] for line in citation.snippet.splitlines() if line.strip()]
    matches = (index for index, line in enumerate(lines) if any(word in line.lower() for word in answer.words))
    start = max(0, next(matches, 0) - 1)
    return "\n".join(lines[start : start + SNIPPET_LINES])


def _chain(answer: Any) -> str:
    """The audit chain as JSON Lines; the last line is its head."""
    from pydantic import TypeAdapter

    export = TypeAdapter(type(answer)).dump_python(answer, mode="json")
    return "\n".join(json.dumps(link, ensure_ascii=False) for link in [*export["links"], {"head": export["head"]}])


def _listed_runs(page: Any) -> str:
    more = "; there are more" if page.next_cursor else ""
    return f"{count_of(len(page.runs), 'run')}, newest first{more}."


def _more_orders(decision: Any) -> str:
    """How many orders a decision has beside its main one."""
    return f" +{len(decision.further_proposals)}" if decision.further_proposals else ""


def _text_lengths(answer: Any) -> str:
    prompt = sum(len(segment.text) for segment in answer.shown)
    response = "none" if answer.response is None else f"{len(answer.response):,} characters"
    return f'Prompt: {prompt:,} characters. Answer of the model: {response}. detail="full" shows both.'


def _rows_in_tables(answer: Any) -> str:
    filled = [rows for rows in answer.facts.values() if rows]
    return f"{count_of(sum(filled), 'row')} in {count_of(len(filled), 'table')}"


def _reflection_headline(answer: Any) -> str:
    outcome = f"Would be {answer.came}" if answer.dry_run else answer.came.capitalize()
    return f"{outcome}{' (already known)' if answer.replayed else ''}: {answer.reason}"


def _clearest_groups(answer: Any) -> tuple[Any, ...]:
    """The groups of a reflection that a brief answer shows: those with a lesson, then the others in their order."""
    return tuple(sorted(answer.evidence.groups, key=lambda group: group.missing is not None)[:GROUPS_SHOWN])


def _further_groups(answer: Any) -> str:
    """How many groups of a reflection a brief answer leaves out; empty if it has all."""
    left = len(answer.evidence.groups) - GROUPS_SHOWN
    return f'{count_of(left, "more group")}, each less clear: detail="full" has all.' if left > 0 else ""


def _evidence_headline(answer: Any) -> str:
    evidence = answer.evidence
    tested = f"tested at level {evidence.level:.4f}" if evidence.level else "not tested now"
    trades = f"{evidence.considered} of {count_of(evidence.closed, 'closed trade')} on {count_of(evidence.days, 'day')}"
    return f"{trades}, {tested}; next test at {evidence.next_test_at} trades"


def _mood_after(learned: Any) -> str:
    """The mood that a trade left, and how many trades the habits rest on; empty if the mood is not known."""
    if learned is None or learned.mood is None:
        return ""
    mood = learned.mood
    losses, wins = count_of(mood.consecutive_losses, "loss"), count_of(mood.consecutive_wins, "win")
    streak = f", {losses if mood.consecutive_losses else wins} in a row"
    return f"mood: confidence {mood.confidence:.2f}{streak}; habits rest on {count_of(learned.habits, 'trade')}"


def _unless_said(text: str | None, before: str) -> str:
    """A sentence, unless an earlier one of the answer contains it."""
    return "" if text is None or text in before else text


def _watch_lists(answer: Any) -> str:
    lines = []
    for each in answer.watched:
        lines += [f"watched, {each.mode}: {each.message}", *(f"- {one.sentence}" for one in each.patterns)]
    return "\n".join(lines)


def _drift(behavior: Any) -> str:
    alarms = [f"{each.series} {each.turn} since {each.since:%Y-%m-%d}" for each in behavior.drift if each.turn]
    return ", ".join(alarms) or "none"


def _detectable(behavior: Any) -> str:
    """The smallest change of each series that would have been found by now."""
    return ", ".join(
        f"{each.series}: none yet"
        if each.detectable is None
        else f"{each.series} {amount_of(each.series, each.detectable.size).lstrip('+')} in {each.detectable.days} days"
        for each in behavior.drift
    )


def _imported_rows(answer: Any) -> str:
    rows = "{summary.rows:,} at {summary.instants:count instant}, {first_at} to {last_at}"
    return fill(rows if answer.added == answer.summary.rows else rows + ", {added} of them new", answer)


def _compared_results(answer: Any) -> str:
    """How many results agree with those in the file of an import of fills."""
    comparison = None if answer.trades is None else answer.trades.comparison
    if comparison is None or not comparison.compared:
        return ""
    silent = answer.trades.contradicted
    contradicted = f"; {silent} contradict it too much to learn from" if silent else ""
    return f"{comparison.agreeing:,} of {comparison.compared:,} agree with the file{contradicted}"


def _left_out_rows(rows: Any) -> str:
    return f"left out: {count_of(rows.rows, 'row')}, {rows.reason} ({'; '.join(rows.first)})"


def _imported_bars(answer: Any) -> str:
    if answer.bars is None:
        return ""
    bars, added = (sum(getattr(each, name) for each in answer.bars.symbols) for name in ("bars", "added"))
    missing = answer.bars.report.missing
    return f"{bars:,} of {count_of(len(answer.bars.symbols), 'symbol')}, {added:,} of them new; {missing:,} missing"


def _log_changes(answer: Any) -> str:
    names = ("opens", "closes", "flips", "additions", "reductions", "held_at_start")
    return _counts({name: getattr(answer.summary, name) for name in names}) or "none"


def _diagnosis(answer: Any) -> str:
    checked = (
        f"{count_of(sum(answer.rows.values()), 'row')} of {count_of(len(answer.rows), 'table')} were derived again"
    )
    if answer.healthy:
        return f"Healthy: {checked}, and all are as stored."
    remedy = "they were repaired" if answer.repaired else "run with --repair to repair them"
    return f"Not healthy: {checked}, and {len(answer.findings)} differ; {remedy}."


def _intact(answer: Any) -> str:
    return f"Intact: {count_of(answer.rows, 'row')} match the {count_of(answer.links, 'link')} of the audit chain."


def _tampered(answer: Any) -> str:
    if answer.intact:
        return ""
    findings, rows = count_of(len(answer.findings), "finding"), count_of(answer.rows, "row")
    return f"Not intact: {findings} in {rows} and {count_of(answer.links, 'link')}."


def _trade_sentence(answer: Any) -> str:
    """A trade in one line."""
    trade = answer.trade
    price = "{trade.entry_price:price} to {trade.exit_price:price}" if trade.closed_at else "{trade.entry_price:price}"
    end = ", closed {trade.closed_at}" if trade.closed_at else ", open since {trade.opened_at}"
    result = fill(", net {trade.pnl:+,.2f}", answer) + fill(" ({trade.outcome})", answer)
    text = fill("{trade.direction} {trade.symbol} at " + price + end, answer) or fill(
        "{trade.direction} {trade.symbol}", answer
    )
    return text[0].upper() + text[1:] + result + "."


TRADE_VALUES = {
    **columns("strategy: {strategy_name} | mode | opened: {opened_at} | minutes held: {holding_minutes:.0f}"),
    **columns("size: {size:.6g} | stop: {stop_price:price} | risk: {risk:.2f} | fees: {fees:.2f}"),
    "best and worst": lambda trade: (
        fill("{mfe:+.2f} ({mfe_r:+.2f}R), {mae:+.2f} ({mae_r:+.2f}R)", trade) or fill("{mfe:+.2f}, {mae:+.2f}", trade)
    ),
    **columns("regime: {context.regime} | session: {context.session} | confidence: {confidence:.2f} | tags"),
    **columns("id: {id:id}"),
    "entry reason": Quoted("{entry.reason}", PASSAGE_TOKENS),
    "market": Quoted("{market_context}", PASSAGE_TOKENS),
    "exit reason": Quoted("{exit_reason}", PASSAGE_TOKENS),
    "reflection": Quoted("{reflection}", PASSAGE_TOKENS),
}
EPISODE_VALUES = {
    **columns("strategy: {strategy_name} | mode | price: {entry_price:price} | outcome | not judged: {not_judged}"),
    **columns("regime: {context.regime} | session: {context.session} | confidence: {confidence:.2f} | tags"),
    **columns("citations | id: {id:id}"),
    "reason": Quoted("{reason}", PASSAGE_TOKENS),
    "market": Quoted("{market_context}", PASSAGE_TOKENS),
}


def _read_sentence(answer: Any) -> str:
    """A trade, a call or an inaction in one line."""
    if answer.trade is not None:
        return _trade_sentence(answer)
    episode = answer.episode
    side = "" if episode.direction is None else f" {episode.direction}"
    if episode.kind == "inaction":
        often = "" if episode.count == 1 else f", {episode.count} times in a row for this reason, the last"
        return f"Deliberately not traded: {episode.symbol}{side}{often} at {text_of(episode.ended_at)}."
    judged = "judged" if episode.due_at is None else "to be judged"
    return f"Call of {text_of(episode.opened_at)}: {episode.symbol}{side}, {judged} at {text_of(episode.ended_at)}."


KEY_COLUMNS = columns("name | audience | scope | status | expires: {expires_at} | actor | id: {id:id}")

LAYOUTS: Mapping[str, tuple[Block, ...]] = {
    "CreatedKey": (
        Line("Created the key {key.name}. Its token is shown only now: {token}"),
        Values("key", KEY_COLUMNS),
    ),
    "KeyList": (_list("keys", "key", order="newest first"), Rows("keys", KEY_COLUMNS)),
    "RevokedKey": (_done("Revoked the key {key.name}."), Values("key", KEY_COLUMNS)),
    "OpenedAccount": (
        _done("Opened account {account.name} at {account.venue} ({account.currency}, {account.mode})."),
        Values("account", columns("name | venue | currency | mode | positions: {position_mode} | id: {id:id}")),
    ),
    "SavedInstrument": (_done("Saved {instrument.symbol}. {message}"), Rows("instrument", INSTRUMENTS)),
    "InstrumentList": (Line("{message}"), Rows("instruments", INSTRUMENTS)),
    "SavedStrategy": (
        _done("Saved {strategy.name}, version {strategy.version}."),
        Values("strategy", columns("thesis | rules | avoid | risk per trade: {risk_per_trade:.2%} | id: {id:id}")),
    ),
    "Deployed": (
        _done("Deployed {deployment.strategy_name} as {deployment.name} ({deployment.mode})."),
        Values("deployment", columns("name | strategy: {strategy_name} | version: {strategy_version} | id: {id:id}")),
    ),
    "StrategyList": (
        Line("{message}"),
        Rows(
            "strategies",
            {
                **columns("strategy: {name}"),
                "versions": lambda row: ", ".join(str(each.version) for each in row.versions) or "never saved",
                "deployments": lambda row: ", ".join(each.name for each in row.deployments),
                "thesis": lambda row: row.versions[0].thesis or "" if row.versions else "",
            },
        ),
    ),
    "AccountList": (
        Line("{message}"),
        Rows(
            "accounts",
            {
                **columns("account: {account.name} | venue: {account.venue} | currency: {account.currency}"),
                **columns("mode: {account.mode} | positions: {account.position_mode}"),
                "deployments": lambda row: ", ".join(each.name for each in row.deployments),
                **columns("id: {account.id:id}"),
            },
        ),
    ),
    "ComparedExits": (
        Line("{message}"),
        Values(
            "",
            {
                "as closed": lambda row: with_unit(row.actual_mean, "R", row.actual_interval),
                "plain stop and target": lambda row: with_unit(row.plain_mean, "R", row.plain_interval),
                "difference": lambda row: with_unit(row.difference, "R", row.difference_interval),
            },
        ),
    ),
    "StateHistory": (
        Line("{deployment}: {message}"),
        Rows(
            lambda answer: answer.account[-HISTORY_SHOWN:],
            columns(
                "at | >equity: {equity:.2f} | >drawdown: {drawdown:.1%} | ~>peak: {peak:.2f} |"
                " >risk appetite: {risk_appetite:.2f}"
            ),
            name="account",
        ),
        Rows(
            lambda answer: answer.strategy[-HISTORY_SHOWN:],
            columns("at | >confidence: {confidence:.2f} | >won in a row: {consecutive_wins}")
            | columns(">lost in a row: {consecutive_losses}"),
            name="strategy",
        ),
    ),
    "InstantList": (
        Line("{message}"),
        Rows(lambda answer: answer.instants[-HISTORY_SHOWN:], columns("at | changed: {kinds}"), name="instants"),
    ),
    "BarList": (
        Line("{message}"),
        Rows(
            lambda answer: answer.bars[-HISTORY_SHOWN:],
            columns("opened: {opened_at} | >open: {open:price} | >high: {high:price} | >low: {low:price}")
            | columns(">close: {close:price} | >volume: {volume:.6g}"),
            name="bars",
        ),
    ),
    "Deployments": (
        Line("{message}"),
        Rows("deployments", DEPLOYMENTS),
        Each("deployments", _about_deployment, name="about", most=FINDINGS_SHOWN),
        *_trade_rows(_recent_trades, "recent_trades", most=TRADES_SHOWN),
        Body(
            "deployments",
            lambda row: value_at(row, "lessons.lessons_text") or "",
            title=lambda row: f"{row.deployment.name}: {_lessons_line(row.lessons)}",
            name="lessons",
        ),
    ),
    "StrategyPerformance": (
        Line("{message}"),
        *PERFORMANCE,
        *_trade_rows(lambda answer: answer.recent_trades, "recent_trades", most=TRADES_SHOWN),
        Body("lessons", "{lessons_text}", title=_lessons_line),
    ),
    "UpcomingEvents": (
        Line("{message}"),
        Rows(
            "your_exposure",
            columns("symbol | side: {position_side} | >notional: {notional:.2f} | currency | >USD: {notional_usd:.2f}")
            | columns(">past events: {similar_events_back} | >median move: {median_abs_move:.2%}")
            | columns(">worst for you: {worst_move:+.2%} | missing | event: {event_id:id}"),
        ),
        Rows(
            "events",
            columns("when: {scheduled_at} | kind | title | symbols | >importance: {importance:.2f} | forecast")
            | columns("previous | event: {id:id}"),
        ),
    ),
    "ImportedEvents": (
        Line("{message}"),
        Values("", columns("first: {first_at} | last: {last_at}")),
        Each("notes", str),
    ),
    "StoredFact": (Line("{message}"), Values("fact", FACTS)),
    "FactList": (Line("{message}"), Rows("facts", FACTS)),
    "ErasedFact": (
        Line("Erased the text of the fact {fact_id:id}, and {prompts:count stored prompt} that contained it."),
        Each("notes", str),
    ),
    "ChatPrompt": (
        Line("The system prompt of a chat: {tokens:count token}."),
        Body("segments", "{text}", title="── {name}"),
    ),
    "BrokenDown": (
        Line("{message}"),
        Rows("groups", {"group": "{label}", **FIGURES, **columns(">profit factor: {figures.profit_factor:.2f}")}),
    ),
    "EquityHistory": (
        Line("{message}"),
        Line(_returns_drawdown),
        Rows(
            _last_days,
            columns("day | >start: {start:.2f} | >net: {net:+.2f} | >transfers: {transfers:+.2f} | >end: {end:.2f}")
            | columns(">recorded: {recorded:.2f}"),
            name="days",
        ),
    ),
    "RememberedTrade": (Line("{message}"), Rows("trade", TRADES), *LEARNED),
    "AnnotatedTrade": (_done("The trade was annotated."), Rows("trade", TRADES), *LEARNED),
    "RememberedInaction": (Line("{message}"), Values("", columns("in a row: {count} | id: {episode_id:id}"))),
    "ImportedTrades": (
        Line("{message}"),
        Values(
            "",
            {
                **columns("rows | added | already stored: {replayed}"),
                "closed": "{first_closed_at} to {last_closed_at}",
                "learned": "{learned.evidence:count piece} of evidence, {learned.habits:count habit}, "
                "{learned.moods:count mood}",
            },
        ),
        Each("learned.induced", "new belief: {proposition}", most=FINDINGS_SHOWN),
        Each("left_out", _left_out_rows, most=FINDINGS_SHOWN),
        Rows(
            lambda answer: answer.understood if answer.dry_run else (),
            columns("row | symbol | side: {direction} | >entry: {entry_price:price} | >exit: {exit_price:price}")
            | columns(">size | >net: {pnl:+.2f} | closed: {closed_at} | strategy: {strategy_name} | mode"),
            name="understood",
        ),
        Each("notes", str, most=FINDINGS_SHOWN),
    ),
    "TradePage": (Line("{message}"), *_trade_rows(lambda answer: answer.trades, "trades", most=15), MORE),
    "TradeRead": (
        Line(_read_sentence),
        Values("trade", TRADE_VALUES),
        Values("episode", EPISODE_VALUES, unless="trade"),
        Values("mark", {"last mark": "{position.mark:price} at {at}", "stop now": "{position.stop_price:price}"}),
        Values("so_far", RESULT_SO_FAR),
    ),
    "TradeReflection": (
        Line(_trade_sentence),
        Values("trade", TRADE_VALUES),
        Values(
            "",
            {
                **columns("times recalled: {retrieved} | strength: {strength:.2f} | lessons at entry: {lessons_hash}"),
                **columns("citations"),
            },
        ),
        Each("beliefs", "belief: {proposition} (credibility {credibility:.2f}, n={n})"),
        Each("plans", lambda plan: f"plan: {plan_with_reason(plan)}"),
        Values("so_far", RESULT_SO_FAR),
        Rows(
            "marks",
            columns("at | mark: {position.mark:price} | size: {position.size:g} | stop: {position.stop_price:price}"),
        ),
    ),
    "ArchivedEpisode": (
        Line(
            lambda answer: (
                REPLAYED
                if answer.replayed
                else f"The episode {short_id(answer.episode.id)} is "
                + ("archived: no recall returns it." if answer.episode.archived_at else "no longer archived.")
            )
        ),
    ),
    "RecordedDecision": (
        Line("{message}"),
        Values(
            "episode",
            columns(
                "symbol | side: {direction} | strategy: {strategy_name} | price: {entry_price:price} | "
                "judged at: {due_at} | id: {id:id}"
            ),
        ),
    ),
    "RecordedRun": (Line("{message}"), Values("run", RUN_VALUES)),
    "RunPage": (
        Line(lambda answer: answer.message or _listed_runs(answer)),
        Rows("runs", RUNS),
        MORE,
    ),
    "RunDetail": (
        Line("{message}"),
        Values("run", {**RUN_VALUES, **columns("does not fit: {misfit}")}),
        *RUN_TEXTS,
        Rows("tick", DECISIONS),
        Each("re_examinations", "re-examined by {}", most=FINDINGS_SHOWN),
    ),
    "StartedRun": (Line("{message}"), Values("run", RUN_VALUES), ANSWER),
    "PreparedReExamination": (
        Line("The prompt that re-examines the {card_type} of run {parent_id:id}."),
        Body("", "{prompt}", title="── prompt"),
    ),
    "ConvictionHistory": (
        Line(
            lambda answer: answer.message or f"{count_of(len(answer.re_examinations), 're-examination')}, oldest first."
        ),
        Rows(
            "re_examinations",
            columns("at | status | >conviction: {conviction_score} | advice: {suggested_action} | notes | error")
            | columns("id: {run_id:id}"),
        ),
    ),
    "SessionStatus": (
        Line("{message}"),
        Values(
            "",
            columns(
                "deployment | context | runs since reset: {runs_since_reset} | since | last written: {last_advanced_at}"
            ),
        ),
    ),
    "MyDecisions": (Line("{message}"), Each("lines", "{}")),
    "ResolvedDecisions": (Line("{message}"), Line("Released: {released:count interrupted run}.", when="released")),
    "SettledDecision": (
        Line("{message}"),
        Values("outcome", columns("status | entry: {fill:price} | exit: {exit_price:price} | R: {outcome_r:+.2f}")),
    ),
    "ConfiguredDeployment": (
        Line("{message}"),
        Values(
            "settings",
            columns("runner | model | schedule | card type: {card_type} | review of decisions: {review_decisions}")
            | columns("default prompt: {default_prompt} | seconds: {timeout_seconds} | tools")
            | columns("stopped: {stopped_at} | why: {stop_reason}"),
        ),
    ),
    "StoppedDeployment": (Line("{message}"), Line("{reason}")),
    "SavedCardType": (
        _done("Saved the card type {card_type.name}."),
        Rows("card_type.fields", columns("name | type | required | role | choices"), name="fields"),
    ),
    "DecisionPage": (
        _list("decisions", "decision", order="newest first"),
        Rows("decisions", DECISIONS),
        MORE,
    ),
    "DecisionDetail": (
        Rows("decision", DECISIONS),
        Rows("decision.proposals", PROPOSED, name="orders"),
        Line(_text_lengths, "dim"),
    ),
    "ClaimedTick": (
        Line("Claimed the tick of {at} ({sequence}) for {holder} until {expires_at}."),
        Line("A tick was interrupted: close it first, then claim again.", when="unfinished"),
    ),
    "RecordedIntent": (Line("Recorded. The orders of the tick of {at} may be submitted until {expires_at}."),),
    "ReleasedClaim": (
        Line(lambda answer: "Released the account." if answer.released else "The account was not claimed."),
        Line("The intent of an interrupted tick was given up.", when="intent"),
    ),
    "VoidedTick": (Line("Voided the tick of {decision.at}."), Rows("decision", DECISIONS)),
    "ClosedTick": (
        Line(
            lambda answer: (
                REPLAYED
                if answer.replayed
                else fill("Recorded the tick of {decision.at}: {decision.verdict.kind}; ", answer)
                + f"{len(answer.opened)} opened, {len(answer.closed)} closed."
            )
        ),
        Rows("decision", DECISIONS),
        Line("opened", "bold", when="opened"),
        Rows("opened", TRADES),
        Line("closed", "bold", when="closed"),
        Rows("closed", TRADES),
        Each("contradictions", "contradiction between plans: {reason}"),
        Each("notes", str, most=FINDINGS_SHOWN),
        Line("reflection {reflection.came}: {reflection.reason}"),
    ),
    "OpenedTick": (*PROMPT, Line("decision id {decision_id}")),
    "ContextPreview": (
        PROMPT[0],
        Line(
            lambda answer: (
                "It is a holdout day: memory_arm=shown previews the prompt of the other days."
                if answer.memory_arm == "withheld"
                else ""
            )
        ),
        *PROMPT[1:],
    ),
    "RecentActivity": (
        Line(lambda answer: "Recent activity:" if answer.text else "No recent activity."),
        Body("text"),
    ),
    "Backfilled": (
        _done("Replayed {decisions:count decision}: {opened:count trade} opened, {closed} closed."),
        Values("", columns("account: {account_id:id}")),
    ),
    "Recall": (
        Line("{message}"),
        Line("Usually: {base_rate.sentence}", "bold"),
        Each("plans", lambda plan: f"Plan that applies: {plan_with_reason(plan)}", most=5),
        Each(
            "beliefs",
            "Belief: {belief.proposition} (credibility {posterior.credibility:.2f}, n={posterior.n})",
            most=5,
        ),
        Line(
            "Mood: confidence {mood.confidence:.2f}, risk appetite {mood.risk_appetite:.2f}, "
            "{mood.consecutive_losses:count loss} in a row, drawdown {mood.drawdown:.1%}"
        ),
        Rows(_recalled, MEMORIES, name="memories"),
        Rows("inactions", INACTIONS),
        Handle("recall_hash", "recall", when="candidates", name="recall"),
        MORE,
    ),
    "RecallExplained": (
        Line("{explanation.sentence}."),
        Line("  ".join(f"{name} {{explanation.factors.{name}:.2f}}" for name in FACTORS), "dim"),
        Rows(
            "explanation.fields",
            columns(
                "field: {name} | query: {query_value} | memory: {memory_value} | >closeness: {closeness:.2f} | "
                ">adds: {contribution:.2f}"
            ),
        ),
        Each(
            "explanation.higher",
            lambda better: (
                f"With the best possible {better.factor}{f' ({better.field})' if better.field else ''}"
                f" the memory would rank {better.rank}, with a score of {better.score:.3f}."
            ),
            most=3,
        ),
    ),
    "DecisionRecalls": (
        _list("recalls", "recall", empty="No recalls are stored with this decision."),
        Rows(
            "recalls",
            columns("symbol: {result.asked.symbol} | recorded: {known_at} | >candidates: {result.candidates}"),
        ),
        Rows("episodes", columns("episode: {id} | symbol | direction | ended: {ended_at} | >pnl: {pnl:+.2f}")),
        Body("recalls", "{recall}", title="recall", name="handles"),
    ),
    "SizeAdvice": (
        Line("{message}"),
        Line("{size.answer}. {size.reason}"),
        Values("size", columns("kind | recommended: {recommended:.2%}")),
        Line(
            "Results have been falling since {since:%Y-%m-%d}: {left_out:count earlier trade} left out.",
            "red",
        ),
        Rows(
            "size.levels",
            columns(
                "level: {name} | value | >n | >difference: {difference:+.2f}R | >error: ± {error:.2g} | "
                ">weight: {shrinkage:.0%} | >effect: {effect:+.2f}R"
            ),
        ),
    ),
    "AgentState": (
        Line("{message}"),
        Rows("each", MOODS),
        Values(
            "mood",
            {
                **columns("confidence: {confidence:.2f} | risk appetite: {risk_appetite:.2f}"),
                **columns("drawdown state: {drawdown_state:.2f} | momentum bias: {momentum_bias:+.2f}"),
                "streak": "{consecutive_wins} won, {consecutive_losses} lost in a row",
                "equity": "{equity:,.2f} of a peak of {peak:,.2f} ({drawdown:.1%} down)",
            },
            unless="each",
        ),
    ),
    "BehavioralAnalysis": (
        Line(lambda answer: answer.message or f"Habits from {answer.mode} trades."),
        Values(
            "strategies",
            {
                "strategy": "{strategy_name}",
                "drift in all symbols together": _drift,
                "smallest drift that would show": _detectable,
            },
        ),
        Values(
            "behaviors",
            {
                "strategy": "{strategy_name}",
                "symbol": "{symbol}",
                "win rate": _figure("win_rate", ".0%"),
                "win rate before": _figure("expected_win_rate", ".0%"),
                "hours held": _figure("hold_seconds", ".2f", 1 / 3600),
                "says": lambda behavior: " ".join(behavior.sentences),
                "best result kept": _figure("captured_share", ".0%"),
                "after the exit (−1 went on, +1 turned)": _figure("exit_timing"),
                "entry timing (share gone against first)": _figure("entry_timing"),
                "variation of size": _figure("size_variation"),
                "size against recommended": _figure("size_against_recommended"),
                "disposition effect": _figure("disposition_effect"),
                "size after a loss": _figure("loss_aversion"),
                "recency bias": _figure("recency_bias"),
                "drift": _drift,
                "smallest drift that would show": _detectable,
            },
        ),
    ),
    "RecordedEquity": (
        _done("Recorded an equity of {point.equity:,.2f} at {point.at}."),
        Values("point", columns("transfer: {transfer:+.2f} | account: {account_id:id}")),
    ),
    "BeliefList": (
        Line("{message}"),
        Rows("beliefs", BELIEFS),
    ),
    "AddedBelief": (
        Line("{message}"),
        _done("Added the belief: {belief.belief.proposition}."),
        Rows("belief", BELIEFS),
    ),
    "RetiredBelief": (_done("Retired the belief: {belief.belief.proposition}."), Rows("belief", BELIEFS)),
    "PlanList": (Line("{message}"), Rows("plans", PLANS)),
    "CreatedPlan": (
        _done("Created the plan: {message}"),
        Each("notes", str),
        Values(
            "plan",
            {
                "if": "{condition}",
                "then": lambda plan: action_in_words(plan.action),
                "ends": lambda plan: end_in_words(plan).removeprefix("until "),
                **columns("reason: {reasoning} | priority: {priority:.2f} | id: {id:id}"),
            },
        ),
    ),
    "CheckedPlans": (
        Line("{message}"),
        Rows("applying", PLANS),
        Each("rising", "now applies, and did not before: {:id}"),
        Each("expired", "expired: {:id}"),
        Each("figures", "plan {plan_id:id}: {text} now"),
        Each("contradictions", "contradiction: {reason}"),
        Each("missing", "plan {plan_id:id} cannot be checked without {fields}"),
    ),
    "CancelledPlan": (_done("Cancelled the plan."), Rows("plan", PLANS)),
    "SettledPlan": (
        _done(
            lambda answer: f"Settled the plan as {'followed' if answer.settlement.followed else 'not followed'}.",
        ),
        Rows("plan", PLANS),
        Values("settlement", columns("trades without outcome: {without_outcome}")),
        Rows("settlement.results", {**columns(">n"), ">mean": _mean_outcome, **columns("helped")}),
    ),
    "ReflectionResult": (
        Line(_reflection_headline, "bold"),
        Each("bullets", lambda bullet: f"{bullet.slot.replace('_', ' ')}: {bullet.text}"),
        Each("dropped", "dropped: {text} ({reason})", "dim"),
        Each("proposals", "proposes a {kind}: {statement} ({id:id})"),
        Line(_evidence_headline, "dim"),
        Line(lambda answer: _unless_said(answer.evidence.missing, answer.reason), "dim"),
        Rows(_clearest_groups, GROUPS, name="groups"),
        Line(_further_groups, "dim"),
    ),
    "ActiveLessons": (
        Line("{message}"),
        Body("text"),
        Line("What you wrote about your last trades:", when="reflections"),
        Rows(
            "reflections",
            {
                **columns("closed: {closed_at:%Y-%m-%d} | symbol | side: {direction} | >outcome | id: {id:id}"),
                "reflection": Quoted("{reflection}", WORDS_TOKENS),
                "setup": Quoted(lambda trade: _setup(trade.entry.reason, trade.market_context), CLAUSE_TOKENS),
            },
        ),
    ),
    "LessonList": (
        Line(
            lambda answer: (
                f"{count_of(len(answer.notes), 'revision')} of lessons from "
                f"{count_of(len(answer.attempts), 'reflection')}."
                if answer.notes or answer.attempts
                else "No lessons were known at that time."
            )
        ),
        Rows("notes", LESSONS, name="lessons"),
        Rows("attempts", ATTEMPTS),
        Line(_watch_lists),
    ),
    "ComparedLessons": (
        Line("{message}"),
        Line("{comparison.caution}"),
        Rows(
            _revisions,
            {
                **columns("revision: {label} | >trades: {row.trades} | >days: {row.days}"),
                ">mean": lambda each: with_unit(each.row.mean, each.unit),
                **columns(">net: {row.mean_pnl:+,.2f} | >gross $: {row.mean_pnl_usd:+,.2f} | >won: {row.win_rate:.0%}"),
                ">difference (90%)": lambda each: with_unit(each.row.difference, each.unit, each.row.interval),
            },
            name="revisions",
        ),
    ),
    "MemoryHelp": (
        Line("{message}"),
        Line("{help.sentence}", "bold"),
        Rows(
            _arms,
            {
                **columns("memory: {label} | >days: {row.days} | >trades: {row.trades}"),
                ">a day": lambda each: with_unit(each.row.mean_day, each.unit),
                ">a trade": lambda each: with_unit(each.row.mean, each.unit),
                **columns(">money a day: {row.money_day:+,.2f}"),
            },
            name="arms",
        ),
        Line(_money_help),
        Line("{help.detectable.sentence}", "dim"),
    ),
    "PromotedLessons": (
        _done("New deployments of this strategy start with these lessons."),
        Body("note.lessons_text"),
        Each("cut", "cut: {}", "red"),
    ),
    "PeriodReview": (
        Line(
            "The {period} review of {deployment}, {start} to {end}: {result.trades:count trade}, "
            "net {result.pnl:+,.2f}.",
            for_models=True,
        ),
        Body("markdown", markdown=True),
    ),
    "ProposalList": (
        _list("proposals", "proposal"),
        Rows(
            "proposals",
            columns(
                "status: {proposal.status} | kind: {proposal.kind} | still holds: {still_holds} | "
                "statement: {proposal.statement} | id: {proposal.id:id}"
            ),
        ),
    ),
    "DecidedProposal": (
        Line(
            lambda answer: (
                fill("{status}, as {kind} {made_id:id}: {statement}", answer.proposal)
                or fill("{status}: {statement}", answer.proposal)
            )
        ),
    ),
    "ImportedBars": (
        Line(
            lambda answer: (
                f"Imported {count_of(sum(each.bars for each in answer.symbols), 'bar')} of "
                f"{count_of(len(answer.symbols), 'symbol')}, "
                f"{sum(each.added for each in answer.symbols):,} of them new."
            )
        ),
        Rows("symbols", columns("symbol | >bars | >new: {added} | first: {first_opened_at} | last: {last_opened_at}")),
        Values(
            "report",
            {
                **columns("rows | duplicates | out of order: {out_of_order} | other symbols: {other_symbols}"),
                **columns("overlaps | gaps: {gap_count} | missing bars: {missing} | closed sessions: {session_count}"),
            },
        ),
        Line("{report.counting}", "dim"),
        Each("report.sessions", "no bars in the session of {symbol} at {opens_at} ({bars})", most=FINDINGS_SHOWN),
        Each(
            "report.gaps", "gap: {missing:count bar} of {symbol} missing from {after} to {before}", most=FINDINGS_SHOWN
        ),
    ),
    "RecordedBars": (Line("Recorded {bars:count bar}, {added} of them new."),),
    "ImportedFills": (
        Line("{message}"),
        Values(
            "",
            {
                "format": "{format}",
                "deployment": "{deployment.name} ({deployment.mode})",
                "rows": "{rows:,}, of them {fills:count fill}, {added} new",
                "time": "{first_at} to {last_at}",
                "trades": "{trades.opened} opened, {trades.closed} closed, {trades.open_positions} open",
                "results": _compared_results,
                "instruments": lambda answer: ", ".join(answer.instruments),
            },
        ),
        Each("left_out", _left_out_rows, most=FINDINGS_SHOWN),
        Each(
            "trades.comparison.differences",
            "{symbol} closed {closed_at}: {ours:.2f}, in the file {theirs:.2f}",
            most=FINDINGS_SHOWN,
        ),
        Rows(
            lambda answer: answer.understood if answer.dry_run else (),
            columns("row | at | kind | symbol | >quantity | >price | >fee | fee in: {fee_currency}"),
            name="understood",
        ),
        Each("notes", str, most=FINDINGS_SHOWN),
    ),
    "ImportedPositions": (
        _done("Imported the position log as {deployment.name}."),
        Values(
            "",
            {
                "deployment": "{deployment.name} ({deployment.mode})",
                "rows": _imported_rows,
                "trades": "{opened} opened, {closed} closed",
                "changes": _log_changes,
                "cash": "{cash.reconciled} of {cash.checked} changes with a bar were paid at its open",
                "bars": _imported_bars,
                "contradictions": lambda answer: _counts(answer.summary.dirt) or "none",
            },
        ),
        Each("dirt", "{message}", most=FINDINGS_SHOWN),
        Line(
            lambda answer: (
                f"… and more: detail full lists the first {len(answer.dirt)}"
                if len(answer.dirt) > FINDINGS_SHOWN
                else ""
            ),
            "dim",
        ),
    ),
    "Migrated": (
        Line(
            "Migrated {trades:count trade} and {beliefs:count belief}; {known_trades} and {known_beliefs} were known."
        ),
        Values("report", {"rows": lambda report: _counts(report.rows), "tables ignored": "{tables_ignored}"}),
        Rows("report.left_out", columns("table | row | reason")),
        Rows("report.notes", columns("table | row | reason"), name="remarks"),
    ),
    "InitialFiles": (
        Line(
            lambda files: f"Created {count_of(len(files.created), 'file')}; {len(files.existing)} were there already."
        ),
        Values("", columns("created: {created} | already there: {existing}")),
    ),
    "ReindexResult": (
        Line("The index has {documents:count document} in {chunks:count chunk}; read {read:count file}."),
        Values("", columns("changed | removed | embedded | to be embedded: {waiting} | generation")),
        SKIPPED,
    ),
    "SearchAnswer": (
        Line(
            lambda answer: (
                answer.message or f"{count_of(len(answer.citations), 'passage')}, the best first; quotes are data."
            )
        ),
        Excerpts(
            "citations",
            {
                "place": "{place}",
                "heading": lambda citation: " > ".join(citation.heading),
                "score": "{score:.2f}",
            },
            _snippet,
            "words",
        ),
    ),
    "Passage": (Line("{path}, lines {start_line} to {end_line} of {lines}:", "bold"), Body("text")),
    "StoreBackup": (
        Line("The copy at {path} has {rows:count row} of {owners:count owner}; head {head}."),
        Each("notes", str, most=FINDINGS_SHOWN),
    ),
    "ErasedOwner": (
        Line("Erased {rows:count row} and {links:count link} of {owner}."),
        Each("notes", str, most=FINDINGS_SHOWN),
    ),
    "ThinnedHistory": (
        Line(
            lambda answer: fill(
                ("Would remove " if answer.dry_run else "Removed ")
                + "the texts of {prompts:count prompt} and the records of {recalls:count recall} from before {before}.",
                answer,
            )
        ),
    ),
    "CompactedStore": (
        Line(lambda answer: "The store was compacted." if answer.compacted else "The store was not compacted."),
        Each("notes", str, most=FINDINGS_SHOWN),
    ),
    "StoredImports": (Line("{message}"), Rows("imports", columns("at | operation | actor | >link"))),
    "StoreStatus": (
        Line("{message}"),
        Rows(
            "modes",
            columns("mode | >trades | >decisions | last trade: {last_trade_at} | last tick: {last_tick_at}"),
        ),
        Values(
            "",
            columns(
                "documents | indexed: {indexed_at} | audit head: {head} | last command: {last_command_at} | "
                "schema: {schema_revision}"
            ),
        ),
    ),
    "IndexHealth": (
        Line(
            lambda answer: (
                answer.message or fill("Healthy: {documents:count document} in {chunks:count chunk}.", answer)
            )
        ),
        Values(
            "",
            columns(
                "search: {slot} | last read: {last_sync} | documents | chunks | embedding model: {embedding_model} | "
                "embedded | compared in: {compared_in}"
            ),
        ),
        SKIPPED,
    ),
    "WrittenNote": (
        _done("Wrote lines {start_line} to {end_line} of {path}."),
        Values("", columns("path | id: {id:id}")),
    ),
    "ProposedEdit": (
        _done("Proposed an edit of {edit.path}; the owner decides on it."),
        Rows("edit", EDITS),
        Body("edit.diff"),
    ),
    "DecidedEdit": (Line("The edit of {edit.path} is {edit.status}."), Rows("edit", EDITS), Body("edit.diff")),
    "EditList": (_list("edits", "edit"), Rows("edits", EDITS)),
    "Diagnosis": (
        Line(_diagnosis),
        Rows("findings", FINDINGS),
        Each("remarks", "note: {}", "dim"),
    ),
    "Verification": (
        Line(_intact, "green", when="intact"),
        Line(_tampered, "red"),
        Rows("findings", FINDINGS),
        Line("head {head}", "dim"),
    ),
    "RecordedVerification": (
        Line(lambda answer: _intact(answer.verification), "green", when="passed"),
        Line(lambda answer: _tampered(answer.verification), "red"),
        Rows("verification.findings", FINDINGS, name="findings"),
        Line("{record.note}"),
        Line("head {record.head}", "dim"),
    ),
    "LastVerification": (
        Line("{message}"),
        Values(
            "",
            columns("links since: {links_since} | last of everything: {last_of_everything.known_at} | head"),
        ),
    ),
    "ExportedData": (
        Line(lambda answer: f"{_rows_in_tables(answer)} of the owner {answer.owner} exported to {answer.path}."),
        Each("notes", "note: {}", "dim"),
        Line("head {head}", "dim"),
    ),
    "ImportedData": (
        Line(
            lambda answer: (
                REPLAYED
                if answer.replayed
                else f"{_rows_in_tables(answer)} of the owner {answer.owner} imported from {answer.path}."
            )
        ),
        Line("All rows agree with the audit chain.", "green", when="intact"),
        Each("notes", "note: {}", "dim"),
        Line("head {head}", "dim"),
    ),
    "AuditExport": (
        Line(
            lambda answer: (
                f"{count_of(len(answer.links), 'link')} of the audit chain, without the hashes of the rows that each "
                'changed: detail="full" has them, and after=<sequence> the links after one.'
            ),
            for_models=True,
        ),
        Handle("head", "head"),
        Rows("links", LINKS, for_models=True),
        Body("", _chain, for_people=True),
    ),
}
"""Layouts by result type; a type that is not listed is shown by the default of `blocks.py`."""
