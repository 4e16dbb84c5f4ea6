"""A request for a page: who asks, what the address says, and how an answer becomes HTML."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from backsight import __version__
from backsight.answers.layouts import brief_of
from backsight.answers.values import text_of
from backsight.core.errors import BacksightError, Invalid, NotFound
from backsight.core.memory.plan_words import action_in_words, plan_with_reason
from backsight.core.strategies import Deployment
from backsight.core.text.counts import count_of
from backsight.surfaces.web import numbers
from backsight.surfaces.web.charts.bars import small_bar
from backsight.surfaces.web.state import EVERY, PERIODS, BarState, read_state, short_instant
from backsight.surfaces.web.visible_text import as_typed, finalize, markdown

if TYPE_CHECKING:
    from backsight.memory import Memory

T = TypeVar("T", bound=str)
PAGES = {
    "/": "Overview",
    "/trades": "Trades",
    "/prompt": "What it sees",
    "/recall": "Recall",
    "/decisions": "Decisions",
    "/lessons": "Lessons",
    "/mind": "Mind",
    "/documents": "Documents",
    "/facts": "Facts",
    "/status": "Health",
}
"""The pages in the order of the menu; the page of one trade is below `/trades`."""


WORDS = {
    "noop": "no order",
    "NotFound": "Not found",
    "Invalid": "Not understood",
    "atr_d1": "daily ATR",
    "spread_as_atr_pct": "spread, % of ATR",
    "drawdown_pct": "drawdown, %",
}
"""Names of values that a reader of a page would not know, in words."""


NUMBER_FILTERS = (
    *("signed", "plain", "share", "price", "size", "aligned", "interval"),
    *("outcome", "outcome_interval", "day", "holding", "short"),
)
"""The functions of `numbers` that templates use."""


def words(name: object) -> str:
    """A name in words."""
    return WORDS.get(str(name), str(name).replace("_", " "))


@cache
def environment() -> Environment:
    """The templates: text is escaped, a missing value is an error, hidden characters are shown."""
    templates = Environment(
        loader=PackageLoader("backsight.surfaces.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals.update(
        pages=PAGES, version=__version__, periods=PERIODS, every=EVERY, units=numbers.UNIT_LABELS, small_bar=small_bar
    )
    templates.filters.update({name: getattr(numbers, name) for name in NUMBER_FILTERS})
    templates.filters.update(
        time=numbers.time_tag,
        instant=short_instant,
        markdown=markdown,
        text=text_of,
        action=action_in_words,
        plan=plan_with_reason,
        typed=as_typed,
        words=words,
        count=count_of,
        brief=lambda answer: brief_of(answer).parts,
        kind=lambda value: type(value).__name__,
    )
    return templates


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """A request with its caller's memory, the state in its address, and its further parameters."""

    memory: "Memory"
    path: str
    state: BarState
    query: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict)
    is_owner: bool = False
    """Whether the caller may do what only the owner may."""
    is_public: bool = False
    """Whether anyone may ask: nothing of the store is shown."""
    fragment: str | None = None
    """The name of the part of the page that is asked for; None for all of it."""

    @property
    def when(self) -> dict[str, Any]:
        return self.state.when

    @property
    def explicit_when(self) -> dict[str, Any]:
        """The arguments of queries that withhold memory from an agent on holdout days, unless they have an instant."""
        return self.when or {"as_of": self.memory.clock.now()}

    @property
    def since(self) -> datetime | None:
        return self.state.since(self.memory.clock.now())

    def number(self, name: str, default: float | None = None) -> float | None:
        """A parameter as a number."""
        text = self.query.get(name, "").strip().replace("−", "-")
        if not text:
            return default
        try:
            value = float(text)
        except ValueError:
            raise Invalid(f"{text[:40]!r} is not a number; give one like 1.5", field=name) from None
        if value != value or value in (float("inf"), float("-inf")):
            raise Invalid("is not a finite number; give one like 1.5", field=name)
        return value

    def text(self, name: str) -> str | None:
        """A parameter as text; None if it is empty."""
        return self.query.get(name, "").strip() or None

    def choice(self, name: str, choices: Iterable[T]) -> T | None:
        """A parameter that is one of some values; None if it is empty."""
        text, known = self.text(name), list(choices)
        if text is None or text in known:
            return next((each for each in known if each == text), None)
        raise Invalid(f"{text[:40]!r} is none of {', '.join(known)}", field=name)

    def link(self, path: str, /, **more: object) -> str:
        return self.state.link(path, **more)

    def here(self, **more: object) -> str:
        """The address of this page with some parameters changed."""
        own = {name: value for name, value in self.query.items() if name not in OF_THE_BAR and name != "fragment"}
        return self.state.link(self.path, **{**own, **more})

    def with_deployment(self, *, or_every: bool = False) -> "PageRequest":
        """The same request about one deployment: the named one, else the one that traded last in the mode."""
        name, mode, every = self.state.deployment, self.state.mode, self.deployments()
        if name == EVERY and or_every:
            return self
        if name not in (None, EVERY):
            named = next((each for each in every if name in (each.id, each.name)), None)
            if named is None and self.state.as_of is None:
                raise NotFound(f"no deployment {str(name)[:40]!r}; choose one", field="deployment")
            if named is None or mode in (None, named.mode):
                return self
        deployments = {each.id: each for each in every if mode in (None, each.mode)}
        if every and not deployments:
            raise NotFound(f"no {mode} deployment was known; choose another mode", field="mode")
        last = self.memory.list_trades(mode=mode or "all", limit=1, **self.when).trades
        latest = deployments.get(last[0].deployment_id or "") if last else next(iter(deployments.values()), None)
        return replace(self, state=replace(self.state, deployment=None if latest is None else latest.name))

    def own_deployment(self) -> Deployment | None:
        """The deployment that the page is about; None if there is none yet."""
        return next((each for each in self.deployments() if self.state.deployment in (each.name, each.id)), None)

    def deployments(self) -> list[Deployment]:
        """The deployments as of the page's instant, by name."""
        strategies = self.memory.list_strategies(**self.when).strategies
        return sorted((each for strategy in strategies for each in strategy.deployments), key=lambda each: each.name)

    def currencies(self) -> dict[str, str]:
        """The currency of the account of each deployment, by the id of the deployment."""
        accounts = self.memory.list_accounts(**self.when).accounts
        return {one.id: each.account.currency for each in accounts for one in each.deployments}

    @property
    def deployment(self) -> dict[str, Any]:
        """The deployment as an argument of a query; empty for all."""
        name = self.state.deployment
        return {} if name in (None, EVERY) else {"deployment": str(name)}

    def render(self, template: str, /, *, status: int = 200, title: str = "", **values: Any) -> Response:
        """The page, or one part of it, as HTML."""
        text = (
            environment()
            .get_template(template)
            .render(
                page=self,
                link=self.link,
                here=self.here,
                state=self.state,
                query=self.query,
                title=title or PAGES.get(self.path, ""),
                bar=None if self.fragment or self.is_public else self.bar(),
                **values,
            )
        )
        return HTMLResponse(text, status_code=status)

    def bar(self) -> dict[str, Any]:
        """What the bar offers: the deployments and their modes. A script asks for the instants of the slider."""
        deployments = self.deployments()
        of_mode = [each for each in deployments if self.state.mode in (None, each.mode)]
        return {"deployments": of_mode, "modes": sorted({each.mode for each in deployments})}


OF_THE_BAR = frozenset({"deployment", "mode", "unit", "period", "as_of"})


def error_page(page: PageRequest, error: BacksightError) -> Response:
    """The page that says what went wrong and what to do."""
    try:
        state = read_state(page.query)
    except BacksightError:
        state = BarState()
    safe = replace(page, state=state, query={}, fragment=None)
    return safe.render("error.html", status=error.status, title=words(error.kind), error=error)


def safe_markup(text: str) -> Markup:
    """Markup that charts made: their texts are escaped there."""
    return Markup(text)  # noqa: S704 (charts escape every text)
