"""The demonstration has documents to search, and its market depends on the seed alone."""

from datetime import timedelta
from pathlib import Path

from backsight.runtime.demo import DOCUMENTS, START, demo_bars, write_workspace


def test_the_documents_of_the_demo_are_written_into_a_folder(tmp_path: Path) -> None:
    write_workspace(tmp_path / "workspace")
    assert {name: (tmp_path / "workspace" / name).read_text() for name in DOCUMENTS} == DOCUMENTS


def test_a_seed_makes_one_market() -> None:
    bars = demo_bars(seed=3, days=2)
    assert bars == demo_bars(seed=3, days=2)
    assert bars != demo_bars(seed=4, days=2)
    assert (bars[0].opened_at, bars[-1].closes_at) == (START, START + timedelta(days=2))
