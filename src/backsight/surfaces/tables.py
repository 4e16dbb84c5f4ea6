"""Answers on a terminal: tables for lists, a few lines for the rest."""

import json
import re
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from backsight.core.documents.citation import place_of

Json = dict[str, Any]
FACTORS = ("Q", "Sim", "Rec", "Conf", "Aff")
BAR = 6
WIDE = 140
WHY = 80
DIRT_SHOWN = 10
WORTH_TELLING = 3
SNIPPET_LINES = 6


def console() -> Console:
    """The terminal, or a plain wide page where the output goes elsewhere."""
    made = Console(highlight=False)
    return made if made.is_terminal else Console(highlight=False, width=160)


def show(to: Console, operation: str, answer: Json) -> None:
    """Print an answer in the form that suits its operation."""
    view = {
        "remember_trade": show_remembered,
        "recall_memories": show_recall,
        "explain_recall": show_explanation,
        "list_trades": show_trades,
        "position_size": show_size,
        "list_beliefs": show_beliefs,
        "get_behavioral_analysis": show_behaviors,
        "get_agent_state": show_state,
        "list_plans": show_plans,
        "reflect": show_reflection,
        "active_lessons": show_active_lessons,
        "list_lessons": show_lessons,
        "compare_lessons": show_compared_lessons,
        "does_memory_help": show_help,
        "promote_lessons": show_promoted,
        "review_period": show_review,
        "list_proposals": show_proposals,
        "accept_proposal": show_decided,
        "reject_proposal": show_decided,
        "search_memory": show_citations,
        "doctor": show_diagnosis,
        "list_decisions": show_decisions,
        "get_recent_activity": show_activity,
        "preview_context": show_context,
        "get_my_deployments": show_deployments,
        "import_positions": show_positions,
        "verify_audit": show_verification,
        "export_audit": show_export,
    }.get(operation)
    if view is None:
        show_record(to, answer)
    else:
        view(to, answer)


def show_citations(to: Console, answer: Json) -> None:
    """Where something is written: path, lines, headings, score, and the lines with the words marked."""
    for cited in answer["citations"]:
        lines = place_of(cited["path"], cited["start_line"], cited["end_line"])
        above = " > ".join(cited["heading"])
        to.print(Text.assemble((lines, "bold"), f"  {above}" if above else "", (f"  {cited['score']:.2f}", "cyan")))
        shown = Text("\n".join(_shown_lines(cited["snippet"], answer["words"])))
        for word in answer["words"]:
            shown.highlight_regex(rf"(?i)\b{re.escape(word)}\w*", "bold yellow")
        to.print(Padding(shown, (0, 0, 1, 4)))
    if answer["message"]:
        to.print(Text(answer["message"]), soft_wrap=True)


def _shown_lines(snippet: str, words: list[str]) -> list[str]:
    """The lines of a snippet around the first that has a word of the query."""
    lines = [line[:WIDE] for line in snippet.splitlines() if line.strip()]
    having = (place for place, line in enumerate(lines) if any(word in line.lower() for word in words))
    begun = max(0, next(having, 0) - 1)
    return lines[begun : begun + SNIPPET_LINES]


def show_recall(to: Console, answer: Json) -> None:
    """Memories with their factors, best first."""
    if (usual := answer["base_rate"]) is not None:
        to.print(Text(f"Usually: {usual['sentence']}", style="bold"), soft_wrap=True)
    for warning in answer["warnings"]:
        to.print(Text(f"Warning: {warning['sentence']}", style="red"), soft_wrap=True)
    for belief in answer["beliefs"]:
        likely = f"credibility {belief['posterior']['credibility']:.2f}, n={belief['posterior']['n']}"
        to.print(Text(f"Belief: {belief['belief']['proposition']} ({likely})"), soft_wrap=True)
    for plan in answer["plans"]:
        to.print(Text(f"Plan: {plan['action']['kind']}: {plan['reasoning']}"), soft_wrap=True)
    to.print(answer["message"], style="dim", markup=False)
    if not answer["memories"]:
        return
    wide = to.width >= WIDE
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    weighed = any(memory["factors"]["Period"] != 1.0 for memory in answer["memories"])
    shown = (*FACTORS, "Period") if weighed else FACTORS
    for name in ("score", "", *shown, "outcome", "closed", "way", "regime", *(["why"] if wide else [])):
        table.add_column(name, justify="right" if name in ("score", "outcome", *shown) else "left", no_wrap=True)
    best = max(memory["score"] for memory in answer["memories"]) or 1.0
    for memory in answer["memories"]:
        episode, factors = memory["episode"], memory["factors"]
        table.add_row(
            f"{memory['score']:.3f}",
            Text("█" * max(1, round(BAR * memory["score"] / best)), style="cyan"),
            *(f"{factors[name]:.2f}" for name in shown),
            money(outcome_of(episode), episode["pnl"]),
            day(episode["ended_at"]),
            episode["direction"] or "",
            episode["context"]["regime"] or "",
            *([Text(memory["sentence"])] if wide else []),
        )
    to.print(table)
    if not wide:
        to.print(Text(f"First: {answer['memories'][0]['sentence']}."))


def show_explanation(to: Console, answer: Json) -> None:
    """Where a memory ranked, its likeness field by field, and what would have lifted it."""
    told = answer["explanation"]
    to.print(Text(f"{told['sentence']}."), soft_wrap=True)
    if told["factors"] is None:
        return
    to.print(Text("  ".join(f"{name} {value:.2f}" for name, value in told["factors"].items()), style="dim"))
    fields = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("likeness", "asked", "held", "closeness", "adds"):
        fields.add_column(name, justify="right" if name in ("closeness", "adds") else "left")
    for field in told["fields"]:
        values = (_said(field["asked"]), _said(field["held"]))
        fields.add_row(field["name"], *map(Text, values), f"{field['closeness']:.2f}", f"{field['contribution']:.2f}")
    if told["fields"]:
        to.print(fields)
    for each in told["higher"][:WORTH_TELLING]:
        what = each["factor"] if each["field"] is None else f"{each['factor']} ({each['field']})"
        to.print(f"With {what} at its best it would rank {each['rank']}, score {each['score']:.3f}.")


def show_context(to: Console, answer: Json) -> None:
    """What an agent sees, segment by segment, and what each takes."""
    taken = {each["name"]: each["tokens"] for each in answer["tokens"]}
    for part, segments in (("SYSTEM", answer["system"]), ("MESSAGE", answer["segments"])):
        to.print(Text(part, style="bold"))
        for segment in segments:
            to.print(Text(f"── {segment['name']} ({taken[segment['name']]} tokens)", style="dim"))
            to.print(Text(segment["text"]), soft_wrap=True)
    for cut in answer["cuts"]:
        rows = "as a whole" if cut["whole"] else f"by {cut['rows']} rows"
        to.print(Text(f"{cut['name']} gave way {rows}", style="yellow"))
    total, memory = answer["total_tokens"], answer["memory_tokens"]
    to.print(Text(f"{total} tokens, {memory} of them memory ({answer['memory_arm']})", style="bold"))


def _said(value: Any) -> str:
    """A value of a field in a word."""
    if isinstance(value, list):
        return " ".join(value)
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def show_remembered(to: Console, answer: Json) -> None:
    """What became of it, the trade in a line, and what it changed in each memory."""
    to.print(answer["message"], markup=False)
    show_trades(to, {"trades": [answer["trade"]], "next_cursor": None})
    if (learned := answer["learned"]) is None:
        return
    mood = learned["mood"]
    streak = f"{mood['consecutive_wins']} won" if mood["consecutive_wins"] else f"{mood['consecutive_losses']} lost"
    to.print(f"mood: confidence {mood['confidence']:.2f}, {streak} in a row; habits rest on {learned['habits']} trades")
    for each in learned["evidence"]:
        word = "confirms" if each["confirms"] else "contradicts"
        likely = f"credibility {each['credibility']:.2f}, n={each['n']}"
        to.print(Text(f"{word}: {each['proposition']} ({likely})"), soft_wrap=True)
    for each in learned["drifted"]:
        alarm = each["alarm"]
        told = f"{each['series']} of {each['symbol']} turned {alarm['turn']}"
        to.print(f"drift: {told}, {alarm['magnitude']:+.1f} deviations since {day(alarm['since'])}")
    for name in ("induced", "retired"):
        for belief in learned[name]:
            to.print(Text(f"{name}: {belief['proposition']}"), soft_wrap=True)


def show_size(to: Console, answer: Json) -> None:
    """How much to risk, why, and what each level adds."""
    size = answer["size"]
    to.print(Text(f"Risk {size['recommended']:.2%} of equity. {size['reason']}"), soft_wrap=True)
    if answer["since"]:
        told = f"Results in this symbol are falling since {day(answer['since'])}"
        to.print(f"{told}: {answer['left_out']} earlier trades are left out.", style="red")
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("level", "value", "n", "difference", "error", "kept", "effect"):
        table.add_column(name, justify="left" if name in ("level", "value") else "right")
    for level in size["levels"]:
        table.add_row(
            level["name"].replace("_", " "),
            Text(level["value"] or ""),
            str(level["n"]),
            f"{level['difference']:+.2f}R",
            "" if level["error"] is None else f"± {level['error']:.2f}",
            f"{level['shrinkage']:.0%}",
            f"{level['effect']:+.2f}R",
        )
    to.print(table)


def show_beliefs(to: Console, answer: Json) -> None:
    """Beliefs, the most credible first, each with its interval and what it rests on."""
    if not answer["beliefs"]:
        to.print(f"No beliefs from {answer['mode']} trades known then.", style="dim")
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for name in ("credible", "", "win rate (90 %)", "against", "n", "mean outcome", "left", "belief"):
        table.add_column(name, justify="left" if name in ("", "belief") else "right", no_wrap=name != "belief")
    for each in answer["beliefs"]:
        belief, held = each["belief"], each["posterior"]
        gone = belief["retired_at"]
        note = f" (retired {day(gone)})" if gone else " (worth testing)" if each["worth_testing"] else ""
        table.add_row(
            f"{held['credibility']:.2f}",
            Text("█" * round(BAR * held["credibility"]), style="dim" if gone else "cyan"),
            f"{held['win_rate']:.0%} ({each['win_rate_low']:.0%}-{each['win_rate_high']:.0%})",
            f"{'>' if belief['claims'] == 'above' else '<'} {belief['reference']:.0%}",
            str(held["n"]),
            ", ".join(map(mean_of, each["outcomes"])),
            f"{each['strength']:.2f}",
            Text(belief["proposition"] + note),
        )
    to.print(table)


def mean_of(each: Json) -> str:
    """A mean outcome with half of its interval."""
    unit, scale = ("%", 100.0) if each["unit"] == "pct" else ("R" if each["unit"] == "R" else " ATR", 1.0)
    doubt = "" if each["low"] is None else f" ± {scale * (each['high'] - each['low']) / 2:.2f}"
    return f"{scale * each['mean']:+.2f}{doubt}{unit}"


HABITS = {
    "win_rate": "won",
    "expected_win_rate": "won before",
    "hold_seconds": "held, hours",
    "exit_timing": "exit −1 early … +1 late",
    "entry_timing": "went against us first",
    "size_variation": "variation of size",
    "size_against_recommended": "size against recommended",
    "disposition_effect": "disposition effect",
    "loss_aversion": "size after a loss",
    "recency_bias": "recency bias",
}
"""Figures of a habit, and what they are called on a terminal."""


def show_behaviors(to: Console, answer: Json) -> None:
    """Habits by strategy and symbol: a figure a row, each with how many trades it rests on."""
    to.print(answer["message"], style="dim", markup=False)
    if not answer["behaviors"]:
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("")
    for each in answer["behaviors"]:
        table.add_column(f"{each['strategy_name']}\n{each['symbol']}", justify="right")
    for name, called in HABITS.items():
        table.add_row(called, *(figure_of(each["habits"][name], name) for each in answer["behaviors"]))
    table.add_row("drift", *(drift_of(each["drift"]) for each in answer["behaviors"]))
    to.print(table)


def figure_of(figure: Json, name: str) -> Text:
    """A figure with its sample size; only that where it is too small."""
    if figure["value"] is None:
        return Text(f"– (n={figure['n']})", style="dim")
    value = figure["value"] / 3600 if name == "hold_seconds" else figure["value"]
    shown = f"{value:.0%}" if name in ("win_rate", "expected_win_rate") else f"{value:+.2f}"
    return Text(f"{shown} (n={figure['n']})")


def drift_of(drift: list[Json]) -> Text:
    """The alarms that were raised, in a few words."""
    alarms = [f"{each['series']} {each['turn']} since {day(each['since'])}" for each in drift if each["turn"]]
    bad = any(each["degrading"] for each in drift)
    return Text("\n".join(alarms) or "none", style="red" if bad else "" if alarms else "dim")


def show_state(to: Console, answer: Json) -> None:
    """The mood in a few lines, with bars."""
    mood, home = answer["mood"], answer["deployment"]
    whose = "nobody yet: neutral" if home is None else home["name"]
    to.print(Text(f"{whose}, after {answer['closes']} closes and {answer['equity_seen']} looks at the account"))
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for name in ("confidence", "risk_appetite", "drawdown_state"):
        bar = Text("█" * round(4 * BAR * mood[name]) + "░" * (4 * BAR - round(4 * BAR * mood[name])), style="cyan")
        table.add_row(name.replace("_", " "), f"{mood[name]:.2f}", bar)
    table.add_row("momentum bias", f"{mood['momentum_bias']:+.2f}", "")
    table.add_row("streak", f"{mood['consecutive_wins']} won, {mood['consecutive_losses']} lost in a row", "")
    if mood["equity"] is not None:
        told = f"{mood['equity']:,.2f} of a peak of {mood['peak']:,.2f} ({mood['drawdown']:.1%} down)"
        table.add_row("equity", told, "")
    to.print(table)


def show_plans(to: Console, answer: Json) -> None:
    """Plans, oldest first."""
    if not answer["plans"]:
        to.print("No plans known then.", style="dim")
        return
    table = Table("status", "fired", "until", "if", "then", "why", "id", box=None, pad_edge=False, header_style="bold")
    for each in answer["plans"]:
        plan, action = each["plan"], each["plan"]["action"]
        then = " ".join(str(part) for part in (action["kind"], action["parameter"], action["magnitude"]) if part)
        until = each["ended_at"] or plan["expires_at"]
        table.add_row(
            each["status"],
            str(each["times_fired"]),
            day(until) or "a condition",
            Text(plan["condition"]),
            Text(then),
            Text(plan["reasoning"]),
            plan["id"],
        )
    to.print(table)


def show_reflection(to: Console, answer: Json) -> None:
    """What came of it, the lessons, what it proposes, and the groups that were looked at."""
    would = "would be " if answer["dry_run"] else ""
    again = " (known already)" if answer["replayed"] else ""
    to.print(Text(f"{would}{answer['came']}{again}: {answer['reason']}", style="bold"), soft_wrap=True)
    for bullet in answer["bullets"]:
        to.print(Text(f"  {bullet['slot'].replace('_', ' ')}: {bullet['text']}"), soft_wrap=True)
    for each in answer["dropped"]:
        to.print(Text(f"  dropped: {each['text']} ({each['reason']})", style="dim"), soft_wrap=True)
    for each in answer["proposals"]:
        to.print(Text(f"  proposes a {each['kind']}: {each['statement']} ({each['id']})"), soft_wrap=True)
    show_evidence(to, answer["evidence"])


def show_evidence(to: Console, evidence: Json) -> None:
    """Groups of trades beside the rest of them, what lessons may rest on first."""
    tested = f"tested at {evidence['level']:.4f}" if evidence["level"] else "not tested now"
    looked = f"{evidence['considered']} of {evidence['closed']} closed trades on {evidence['days']} days"
    to.print(f"{looked}, {tested}; next test at {evidence['next_test_at']}", style="dim", markup=False)
    if evidence["missing"]:
        to.print(Text(evidence["missing"], style="dim"), soft_wrap=True)
    if not evidence["groups"]:
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("group", "n", "days", "mean (90 %)", "rest", "difference", "missing"):
        table.add_column(name, justify="left" if name in ("group", "missing") else "right")
    for each in evidence["groups"]:
        table.add_row(
            Text(each["label"] + (" (kept)" if each["measure"] == "captured" else "")),
            str(each["n"]),
            str(each["days"]),
            _with_reach(each["mean"], each["interval"], each["unit"]),
            _with_reach(each["rest_mean"], None, each["unit"]),
            _with_reach(each["difference"], each["difference_interval"], each["unit"]),
            Text("lesson", style="green") if each["missing"] is None else Text(each["missing"], style="dim"),
        )
    to.print(table)


def _with_reach(value: float | None, ends: list[float] | None, unit: str | None) -> str:
    """A figure with half of its interval, in its unit; without one it is a share."""
    if value is None:
        return ""
    scale, word = {"R": (1.0, "R"), "vol": (1.0, " ATR")}.get(unit or "", (100.0, "%"))
    doubt = "" if ends is None else f" ± {scale * (ends[1] - ends[0]) / 2:.2f}"
    return f"{scale * value:+.2f}{doubt}{word}"


def show_active_lessons(to: Console, answer: Json) -> None:
    """The lessons as the agent reads them."""
    if answer["note"] is None:
        to.print(f"No lessons of {answer['deployment']} known then.", style="dim", markup=False)
        return
    note = answer["note"]
    told = f"{answer['hash']}, by {note['author']}, since {minute(note['known_at'])}"
    to.print(f"{told}, from {note['trades_considered']} trades", style="dim", markup=False)
    to.print(Text(answer["text"]), soft_wrap=True)


def show_lessons(to: Console, answer: Json) -> None:
    """Revisions and attempts, newest first."""
    if not answer["notes"] and not answer["attempts"]:
        to.print("No lessons known then.", style="dim")
        return
    notes = Table("revision", "status", "written", "by", "trades", "lessons", box=None, header_style="bold")
    for note in answer["notes"]:
        first = note["bullets"][0]["text"] if note["bullets"] else "none"
        more = f" … and {len(note['bullets']) - 1} more" if len(note["bullets"]) > 1 else ""
        whose = "" if note["deployment_id"] else " (strategy)"
        told = (note["content_hash"], note["status"] + whose, minute(note["generated_at"]), note["author"])
        notes.add_row(*told, str(note["trades_considered"]), Text(first + more))
    to.print(notes)
    attempts = Table("attempt", "came to", "by", "closed", "why", box=None, header_style="bold")
    for each in answer["attempts"]:
        words = (minute(each["at"]), each["came"], each["model_used"] or each["author"], str(each["closed"]))
        attempts.add_row(*map(Text, words), Text(each["reason"]))
    to.print(attempts)


def show_compared_lessons(to: Console, answer: Json) -> None:
    """Each revision beside none, and what such a comparison cannot tell."""
    compared = answer["comparison"]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("revision", "trades", "days", "mean", "net", "gross $", "won", "difference (90 %)"):
        table.add_column(name, justify="left" if name == "revision" else "right")
    for each in compared["revisions"]:
        table.add_row(
            each["lessons_hash"] or "none",
            str(each["trades"]),
            str(each["days"]),
            _with_reach(each["mean"], None, compared["unit"]),
            *("" if each[name] is None else f"{each[name]:+,.2f}" for name in ("mean_pnl", "mean_pnl_usd")),
            "" if each["win_rate"] is None else f"{each['win_rate']:.0%}",
            _with_reach(each["difference"], each["interval"], compared["unit"]),
        )
    to.print(table)
    to.print(Text(compared["caution"], style="dim"), soft_wrap=True)


def show_help(to: Console, answer: Json) -> None:
    """Whether memory helps, in a sentence, and the two arms."""
    told = answer["help"]
    to.print(Text(told["sentence"], style="bold"), soft_wrap=True)
    table = Table("", "trades", "days", "mean", box=None, pad_edge=False, header_style="bold")
    for name in ("shown", "withheld"):
        arm = told[name]
        table.add_row(name, str(arm["trades"]), str(arm["days"]), _with_reach(arm["mean"], None, told["unit"]))
    to.print(table)


def show_promoted(to: Console, answer: Json) -> None:
    """The lessons of the strategy."""
    to.print("Known already: nothing was changed." if answer["replayed"] else "New deployments start with this.")
    to.print(Text(answer["note"]["lessons_text"]), soft_wrap=True)
    for bullet in answer["cut"]:
        to.print(Text(f"cut: {bullet}", style="red"), soft_wrap=True)


def show_review(to: Console, answer: Json) -> None:
    """The report: rendered on a terminal, as it is elsewhere."""
    if to.is_terminal:
        from rich.markdown import Markdown

        to.print(Markdown(answer["markdown"]))
    else:
        to.out(answer["markdown"], highlight=False, end="")


def show_proposals(to: Console, answer: Json) -> None:
    """Proposals and what they rest on."""
    if not answer["proposals"]:
        to.print("No proposals known then.", style="dim")
        return
    table = Table("status", "kind", "stands", "because", "id", box=None, pad_edge=False, header_style="bold")
    for each in answer["proposals"]:
        proposal = each["proposal"]
        stands = "yes" if each["stands"] else "no longer"
        table.add_row(proposal["status"], proposal["kind"], stands, Text(proposal["statement"]), proposal["id"])
    to.print(table)


def show_decided(to: Console, answer: Json) -> None:
    """What a proposal has become."""
    proposal = answer["proposal"]
    made = f", as {proposal['kind']} {proposal['made_id']}" if proposal["made_id"] else ""
    to.print(Text(f"{proposal['status']}{made}: {proposal['statement']}"), soft_wrap=True)


def show_diagnosis(to: Console, answer: Json) -> None:
    """Healthy or not, and what differs."""
    rows = f"{sum(answer['rows'].values()):,} rows of {len(answer['rows'])} tables derived again"
    if answer["healthy"]:
        to.print(f"[green]Healthy[/green]: {rows}, all as kept.")
    else:
        mended = "; repaired" if answer["repaired"] else "; --repair writes what was derived"
        to.print(f"[red]Not healthy[/red]: {rows}, {len(answer['findings'])} differ{mended}.")
    for finding in answer["findings"]:
        to.print(Text(f"  {finding['kind']:<12} {finding['table']} {finding['key']}: {finding['detail']}"))
    for remark in answer["remarks"]:
        to.print(Text(f"note: {remark}", style="dim"), soft_wrap=True)


def show_trades(to: Console, answer: Json) -> None:
    """Trades, newest first."""
    if not answer["trades"]:
        to.print("No trades known then.", style="dim")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    held = all(trade["closed_at"] is None for trade in answer["trades"])
    when, last = ("opened", "size") if held else ("closed", "exit")
    for name in (when, "symbol", "direction", "strategy", "entry", last, "net", "outcome", "id"):
        table.add_column(name, justify="right" if name in ("entry", last, "net", "outcome") else "left")
    for trade in answer["trades"]:
        table.add_row(
            minute(trade["opened_at"] if held else trade["closed_at"]),
            Text(trade["symbol"]),
            trade["direction"],
            Text(trade["strategy_name"]),
            f"{trade['entry_price']:,.6g}",
            _figure(trade["open_size"] if held else trade["exit_price"]),
            money("" if trade["pnl"] is None else f"{trade['pnl']:+,.2f}", trade["pnl"]),
            money(outcome_of(trade), trade["pnl"]),
            trade["id"],
        )
    to.print(table)
    if answer["next_cursor"]:
        to.print(f"More: --cursor {answer['next_cursor']}", style="dim", markup=False, soft_wrap=True)


def show_decisions(to: Console, answer: Json) -> None:
    """Decisions, newest first: what was proposed, why, and what became of it."""
    if not answer["decisions"]:
        to.print("No decisions known then.", style="dim")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("tick", "verdict", "symbol", "arm", "equity", "why"):
        table.add_column(name, justify="right" if name == "equity" else "left")
    for decision in answer["decisions"]:
        verdict = decision["verdict"]
        why = decision["reason"] or verdict["detail"] or ""
        table.add_row(
            minute(decision["at"]),
            Text(" ".join(filter(None, (verdict["kind"], verdict["rule"])))),
            Text(decision["symbol"] or ""),
            decision["memory_arm"],
            f"{decision['equity']:,.2f}",
            Text(why if len(why) <= WHY else why[: WHY - 1] + "…"),
        )
    to.print(table)
    if answer["next_cursor"]:
        to.print(f"More: --cursor {answer['next_cursor']}", style="dim", markup=False, soft_wrap=True)


def show_activity(to: Console, answer: Json) -> None:
    """Recent activity as the agent reads it."""
    to.print(Text(answer["text"] or "Nothing lately."))


def show_deployments(to: Console, answer: Json) -> None:
    """Deployments with their tallies."""
    if not answer["deployments"]:
        to.print("No deployments known then.", style="dim")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("deployment", "strategy", "mode", "trades", "won", "net", "last close"):
        table.add_column(name, justify="right" if name in ("trades", "won", "net") else "left")
    for each in answer["deployments"]:
        deployment, tally = each["deployment"], each["tally"]
        version = "" if deployment["strategy_version"] is None else f" v{deployment['strategy_version']}"
        table.add_row(
            Text(deployment["name"]),
            Text(deployment["strategy_name"] + version),
            deployment["mode"],
            str(tally["trades"]),
            str(tally["wins"]),
            money(f"{tally['pnl']:+,.2f}", tally["pnl"]),
            minute(tally["last_closed_at"]),
        )
    to.print(table)


def show_positions(to: Console, answer: Json) -> None:
    """A log in a few lines: what it came to, whether cash agrees, and where it contradicts itself."""
    summary, cash, bars = answer["summary"], answer["cash"], answer["bars"]
    if answer["replayed"]:
        to.print("Known already: nothing was changed.")
    lines = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    new = "" if answer["added"] == summary["rows"] else f", {answer['added']} of them new"
    span = f"{minute(answer['first_at'])} to {minute(answer['last_at'])}"
    steps = counted(summary, "opens", "closes", "flips", "additions", "reductions", "held_at_start")
    lines.add_row("deployment", Text(f"{answer['deployment']['name']} ({answer['deployment']['mode']})"))
    lines.add_row("rows", f"{summary['rows']:,} at {summary['instants']:,} instants, {span}{new}")
    lines.add_row("trades", f"{answer['opened']:,} opened, {answer['closed']:,} closed")
    lines.add_row("steps", steps or "none")
    lines.add_row("cash", f"{cash['reconciled']:,} of {cash['checked']:,} changes with a bar paid its open")
    if bars is not None:
        lines.add_row("bars", bars_told(bars))
    lines.add_row("dirt", counted(summary["dirt"], *summary["dirt"]) or "none")
    to.print(lines)
    for dirt in answer["dirt"][:DIRT_SHOWN]:
        to.print(Text(f"  {dirt['message']}"), soft_wrap=True)
    if len(answer["dirt"]) > DIRT_SHOWN:
        to.print(f"  … and more: --json has the first {len(answer['dirt'])}", style="dim")


def bars_told(bars: Json) -> str:
    """Imported bars in a line."""
    told, added = (sum(each[name] for each in bars["symbols"]) for name in ("bars", "added"))
    return f"{told:,} of {len(bars['symbols'])} symbols, {added:,} of them new; {bars['report']['missing']:,} missing"


def counted(figures: Json, *names: str) -> str:
    """Those of some figures that are not zero, each with its name."""
    return ", ".join(f"{figures[name]:,} {name.replace('_', ' ')}" for name in names if figures[name])


def show_verification(to: Console, answer: Json) -> None:
    """Intact or not, and what was found."""
    counted = f"{answer['links']} links of the chain, {answer['rows']} rows read again"
    if answer["intact"]:
        to.print(f"[green]Intact[/green]: {counted}.")
    else:
        to.print(f"[red]Not intact[/red]: {counted}, {len(answer['findings'])} findings.")
    for finding in answer["findings"]:
        to.print(Text(f"  {finding['kind']:<12} {finding['table']} {finding['key']}: {finding['detail']}"))
    to.print(f"head {answer['head']}", style="dim", soft_wrap=True)


def show_export(to: Console, answer: Json) -> None:
    """The chain as JSON Lines, and the head as the last of them."""
    for link in answer["links"]:
        to.out(json.dumps(link, ensure_ascii=False), highlight=False)
    to.out(json.dumps({"head": answer["head"]}), highlight=False)


def show_record(to: Console, answer: Json, indent: int = 0) -> None:
    """What is known of one thing, a line each; what is not known is left out."""
    for name, value in answer.items():
        if value in (None, [], {}):
            continue
        if isinstance(value, dict):
            to.print(Text(" " * indent + name, style="bold"))
            show_record(to, value, indent + 2)
        elif isinstance(value, list) and isinstance(value[0], dict):
            to.print(Text(" " * indent + name, style="bold"))
            to.print(Padding(rows_of(value), (0, 0, 0, indent + 2)))
        else:
            to.print(Text(" " * indent + f"{name} ", style="bold"), Text(str(value)), sep="", soft_wrap=True)


def rows_of(things: list[Json]) -> Table:
    """Things of one kind as a table."""
    table = Table(*things[0], box=None, pad_edge=False, header_style="bold")
    for thing in things:
        table.add_row(*(Text("" if value is None else str(value)) for value in thing.values()))
    return table


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.6g}"


def outcome_of(thing: Json) -> str:
    """An outcome with its unit."""
    outcome = thing["outcome"]
    if outcome is None:
        return ""
    if outcome["unit"] == "pct":
        return f"{100 * outcome['value']:+.2f}%"
    return f"{outcome['value']:+.2f}{'R' if outcome['unit'] == 'R' else ' ATR'}"


def money(text: str, pnl: float | None) -> Text:
    """Green where something was won, red where it was lost."""
    return Text(text, style="green" if (pnl or 0) > 0 else "red" if (pnl or 0) < 0 else "")


def day(instant: str | None) -> str:
    return (instant or "")[:10]


def minute(instant: str | None) -> str:
    return (instant or "")[:16].replace("T", " ")
