"""The report of a run: the verdict, the power, the tables and plots, and everything that is needed to run it again."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from backsight.core.instants import format_instant
from backsight.core.text.counts import count_of
from backsight.lab.analysis import LEAST_DIFFERENCE, RESAMPLES, AnalysisTerms, ArmResult, LabAnalysis, Measure
from backsight.lab.arms import Arm, RandomSkip
from backsight.lab.document import Block, Bullets, Commands, GridTable, Heading, Paragraph, Plot, files_of
from backsight.lab.metrics import MEANINGS, METRICS, Metric, equity_curves, sharpe
from backsight.lab.null import DRAWS, size_multiples
from backsight.lab.plots import histogram, log_line_plot, scatter_plot
from backsight.lab.replay import Replay
from backsight.lab.trades import LabTrades

UNKNOWN = "–"
SHARES: frozenset[Metric] = frozenset({"holding_period_return", "max_drawdown", "tail_loss"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What is needed to run the lab again."""

    data: str
    """The name of the files."""
    digest: str
    versions: Mapping[str, str]
    command: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabReport:
    """A run of the lab: its data, its decisions, its analysis, and where they come from."""

    data: LabTrades
    arms: tuple[Arm, ...]
    replay: Replay
    analysis: LabAnalysis
    terms: AnalysisTerms
    provenance: Provenance

    @property
    def verdict(self) -> str:
        return self.analysis.verdict

    @property
    def files(self) -> Mapping[str, str]:
        """Every file of the report by name; the same run gives the same bytes."""
        return {**files_of(list(_blocks(self))), "decisions.csv": decisions_csv(self.data, self.replay)}


def decisions_csv(data: LabTrades, replay: Replay) -> str:
    """The share of equity that each arm put at risk on each trade, in the order of the entries."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["opened_at", "trade", "symbol", "direction", *replay.arms])
    for place, trade in enumerate(data.trades):
        entry = trade.entry
        shares = [repr(float(share)) for share in replay.shares[:, place]]
        writer.writerow([format_instant(entry.at), entry.id, entry.symbol, entry.direction, *shares])
    return text.getvalue()


def _blocks(report: LabReport) -> Iterator[Block]:
    analysis = report.analysis
    yield Heading(f"Does memory help? {report.provenance.data}", 1)
    yield Paragraph(analysis.verdict, strong=True)
    yield Heading("What could have been found")
    yield Paragraph(f"{analysis.power.sentence} This was computed before any result was read.")
    if analysis.power.steps:
        yield _power_table(report)
    yield Heading("Results")
    yield Paragraph(_scope(report))
    yield summary_table(analysis)
    yield Bullets(tuple(f"`{arm.name}`: {arm.meaning}" for arm in analysis.arms if arm.meaning))
    yield Paragraph(_legend(report))
    if analysis.with_and_without is not None:
        yield Paragraph(
            "The agent with memory less the agent without, in the yearly Sharpe ratio (95% interval): "
            f"{cell(analysis.with_and_without, 'sharpe')}."
        )
    yield from _plots(report)
    yield Heading("Every metric")
    yield _metrics_table(analysis.arms, differences=False)
    yield Paragraph(
        f"90% intervals in brackets, from {RESAMPLES:,} resamples of blocks of days; of `random_skip`, the range of "
        f"nine tenths of {DRAWS:,} draws. " + "; ".join(f"{_words(name)}: {MEANINGS[name]}" for name in METRICS) + "."
    )
    yield Heading("Differences to the recorded sizes")
    yield _metrics_table([arm for arm in analysis.arms if arm.differences], differences=True)
    yield Paragraph("Paired: every resample has the same days for both.")
    yield Heading("Decisions")
    yield _decisions_table(analysis)
    yield Paragraph(_change_in_words(analysis))
    yield Heading("Folds")
    yield from _folds(report)
    yield Heading("How to run it again")
    yield Bullets(tuple(_facts(report)))
    yield Commands(report.provenance.command)


def summary_table(analysis: LabAnalysis) -> GridTable:
    """One row an arm: what it is called, and the figures that the call rests on."""
    header = (
        "arm", "verdict", "Sharpe", "difference (95%, all arms)", "Calmar", "max. drawdown", "final equity",
        "deflated Sharpe", "place in null", "trades taken",
    )  # fmt: skip
    return GridTable(header, tuple(_summary_row(arm) for arm in analysis.arms))


def _summary_row(arm: ArmResult) -> tuple[str, ...]:
    metrics = arm.metrics
    return (
        arm.name,
        "baseline" if arm.name == "fixed" else "the null" if arm.name == RandomSkip.name else arm.call or UNKNOWN,
        cell(metrics["sharpe"], "sharpe"),
        UNKNOWN if arm.sharpe_difference is None else cell(arm.sharpe_difference, "sharpe", sign=True),
        number(metrics["calmar"].value, "calmar"),
        number(metrics["max_drawdown"].value, "max_drawdown"),
        number(metrics["final_equity"].value, "final_equity"),
        probability(arm.deflated_sharpe),
        probability(arm.place_in_null),
        f"{arm.taken:,}",
    )


def _power_table(report: LabReport) -> GridTable:
    steps = report.analysis.power.steps
    rows = tuple((f"{step.skill:.0%}", f"{step.gain:+.2f}", f"{step.power:.0%}") for step in steps)
    return GridTable(("losers skipped more often than at random by", "gain in Sharpe", "called better"), rows)


def _scope(report: LabReport) -> str:
    analysis = report.analysis
    return (
        f"{analysis.replayed:,} trades were replayed. Those opened from {analysis.validation_start:%Y-%m-%d} on are "
        f"scored: {len(analysis.scored):,}, on {analysis.power.trading_days} trading days of {analysis.times.days}. "
        "Every arm decided at the entry, with the memory of all trades that had closed before, and nothing later."
    )


def _legend(report: LabReport) -> str:
    pbo = report.analysis.overfitting_probability
    chance = (
        "The probability of backtest overfitting (PBO) has too few folds."
        if pbo is None
        else f"The probability that the best of these arms in half of the folds is below the median in the other half "
        f"(PBO) is {pbo:.0%}."
    )
    return (
        f"An arm is called better if the interval of its difference to `fixed` is above 0, it is at least "
        f"{LEAST_DIFFERENCE:g}, and its Calmar ratio is not lower. The deflated Sharpe "
        "ratio is the probability that the true ratio is above the best of so many arms without skill. The place in "
        f"the null is the share of {DRAWS:,} draws that the arm beats: its own sizes, dealt to the trades at random. "
        f"{chance}"
    )


def _plots(report: LabReport) -> Iterator[Plot]:
    analysis, names = report.analysis, report.replay.arms
    growth = equity_curves(analysis.daily.returns)
    curves = {name: [1.0, *growth[row].tolist()] for row, name in enumerate(names) if name != RandomSkip.name}
    label = f"days since {analysis.times.first_day:%Y-%m-%d}"
    plot = log_line_plot("Equity by arm", curves, x_label=label, y_label="equity, logarithmic")
    yield Plot("equity.svg", "Equity of every arm, 1 at the start; values below 0.1 are drawn at 0.1", plot)
    recorded = analysis.shares[0]
    for row, name in enumerate(names):
        null = analysis.nulls.get(name)
        if null is None or null.place is None:
            continue
        own = float(sharpe(analysis.daily.returns[row]))
        title = f"{name} in its null"
        plot = histogram(title, null.sharpe, mark=own, mark_label=name, x_label="yearly Sharpe ratio")
        yield Plot(f"null-{name}.svg", f"{title}: the same sizes dealt at random, {DRAWS:,} draws", plot)
        multiples = size_multiples(analysis.shares[row], recorded)
        title = f"Sizes of {name} against outcomes"
        plot = scatter_plot(
            title, multiples, analysis.times.outcome_r, x_label="size, as a multiple of the recorded", y_label="R"
        )
        yield Plot(f"sizes-{name}.svg", f"{title}: one point a trade", plot)


def _metrics_table(arms: Sequence[ArmResult], *, differences: bool) -> GridTable:
    def measures(arm: ArmResult) -> Mapping[Metric, Measure]:
        return arm.differences if differences else arm.metrics

    rows = tuple(
        (_words(name), *(cell(measures(arm)[name], name, sign=differences) for arm in arms)) for name in METRICS
    )
    return GridTable(("metric", *(arm.name for arm in arms)), rows)


def _decisions_table(analysis: LabAnalysis) -> GridTable:
    header = ("arm", "mean share", "sizes and outcomes: rank correlation", "Brier score", "trades until size halved")
    rows = [
        (
            arm.name,
            f"{arm.mean_share:.2%}",
            cell(arm.rank_correlation, "sharpe", sign=True),
            cell(arm.brier, "sharpe"),
            UNKNOWN if arm.halved_after is None else str(arm.halved_after),
        )
        for arm in analysis.arms
    ]
    return GridTable(header, tuple(rows))


def _change_in_words(analysis: LabAnalysis) -> str:
    if analysis.change_at is None:
        return "No change of the mean outcome was found in the validation period, so there is no speed of adaptation."
    how = "planted" if analysis.change_is_planted else "found in hindsight, and not shown to any arm"
    unknown = f"{UNKNOWN} means never halved, or no size before"
    return f"The mean outcome changes at {analysis.change_at:%Y-%m-%d} ({how}); {unknown}."


def _folds(report: LabReport) -> Iterator[Block]:
    analysis, terms = report.analysis, report.terms
    steps = [fold for fold in analysis.folds if len(fold.test)]
    arms = [arm for arm in analysis.arms if arm.folds]
    rows = tuple(
        (
            f"{fold.starts_at:%Y-%m-%d}",
            f"{len(fold.train):,}",
            f"{len(fold.test):,}",
            *(number(arm.folds[place], "sharpe") for arm in arms),
        )
        for place, fold in enumerate(steps)
    )
    yield GridTable(("from", "trades before", "trades in it", *(f"Sharpe {arm.name}" for arm in arms)), rows)
    yield Paragraph(
        f"Walk forward: {terms.folds} folds of equal time. Purged: only trades that were opened and closed in a fold "
        f"count in it. Embargo in days, left out at the start of each: {terms.embargo_days:g}."
    )


def _facts(report: LabReport) -> Iterator[str]:
    terms, provenance = report.terms, report.provenance
    training = (
        f"{terms.training:.0%} of the trades" if isinstance(terms.training, float) else format_instant(terms.training)
    )
    yield f"Data: {provenance.data}, SHA-256 {provenance.digest}."
    yield from report.data.notes
    yield f"Training: {training}. Folds: {terms.folds}. Embargo in days: {terms.embargo_days:g}. Seed: {terms.seed}."
    yield f"Arms tried: {count_of(len(report.arms), 'arm')} ({', '.join(arm.name for arm in report.arms)})."
    yield "Tuned on these data: nothing. All parameters of memory and of the arms are their defaults."
    yield "Versions: " + ", ".join(f"{name} {version}" for name, version in provenance.versions.items()) + "."


def _words(metric: Metric) -> str:
    return metric.replace("_", " ")


def cell(measure: Measure, metric: Metric, *, sign: bool = False) -> str:
    """A value with its interval in brackets."""
    value = number(measure.value, metric, sign=sign)
    if measure.interval is None or measure.value is None:
        return value
    low, high = (number(bound, metric, sign=sign) for bound in measure.interval)
    return f"{value} [{low}, {high}]"


def number(value: float | None, metric: Metric, *, sign: bool = False) -> str:
    """A value of a metric as it is written.

    >>> number(0.1234, "max_drawdown"), number(1.5, "sharpe", sign=True), number(None, "calmar")
    ('12.3%', '+1.50', '–')
    """
    if value is None:
        return UNKNOWN
    plus = "+" if sign else ""
    if metric in SHARES:
        return f"{value:{plus}.1%}" if metric != "holding_period_return" else f"{value:{plus}.2%}"
    if metric == "drawdown_days":
        return f"{value:{plus}.0f}"
    return f"{value:{plus}.2f}" if abs(value) < 1000 else f"{value:{plus}.2g}"


def probability(value: float | None) -> str:
    """A probability in percent.

    >>> probability(0.987), probability(None)
    ('99%', '–')
    """
    return UNKNOWN if value is None else f"{value:.0%}"
