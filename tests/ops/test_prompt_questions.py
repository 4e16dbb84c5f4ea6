"""What a small language model reads in the prompt of a tick: five facts, at ten ticks of the demo.

The model writes nothing. Each question comes with its possible answers, and the answer that the model thinks most
likely after the prompt counts. The wrong answers are what the same fact was at other ticks, so an answer can be known
only from this tick's prompt.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from backsight.memory import Memory, open_memory
from backsight.runtime import demo
from backsight.runtime.clock import SimulatedClock
from backsight.settings import Settings

DAYS = 75
TICKS = tuple(
    datetime(2025, month, day, hour, tzinfo=UTC)
    for month, day, hour in [
        (1, 22, 12),
        (1, 30, 12),
        (2, 6, 15),
        (2, 12, 12),
        (2, 14, 15),
        (2, 19, 18),
        (2, 28, 10),
        (3, 5, 12),
        (3, 14, 18),
        (3, 20, 14),
    ]
)
"""With a long, a short and no position, after stops and after turns."""


@dataclass(frozen=True)
class Question:
    """A question, and the words with which its answer begins."""

    fact: str
    text: str
    start: str


QUESTIONS = (
    Question("open position", "Is the open position in XAUUSD long, short or none?", "The open position in XAUUSD is"),
    Question("last exit", "How did the last closed trade, #1, end?", "The exit of trade #1 was:"),
    Question("longs that won", "How many longs in XAUUSD were won, of how many?", "XAUUSD long: won"),
    Question("drawdown", "How large is the drawdown below the equity peak?", "The drawdown below the equity peak is"),
    Question(
        "daily loss",
        "After what loss must no more trades be opened for the day?",
        "Stop opening trades for the day after a loss of",
    ),
)
READ = ("longs that won", "drawdown", "daily loss")
"""What a model of 135 million parameters reads. It does no better than chance on the position and the last exit."""


@dataclass(frozen=True)
class Tick:
    """A tick's prompt, and the right answer to each question, in their order."""

    system: str
    message: str
    answers: tuple[str, ...]


def loss_limit(at: datetime) -> int:
    """The daily loss in percent that the manual allows; the owner raises it every nine days."""
    return 1 + (at - demo.START).days // 9


def demo_ticks(folder: Path) -> list[Tick]:
    """The prompts of the ticks, from a demo whose owner changes the manual while it runs."""
    clock = SimulatedClock(demo.START)
    manual = folder / "TRADING_MANUAL.md"
    (folder / "SOUL.md").write_text(demo.SOUL, encoding="utf-8")
    limits: dict[datetime, int] = {}

    def follow_owner(task: str, *_: object) -> None:
        limit = loss_limit(clock.now())
        if task.startswith("Trading") and [*limits.values()][-1:] != [limit]:
            manual.write_text(demo.MANUAL.replace("a loss of 3%", f"a loss of {limit}%"), encoding="utf-8")
            memory.reindex()
            limits[clock.now()] = limit

    settings = Settings(url="sqlite://", actor="demo", workspace=str(folder))
    with open_memory(settings=settings, clock=clock) as memory:
        follow_owner("Trading starts")
        demo.fill(memory, clock, days=DAYS, every=timedelta(hours=1), progress=follow_owner)
        return [tick_of(memory, at, limit=limits[max(since for since in limits if since <= at)]) for at in TICKS]


def tick_of(memory: Memory, at: datetime, *, limit: int) -> Tick:
    """The prompt of a tick; what it must say is taken from the trades, the mood and the manual."""
    prompt = memory.preview_context(deployment=demo.DEPLOYMENT, memory_arm="shown", as_of=at)
    trades = memory.list_trades(deployment=demo.DEPLOYMENT, limit=100).trades
    entered = [each for each in trades if each.opened_at and each.opened_at <= at]
    position = [each.direction for each in entered if each.closed_at is None or at < each.closed_at]
    closed = [(each.closed_at, each.exit_reason or "") for each in entered if each.closed_at and each.closed_at <= at]
    reason = max(closed)[1]
    turn = re.match("Turn (long|short)", reason)
    won = re.search(r"XAUUSD long: .*?(\d+ of \d+) won", prompt.text)
    drawdown = memory.get_agent_state(deployment=demo.DEPLOYMENT, as_of=at).mood.drawdown
    return Tick(
        system=prompt.system_text,
        message=prompt.text,
        answers=(
            position[0] if position else "none",
            f'"{turn.group()}' if turn else "stopped out",
            won.group(1) if won else "",
            f"{100 * drawdown:.2g}%",
            f"{limit}%",
        ),
    )


def options(answers: Sequence[str], right: str) -> list[str]:
    """The right answer and up to three that are right at other ticks."""
    every = sorted(set(answers))
    place = every.index(right)
    return [every[(place + step) % len(every)] for step in range(min(4, len(every)))]


def chance_of_at_least(right: int, chances: Sequence[float]) -> float:
    """The probability of so many right answers or more by guessing, given the chance of each answer."""
    distribution = [1.0]
    for chance in chances:
        wrong = [each * (1.0 - chance) for each in distribution]
        hit = [each * chance for each in distribution]
        distribution = [a + b for a, b in zip([*wrong, 0.0], [0.0, *hit], strict=True)]
    return sum(distribution[right:])


class Reader:
    """A model that reads a prompt once, and then says how likely an answer is."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def _post(self, path: str, **body: Any) -> Any:
        return self._client.post(path, json=body).raise_for_status().json()

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text, with the marks of a conversation as such."""
        answer: list[int] = self._post("/tokenize", content=text, add_special=False, parse_special=True)["tokens"]
        return answer

    def log_likelihood(self, before: list[int], text: str) -> float:
        """The logarithm of the probability that the model goes on with this text."""
        total = 0.0
        for token in self.tokens(text):
            answer = self._post(
                "/completion",
                prompt=before,
                n_predict=1,
                n_probs=1,
                temperature=0,
                logit_bias=[[token, 1000.0]],  # makes it the next token; the reported probability is without it
                cache_prompt=True,
            )
            (step,) = answer["completion_probabilities"]
            assert step["id"] == token, "the server did not score the token of the answer"
            assert not answer["truncated"], "the prompt does not fit the model's context"
            total += step["logprob"]
            before = [*before, token]
        return total

    def answer(self, tick: Tick, question: Question, among: Sequence[str]) -> str:
        """The most likely of the answers."""
        before = self.tokens(
            f"<|im_start|>system\n{tick.system}<|im_end|>\n<|im_start|>user\n{tick.message}\n\n{question.text}<|im_end|>\n"
            f"<|im_start|>assistant\n{question.start}"
        )
        return max(among, key=lambda each: self.log_likelihood(before, f" {each}"))


@pytest.fixture(scope="module")
def ticks(tmp_path_factory: pytest.TempPathFactory) -> list[Tick]:
    return demo_ticks(tmp_path_factory.mktemp("workspace"))


@pytest.mark.slow
def test_a_small_model_reads_facts_in_the_prompt(
    local_model: str, ticks: list[Tick], capsys: pytest.CaptureFixture[str]
) -> None:
    by_question = list(zip(*(tick.answers for tick in ticks), strict=True))
    right = dict.fromkeys([question.fact for question in QUESTIONS], 0)
    chances: dict[str, list[float]] = {fact: [] for fact in right}
    with httpx.Client(base_url=local_model.removesuffix("/v1"), timeout=900.0) as client:
        reader = Reader(client)
        for tick in ticks:
            for question, wanted, over_time in zip(QUESTIONS, tick.answers, by_question, strict=True):
                among = options(over_time, wanted)
                chances[question.fact].append(1.0 / len(among))
                right[question.fact] += reader.answer(tick, question, among) == wanted
    with capsys.disabled():
        for fact, count in right.items():
            sys.stdout.write(f"\n{fact}: {count} of {len(ticks)} right, {sum(chances[fact]):.1f} by chance")
    every = [chance for each in chances.values() for chance in each]
    assert chance_of_at_least(sum(right.values()), every) < 0.001, right
    for fact in READ:
        assert chance_of_at_least(right[fact], chances[fact]) < 0.01, right


def test_guessing_is_counted_exactly() -> None:
    assert chance_of_at_least(0, [0.5, 0.25]) == 1.0
    assert chance_of_at_least(1, [0.5, 0.25]) == 1.0 - 0.5 * 0.75
    assert chance_of_at_least(2, [0.5, 0.25]) == 0.5 * 0.25


def test_the_options_of_a_question_are_other_ticks_answers() -> None:
    assert options(["long", "none", "long", "short"], "none") == ["none", "short", "long"]
    assert options(["2", "3", "4", "5", "6"], "5") == ["5", "6", "2", "3"]


@pytest.mark.slow
def test_each_fact_is_in_its_prompt(ticks: list[Tick]) -> None:
    assert len(ticks) == len(TICKS)
    for tick in ticks:
        position, exit_reason, won, drawdown, limit = tick.answers
        assert (f"- XAUUSD {position} size=" in tick.message) == (position != "none")
        assert re.search(rf"^- #1 .*{re.escape(exit_reason)}", tick.message, re.MULTILINE)
        assert re.search(rf"XAUUSD long: .*: {won} won", tick.message)
        assert f"drawdown {drawdown}, " in tick.message
        assert tick.system.count("after a loss of") == tick.system.count(f"after a loss of {limit} of") == 1
