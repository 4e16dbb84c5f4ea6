"""The owner's rules in the prompt: the whole protocol in the system prompt, and in the message what applies here.

The protocol is the text of SOUL and manual. It changes only when the files do, so providers can cache it. Rules are the
owner's words and are not quoted; they are flattened to one line, so that none can pass for a heading of the prompt.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from backsight.core.documents.citation import Citation, place_of
from backsight.core.documents.protocol import Rule, rules_in
from backsight.core.prompts.sections import BETWEEN, CEILINGS, Row, Section, section_of
from backsight.core.text.tokens import estimate
from backsight.core.text.untrusted_text import flat, quote, shorten

PROTOCOL = "The owner's protocol: rules that always apply, in the owner's order. Cite a rule as FILE:LINE."
HEADING = "## Rules and incidents that apply here (from the workspace)"
MOST = 160
"""Characters of an incident."""
MOST_RULE_TOKENS = 90
"""A longer rule is pointed out by its citation; the protocol has its text."""
NAMED_TOKENS = 120
"""The tokens within which the rules that do not fit are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolText:
    """The protocol as the agent reads it, and the rules that did not fit."""

    text: str
    """Empty without rules."""
    rules: tuple[Rule, ...]
    left_out: tuple[Rule, ...]

    @property
    def warning(self) -> str:
        """A warning for the owner if the agent does not always see every rule; else empty."""
        if not self.left_out:
            return ""
        return (
            f"{len(self.left_out)} of {len(self.rules)} rules of SOUL and manual do not fit into the"
            f" {CEILINGS['protocol']:,} tokens that agents always see: {', '.join(_places(self.left_out))};"
            " shorten the files"
        )


@lru_cache(maxsize=32)
def protocol_text(files: tuple[tuple[str, str], ...], notes: tuple[str, ...] = ()) -> ProtocolText:
    """The rules of the given files, in order and whole, within 1,500 tokens; those that do not fit are named.

    `files` are paths and texts, `notes` what the agent must know about the files.

    >>> manual = "# Manual\\n\\n## R3_CAP\\n\\n1. Never above 2%.\\n2. Stop\\n   first.\\n"
    >>> print(protocol_text((("M.md", manual),)).text)
    The owner's protocol: rules that always apply, in the owner's order. Cite a rule as FILE:LINE.
    From M.md:
    R3_CAP:
    - [5] Never above 2%.
    - [6-7] Stop first.
    """
    rules = tuple(rule for path, text in files for rule in rules_in(path, text) if flat(rule.text))
    ceiling = CEILINGS["protocol"]
    whole = _text(rules, (), notes)
    if estimate(whole + BETWEEN) <= ceiling:
        return ProtocolText(text=whole if rules or notes else "", rules=rules, left_out=())
    shown, left_out = list[Rule](), list[Rule]()
    around = [PROTOCOL, *map(_note_line, notes), *(_file_line(path) for path, _ in files)]
    left = ceiling - NAMED_TOKENS - estimate("\n".join(around) + BETWEEN)
    for rule in rules:
        # A heading is charged to each rule, since the rule above it may not fit.
        cost = estimate(f"{_heading_line(rule)}\n") + estimate(f"{_rule_line(rule)}\n")
        fits = cost <= left
        (shown if fits else left_out).append(rule)
        left -= cost if fits else 0
    return ProtocolText(text=_text(shown, left_out, notes), rules=rules, left_out=tuple(left_out))


def _text(rules: Sequence[Rule], left_out: Sequence[Rule], notes: Sequence[str]) -> str:
    lines = [PROTOCOL, *map(_note_line, notes)]
    for path, of_file in groupby(rules, key=lambda rule: rule.path):
        lines.append(_file_line(path))
        for heading, members in groupby(of_file, key=_heading_line):
            lines += [heading, *map(_rule_line, members)]
    if left_out:
        lines.append(_named(left_out))
    return "\n".join(line for line in lines if line)


def _note_line(note: str) -> str:
    return f"Note: {note}."


def _file_line(path: str) -> str:
    return f"From {shorten(path, most=80, tokens=40)}:"


def _heading_line(rule: Rule) -> str:
    """The headings above a rule without the title of the file; empty if there are none."""
    headings = ", ".join(shorten(each, tokens=30) for each in rule.heading[1:])
    return f"{headings}:" if headings else ""


def _rule_line(rule: Rule) -> str:
    lines = rule.place.rpartition(":")[2]
    return f"- [{lines}] {flat(rule.text)}"


def _named(left_out: Sequence[Rule]) -> str:
    """The rules that did not fit, by their places; as many places as fit."""
    places = _places(left_out)
    for count in range(len(places), -1, -1):
        rest = len(places) - count
        more = f"{' and ' if count else ''}{rest} more places" if rest else ""
        text = f"Not shown for length, read them in: {', '.join(places[:count])}{more}."
        if estimate(f"{text}\n") <= NAMED_TOKENS:
            return text
    raise AssertionError("the shortest text always fits")


def _places(rules: Iterable[Rule]) -> list[str]:
    """File and lines of the rules; rules of one file that follow each other share a place."""
    places: list[tuple[str, int, int]] = []
    for rule in rules:
        path, first, last = places[-1] if places else ("", 0, 0)
        follows = path == rule.path and rule.start_line - last <= FOLLOWS
        if follows:
            places[-1] = (path, first, rule.end_line)
        else:
            places.append((rule.path, rule.start_line, rule.end_line))
    return [shorten(place_of(*place), most=100, tokens=50) for place in places]


FOLLOWS = 5
"""Rules with at most this many lines of headings and blank lines between them count as one place."""


def rules_and_incidents(applying: Sequence[Rule], incidents: Iterable[Citation] = ()) -> Section:
    """The rules that apply to the decision, then incidents that do; as many as fit."""
    rows = [Row(rule_line(rule), 0) for rule in applying]
    rows += [Row(incident_line(incident), 1) for incident in incidents]
    return section_of("rules_and_incidents", HEADING, rows)


def rule_line(rule: Rule) -> str:
    """A rule on one line with its heading and its place, whole; a very long one by its place alone."""
    heading = shorten(rule.heading[-1], most=40, tokens=20) if rule.heading else "a rule"
    place = shorten(rule.place, most=80, tokens=40)
    text = flat(" ".join(filter(None, (rule.introduction, rule.text))))
    line = f"- {heading}: {text} ({place})"
    return line if estimate(line) <= MOST_RULE_TOKENS else f"- {heading}: see the protocol ({place})"


def incident_line(citation: Citation) -> str:
    """The text of an incident as a quote, with its place."""
    report = " ".join(_body(citation.snippet))
    return f"- incident: {quote(report, most=MOST, tokens=60)} ({shorten(citation.place, most=80, tokens=40)})"


def _body(snippet: str) -> Iterator[str]:
    yield from (line for line in snippet.splitlines() if line.strip() and not line.startswith("#"))
