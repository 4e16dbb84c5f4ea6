"""Questions with and without an answer, to two small workspaces, each in five languages.

Workspaces and questions are in `tests/data`. The score was fitted to the questions in `questions.json` among others;
those in `held_out_questions.json` were written afterwards, before any search for them, and no coefficient was fitted to
them. Some questions have typing errors, other spellings, numbers or tickers. A citation is right if its snippet
contains the answer. Reported are the share of right answers among the first and the first five citations, the mean
lines of a right citation, and the share of questions without an answer that get no citation at all.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from backsight.memory import Memory, open_memory
from backsight.settings import Settings

FOLDER = Path(__file__).parent.parent / "tests/data"
SETS = ("questions", "held_out_questions")
DEPTH = 5


def lay_out(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def ask(memory: Memory, questions: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], int | None, int]]:
    """Each question with the place of its first right citation (or None) and the lines of that citation.

    For a question without an answer, the place of any citation is given.
    """
    for question in questions:
        citations = memory.search_memory(query=question["text"]).citations
        right = [
            place
            for place, cited in enumerate(citations)
            if "path" not in question or (cited.path == question["path"] and question["answer"] in cited.snippet)
        ]
        place = right[0] if right else None
        lines = 0 if place is None else citations[place].end_line - citations[place].start_line + 1
        yield question, place, lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--misses", action="store_true", help="list the questions with a wrong answer")
    parser.add_argument("--sets", nargs="*", default=SETS, help="the sets of questions to ask")
    options = parser.parse_args()
    columns = (
        "set",
        "slot",
        "language",
        "questions",
        "recall@1",
        "recall@5",
        "lines cited",
        "without answer",
        "nothing",
    )
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    for name, slot in product(options.sets, ("sqlite_fts", "hybrid_embeddings")):
        data = json.loads((FOLDER / f"{name}.json").read_text())
        with tempfile.TemporaryDirectory() as folder:
            lay_out(Path(folder), data["files"])
            settings = Settings(url="sqlite://", owner="ana", workspace=folder, search=slot)
            with open_memory(settings=settings) as memory:
                memory.reindex()
                results = list(ask(memory, data["questions"]))
        for language in (*dict.fromkeys(each["language"] for each in data["questions"]), "all"):
            chosen = [each for each in results if language in ("all", each[0]["language"])]
            print(f"| {name} | {slot} | {language} | {_figures(chosen)} |")
        if options.misses:
            for question, place, _ in results:
                if ("path" in question) != (place is not None and place < 1):
                    print(f"    {question['kind']}: {question['text']} -> {place}")


def _figures(results: Sequence[tuple[Mapping[str, Any], int | None, int]]) -> str:
    answered = [(place, lines) for question, place, lines in results if "path" in question]
    empty = [place is None for question, place, _ in results if "path" not in question]
    recalls = [sum(place is not None and place < most for place, _ in answered) / len(answered) for most in (1, DEPTH)]
    lines = statistics.fmean(lines for place, lines in answered if place is not None)
    figures = f"{recalls[0]:.2f} | {recalls[1]:.2f} | {lines:.1f} | {len(empty)} | {statistics.fmean(empty):.2f}"
    return f"{len(answered)} | {figures}"


if __name__ == "__main__":
    main()
