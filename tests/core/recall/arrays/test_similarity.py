"""Similarity of rows agrees with the plain definition, and never exceeds its bound."""

import numpy as np
import pytest
from hypothesis import given, settings

from backsight.core.instants import Horizon
from backsight.core.memory.episodic import Episode
from backsight.core.recall.arrays.candidates import Filters, candidates_of
from backsight.core.recall.arrays.columns import columns_of
from backsight.core.recall.arrays.similarity import similarity_to
from backsight.core.recall.score import Situation, similarity
from backsight.core.text.stems import stems, text_likeness
from backsight.testing import T0
from core.recall.arrays.test_scan import EPISODES, QUERIES


@given(EPISODES, QUERIES)
@settings(deadline=None, max_examples=100)
def test_the_similarity_of_rows_is_that_of_the_formula(episodes: list[Episode], query: Situation) -> None:
    latest = {episode.id: episode for episode in sorted(episodes, key=lambda each: each.known_at)}
    columns = columns_of(latest.values())
    candidates = candidates_of(columns, Filters(), Horizon(as_of=T0.replace(year=2100)))
    rows = candidates.all_rows()
    prepared = similarity_to(query, candidates)
    with np.errstate(all="ignore"):  # as in a scan: a price of 0 divides nothing
        values, bounds = prepared.of(rows), prepared.upper_bound(rows)
    assert np.all(values <= bounds + 1e-9)
    for row, value in zip(rows.tolist(), values.tolist(), strict=True):
        episode = latest[columns.id(row)]
        shared = text_likeness(query.words, stems(episode.market_context)) if query.words else None
        plain = similarity(
            query, symbol=episode.symbol, direction=episode.direction, context=episode.context, text=shared
        )
        assert value == pytest.approx(plain, abs=1e-9)
