"""How the answers of single operations are printed: which lines and columns, in which order, under which heading."""

import json
import re
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from backsight.surfaces.tables import (
    REPLAYED,
    Block,
    Each,
    Line,
    Rows,
    Template,
    Values,
    columns,
    fill,
    show_block,
    show_record,
    table_of,
    text_of,
    with_unit,
)

FACTORS = ("Q", "Sim", "Rec", "Conf", "Aff")
LINE_WIDTH = 140
REASON_WIDTH = 80
SNIPPET_LINES = 6
FINDINGS_SHOWN = 10


def _mean(value: str, interval: str = "", unit: str | None = "row") -> Template:
    """A cell with a mean, its unit and half the width of its interval; by default the row names the unit."""
    return lambda row: with_unit(
        getattr(row, value), row.unit if unit == "row" else unit, getattr(row, interval) if interval else None
    )


def _figure(name: str, spec: str = "+.2f", scale: float = 1.0) -> Template:
    """A habit with its sample size; a dash if the sample is too small."""

    def cell(behavior: Any) -> str:
        figure = getattr(behavior.habits, name)
        value = "–" if figure.value is None else format(figure.value * scale, spec)
        return f"{value} (n={figure.n})"

    return cell


def _short(text: str | None) -> str:
    text = text or ""
    return text if len(text) <= REASON_WIDTH else text[: REASON_WIDTH - 1] + "…"


def _mean_outcome(outcome: Any) -> str:
    return with_unit(outcome.mean, outcome.unit, None if outcome.low is None else (outcome.low, outcome.high))


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


TRADES = {
    "opened": lambda trade: "" if trade.closed_at else text_of(trade.opened_at),
    **columns("closed: {closed_at} | symbol | direction | strategy: {strategy_name}"),
    **columns(">entry: {entry_price} | >exit: {exit_price}"),
    ">size": lambda trade: "" if trade.closed_at else text_of(trade.open_size),
    **columns(">net: {pnl:+,.2f} | >outcome | id"),
}
DECISIONS = {
    "tick": "{at}",
    "verdict": lambda decision: " ".join(filter(None, (decision.verdict.kind, decision.verdict.rule))),
    **columns("symbol | memory: {memory_arm} | >equity: {equity:,.2f}"),
    "reason": lambda decision: _short(decision.reason or decision.verdict.detail),
}
BELIEFS = {
    **columns(">credibility: {posterior.credibility:.2f}"),
    **columns(">win rate (90 %): {posterior.win_rate:.0%} ({win_rate_low:.0%} to {win_rate_high:.0%})"),
    "claim": lambda row: _claim(row.belief),
    **columns(">n: {posterior.n}"),
    ">mean outcome": lambda row: ", ".join(map(_mean_outcome, row.outcomes)),
    ">strength": "{strength:.2f}",
    "status": lambda row: (
        fill("retired {belief.retired_at:%Y-%m-%d}", row) or ("worth testing" if row.worth_testing else "")
    ),
    **columns("belief: {belief.proposition} | id: {belief.id}"),
}
PLANS = {
    **columns("status | >fired: {times_fired} | expires: {plan.expires_at:%Y-%m-%d} | ended: {ended_at:%Y-%m-%d}"),
    "if": "{plan.condition}",
    "then": lambda row: " ".join(
        filter(None, (row.plan.action.kind, row.plan.action.parameter, text_of(row.plan.action.magnitude)))
    ),
    **columns("reason: {plan.reasoning} | id: {plan.id}"),
}
MEMORIES = {
    **columns(">score: {score:.3f}"),
    **{f">{name}": f"{{factors.{name}:.2f}}" for name in FACTORS},
    ">Period": lambda memory: "" if memory.factors.Period == 1.0 else f"{memory.factors.Period:.2f}",
    **columns("closed: {episode.ended_at:%Y-%m-%d} | direction: {episode.direction}"),
    **columns("regime: {episode.context.regime} | memory: {sentence}"),
}
GROUPS = {
    "group": lambda group: group.label + (" (share of the best price kept)" if group.measure == "captured" else ""),
    **columns(">n | >days"),
    ">mean (90 %)": _mean("mean", "interval"),
    ">rest": _mean("rest_mean"),
    ">difference": _mean("difference", "difference_interval"),
    "result": lambda group: "lesson" if group.missing is None else group.missing,
}
DEPLOYMENTS = {
    "deployment": "{deployment.name}",
    "strategy": lambda row: (
        fill("{deployment.strategy_name} v{deployment.strategy_version}", row) or row.deployment.strategy_name
    ),
    **columns("mode: {deployment.mode} | >trades: {tally.trades} | >won: {tally.wins} | >net: {tally.pnl:+,.2f}"),
    "last close": "{tally.last_closed_at}",
}
LESSONS = {
    "revision": "{content_hash}",
    "status": lambda note: note.status + ("" if note.deployment_id else " (strategy)"),
    **columns("written: {generated_at} | author | >trades: {trades_considered}"),
    "lessons": lambda note: _first_lesson(note.bullets),
}
ATTEMPTS = {
    **columns("attempt: {at} | result: {came}"),
    "author": lambda attempt: attempt.model_used or attempt.author,
    **columns(">trades: {closed} | reason"),
}
EDITS = columns("status | proposed: {known_at} | agent | run: {run_id} | path | reason | id")
FINDINGS = columns("kind | table | key | detail")
EDIT: tuple[Block, ...] = (Rows("edit", EDITS), Line("{edit.diff}"))
PROMPT: tuple[Block, ...] = (
    Line("SYSTEM", "bold"),
    Each("system", "── {name}\n{text}"),
    Line("MESSAGE", "bold"),
    Each("segments", "── {name}\n{text}"),
    Rows("tokens", columns("segment: {name} | >tokens")),
    Each("cuts", lambda cut: f"{cut.name} was cut {'entirely' if cut.whole else f'by {cut.rows} rows'}", "yellow"),
    Line("{total_tokens} tokens, {memory_tokens} of them memory (memory {memory_arm})", "bold"),
)
DECIDED: tuple[Block, ...] = (
    Line(lambda answer: fill("{status}, as {kind} {made_id}: {statement}", answer.proposal), when="proposal.made_id"),
    Line(lambda answer: "" if answer.proposal.made_id else fill("{status}: {statement}", answer.proposal)),
)


def _citations(to: Console, answer: Any) -> None:
    """Each passage with its file, lines, headings and score; the words of the query are highlighted."""
    for citation in answer.citations:
        headings = f"  {' > '.join(citation.heading)}" if citation.heading else ""
        to.print(Text.assemble((citation.place, "bold"), headings, (f"  {citation.score:.2f}", "cyan")))
        snippet = Text("\n".join(_snippet_lines(citation.snippet, answer.words)))
        for word in answer.words:
            snippet.highlight_regex(rf"(?i)\b{re.escape(word)}\w*", "bold yellow")
        to.print(Padding(snippet, (0, 0, 1, 4)))


def _snippet_lines(snippet: str, words: tuple[str, ...]) -> list[str]:
    """The lines around the first line that contains a word of the query."""
    lines = [line[:LINE_WIDTH] for line in snippet.splitlines() if line.strip()]
    matches = (index for index, line in enumerate(lines) if any(word in line.lower() for word in words))
    start = max(0, next(matches, 0) - 1)
    return lines[start : start + SNIPPET_LINES]


def _markdown(to: Console, answer: Any) -> None:
    """A review: rendered on a terminal, as Markdown in a pipe."""
    if to.is_terminal:
        from rich.markdown import Markdown

        to.print(Markdown(answer.markdown))
    else:
        to.out(answer.markdown, highlight=False, end="")


def _json_lines(to: Console, answer: Any) -> None:
    """The audit chain as JSON Lines; the last line is its head."""
    from backsight.memory import OPERATIONS

    export = OPERATIONS["export_audit"].as_json(answer)
    for link in export["links"]:
        to.out(json.dumps(link, ensure_ascii=False), highlight=False)
    to.out(json.dumps({"head": export["head"]}), highlight=False)


def _reflection_headline(answer: Any) -> str:
    prefix, suffix = "would be " if answer.dry_run else "", " (already known)" if answer.replayed else ""
    return f"{prefix}{answer.came}{suffix}: {answer.reason}"


def _evidence_headline(answer: Any) -> str:
    evidence = answer.evidence
    tested = f"tested at level {evidence.level:.4f}" if evidence.level else "not tested now"
    trades = f"{evidence.considered} of {evidence.closed} closed trades on {evidence.days} days"
    return f"{trades}, {tested}; next test at {evidence.next_test_at} trades"


def _drift(behavior: Any) -> str:
    alarms = [f"{each.series} {each.turn} since {each.since:%Y-%m-%d}" for each in behavior.drift if each.turn]
    return ", ".join(alarms) or "none"


def _imported_rows(answer: Any) -> str:
    rows = "{summary.rows} at {summary.instants} instants, {first_at} to {last_at}"
    return fill(rows if answer.added == answer.summary.rows else rows + ", {added} of them new", answer)


def _imported_bars(answer: Any) -> str:
    if answer.bars is None:
        return ""
    bars, added = (sum(getattr(each, name) for each in answer.bars.symbols) for name in ("bars", "added"))
    missing = answer.bars.report.missing
    return f"{bars:,} of {len(answer.bars.symbols)} symbols, {added:,} of them new; {missing:,} missing"


def _log_changes(answer: Any) -> str:
    names = ("opens", "closes", "flips", "additions", "reductions", "held_at_start")
    return _counts({name: getattr(answer.summary, name) for name in names}) or "none"


def _diagnosis(answer: Any) -> str:
    checked = f"{sum(answer.rows.values()):,} rows of {len(answer.rows)} tables were derived again"
    if answer.healthy:
        return f"Healthy: {checked}, and all are as stored."
    remedy = "they were repaired" if answer.repaired else "run with --repair true to repair them"
    return f"Not healthy: {checked}, and {len(answer.findings)} differ; {remedy}."


def _tampered(answer: Any) -> str:
    count = len(answer.findings)
    return "" if answer.intact else fill(f"Not intact: {count} findings in {{rows}} rows and {{links}} links.", answer)


def _revisions(to: Console, answer: Any) -> None:
    """Each revision of the lessons beside trades without lessons."""
    comparison = answer.comparison
    cells = {
        "revision": lambda revision: revision.lessons_hash or "none",
        **columns(">trades | >days"),
        ">mean": _mean("mean", unit=comparison.unit),
        **columns(">net: {mean_pnl:+,.2f} | >gross $: {mean_pnl_usd:+,.2f} | >won: {win_rate:.0%}"),
        ">difference (90 %)": _mean("difference", "interval", unit=comparison.unit),
    }
    to.print(table_of(comparison.revisions, cells))


def _arms(to: Console, answer: Any) -> None:
    """Trades with memory shown beside trades with memory withheld."""
    result = answer.help
    cells = {
        "memory": lambda arm: "shown" if arm is result.shown else "withheld",
        **columns(">trades | >days"),
        ">mean": _mean("mean", unit=result.unit),
    }
    to.print(table_of((result.shown, result.withheld), cells))


REPLAY = Line(REPLAYED, when="replayed")
MORE = Line("More: --cursor {next_cursor}", "dim")
LAYOUTS: Mapping[str, tuple[Block, ...]] = {
    "remember_trade": (
        Line("{message}"),
        Rows("trade", TRADES),
        Line(
            "mood: confidence {learned.mood.confidence:.2f}, {learned.mood.consecutive_wins} wins and "
            "{learned.mood.consecutive_losses} losses in a row; habits rest on {learned.habits} trades",
        ),
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
            "drift: {series} of {symbol} turned {alarm.turn}, {alarm.magnitude:+.1f} deviations since {alarm.since}",
        ),
        Each("learned.induced", "new belief: {proposition}"),
        Each("learned.retired", "retired belief: {proposition}"),
        Each("learned.proposals", "proposes a plan, see list_proposals: {}"),
    ),
    "list_trades": (Rows("trades", TRADES, empty="No trades were known at that time."), MORE),
    "get_trade_reflection": (
        Rows("trade", TRADES),
        Values("trade", columns("reflection | exit reason: {exit_reason} | tags")),
        Values("", columns("retrieved | strength: {strength:.2f} | citations")),
        Each("beliefs", "belief: {proposition} (credibility {credibility:.2f}, n={n})"),
        Each("plans", "plan: {action.kind}: {reasoning}"),
    ),
    "list_decisions": (Rows("decisions", DECISIONS, empty="No decisions were known at that time."), MORE),
    "close_tick": (
        REPLAY,
        Rows("decision", {**DECISIONS, "id": "{id}"}),
        Line("opened", "bold", when="opened"),
        Rows("opened", TRADES),
        Line("closed", "bold", when="closed"),
        Rows("closed", TRADES),
        Each("contradictions", "contradiction between plans: {reason}"),
        Line("reflection {reflection.came}: {reflection.reason}"),
    ),
    "open_tick": (*PROMPT, Line("decision id {decision_id}")),
    "preview_context": PROMPT,
    "get_recent_activity": (
        Line("{text}"),
        Line(lambda answer: "" if answer.text else "No recent activity."),
    ),
    "get_my_deployments": (Rows("deployments", DEPLOYMENTS, empty="No deployments were known at that time."),),
    "recall_memories": (
        Line("Usually: {base_rate.sentence}", "bold"),
        Each("warnings", "Warning: {sentence}", "red"),
        Each(
            "beliefs",
            "Belief: {belief.proposition} (credibility {posterior.credibility:.2f}, n={posterior.n})",
        ),
        Each("plans", "Plan: {action.kind}: {reasoning}"),
        Line("{message}", "dim"),
        Rows("memories", MEMORIES),
        MORE,
    ),
    "explain_recall": (
        Line("{explanation.sentence}."),
        Line("  ".join(f"{name} {{explanation.factors.{name}:.2f}}" for name in (*FACTORS, "Period")), "dim"),
        Rows(
            "explanation.fields",
            columns(
                "field: {name} | query: {asked} | memory: {held} | >closeness: {closeness:.2f} | "
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
    "list_recalls": (
        Rows(
            "recalls",
            columns("symbol: {made.asked.symbol} | recorded: {known_at} | >candidates: {made.candidates} | recall"),
            empty="No recalls are stored with this decision.",
        ),
    ),
    "position_size": (
        Line("Risk {size.recommended:.2%} of equity. {size.reason}"),
        Line(
            "Results in this symbol have been falling since {since:%Y-%m-%d}: {left_out} earlier trades do not count.",
            "red",
        ),
        Rows(
            "size.levels",
            columns(
                "level: {name} | value | >n | >difference: {difference:+.2f}R | >error: ± {error:.2f} | "
                ">weight: {shrinkage:.0%} | >effect: {effect:+.2f}R"
            ),
        ),
    ),
    "get_agent_state": (
        Line("{deployment.name}, after {closes} closed trades and {equity_seen} readings of the account"),
        Line(lambda answer: "" if answer.deployment else "No deployment yet: a neutral mood."),
        Values(
            "mood",
            {
                **columns("confidence: {confidence:.2f} | risk appetite: {risk_appetite:.2f}"),
                **columns("drawdown state: {drawdown_state:.2f} | momentum bias: {momentum_bias:+.2f}"),
                "streak": "{consecutive_wins} won, {consecutive_losses} lost in a row",
                "equity": "{equity:,.2f} of a peak of {peak:,.2f} ({drawdown:.1%} down)",
            },
        ),
    ),
    "get_behavioral_analysis": (
        Line("{message}", "dim"),
        Values(
            "behaviors",
            {
                "strategy": "{strategy_name}",
                "symbol": "{symbol}",
                "win rate": _figure("win_rate", ".0%"),
                "win rate before": _figure("expected_win_rate", ".0%"),
                "hours held": _figure("hold_seconds", ".2f", 1 / 3600),
                "exit timing (−1 early, +1 late)": _figure("exit_timing"),
                "entry timing (share gone against first)": _figure("entry_timing"),
                "variation of size": _figure("size_variation"),
                "size against recommended": _figure("size_against_recommended"),
                "disposition effect": _figure("disposition_effect"),
                "size after a loss": _figure("loss_aversion"),
                "recency bias": _figure("recency_bias"),
                "drift": _drift,
            },
        ),
    ),
    "list_beliefs": (Rows("beliefs", BELIEFS, empty="No beliefs from {mode} trades were known at that time."),),
    "add_belief": (REPLAY, Rows("belief", BELIEFS)),
    "retire_belief": (REPLAY, Rows("belief", BELIEFS)),
    "list_plans": (Rows("plans", PLANS, empty="No plans were known at that time."),),
    "check_active_plans": (
        Line("{message}"),
        Rows("applying", PLANS),
        Each("rising", "now applies, and did not before: {}"),
        Each("expired", "expired: {}"),
        Each("contradictions", "contradiction: {reason}"),
        Each("missing", "plan {plan_id} cannot be checked without {fields}"),
    ),
    "cancel_plan": (REPLAY, Rows("plan", PLANS)),
    "settle_plan": (
        REPLAY,
        Rows("plan", PLANS),
        Values("settlement", columns("followed | trades without outcome: {without_outcome}")),
        Rows("settlement.results", {**columns(">n"), ">mean": _mean_outcome, **columns("helped")}),
    ),
    "reflect": (
        Line(_reflection_headline, "bold"),
        Each("bullets", lambda bullet: f"  {bullet.slot.replace('_', ' ')}: {bullet.text}"),
        Each("dropped", "  dropped: {text} ({reason})", "dim"),
        Each("proposals", "  proposes a {kind}: {statement} ({id})"),
        Line(_evidence_headline, "dim"),
        Line("{evidence.missing}", "dim"),
        Rows("evidence.groups", GROUPS),
    ),
    "active_lessons": (
        Line("{hash}, by {note.author}, since {note.known_at}, from {note.trades_considered} trades", "dim"),
        Line("{text}"),
        Line(lambda answer: "" if answer.note else f"{answer.deployment} had no lessons at that time.", "dim"),
    ),
    "list_lessons": (
        Rows("notes", LESSONS, empty="No lessons were known at that time."),
        Rows("attempts", ATTEMPTS),
    ),
    "compare_lessons": (
        _revisions,
        Line("{comparison.caution}", "dim"),
    ),
    "does_memory_help": (Line("{help.sentence}", "bold"), _arms),
    "promote_lessons": (
        REPLAY,
        Line(lambda answer: "" if answer.replayed else "New deployments of this strategy start with these lessons."),
        Line("{note.lessons_text}"),
        Each("cut", "cut: {}", "red"),
    ),
    "review_period": (_markdown,),
    "list_proposals": (
        Rows(
            "proposals",
            columns(
                "status: {proposal.status} | kind: {proposal.kind} | still holds: {stands} | "
                "statement: {proposal.statement} | id: {proposal.id}"
            ),
            empty="No proposals were known at that time.",
        ),
    ),
    "accept_proposal": DECIDED,
    "reject_proposal": DECIDED,
    "init_documents": (Values("", columns("created: {made} | already there: {kept}")),),
    "search_memory": (_citations, Line("{message}")),
    "read_memory": (Line("{path}, lines {start_line} to {end_line} of {lines}", "bold"), Line("{text}")),
    "propose_edit": (REPLAY, *EDIT),
    "list_edits": (Rows("edits", EDITS, empty="No edits were known at that time."),),
    "approve_edit": EDIT,
    "reject_edit": EDIT,
    "import_positions": (
        REPLAY,
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
        Each("dirt", "  {message}", most=FINDINGS_SHOWN),
        Line(
            lambda answer: (
                f"  … and more: --json prints the first {len(answer.dirt)}" if len(answer.dirt) > FINDINGS_SHOWN else ""
            ),
            "dim",
        ),
    ),
    "doctor": (
        Line(_diagnosis),
        Rows("findings", FINDINGS),
        Each("remarks", "note: {}", "dim"),
    ),
    "verify_audit": (
        Line("Intact: {rows} rows match the {links} links of the audit chain.", "green", when="intact"),
        Line(_tampered, "red"),
        Rows("findings", FINDINGS),
        Line("head {head}", "dim"),
    ),
    "export_audit": (_json_lines,),
}
"""Layouts by operation; an operation that is not listed is printed by the default of `tables.py`."""


def show(to: Console, operation: str, answer: Any) -> None:
    """Print the answer of an operation."""
    if operation not in LAYOUTS:
        show_record(to, answer)
    for block in LAYOUTS.get(operation, ()):
        show_block(to, block, answer)
