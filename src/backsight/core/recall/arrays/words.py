"""The stems of texts as codes, one array for all texts."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from backsight.core.text.stems import STOPS, TEXT_END, stem, stems, words_of_texts

END, STOP = -1, -2
"""Codes of the end of a text and of a stop word; stems have codes from 0 on."""
CODE_BITS = 32


def encode_texts(
    texts: Sequence[str | None], code_of: Callable[[str], int]
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The codes of each text's distinct stems, ascending, one text after the other, and the index at which each ends.

    >>> codes, ends = encode_texts(["Ranges broke", None, "the range"], {"rang": 7, "brok": 4}.__getitem__)
    >>> codes.tolist(), ends.tolist()
    ([4, 7, 7], [2, 2, 3])
    """
    words, others = words_of_texts(texts)
    codes = np.fromiter(map(_StemCodes(code_of).__getitem__, words), np.int64, len(words))
    text_numbers, is_stem = np.cumsum(codes == END), codes >= 0
    # One number for each text and stem, so that sorting brings the stems of a text together and in order.
    keys = (text_numbers[is_stem] << CODE_BITS) | codes[is_stem]
    if others:
        rest = [(number << CODE_BITS) | code_of(each) for number in others for each in stems(texts[number])]
        keys = np.concatenate([keys, np.array(rest, np.int64)])
    keys.sort()
    keys = keys[np.diff(keys, prepend=-1) > 0]
    counts = np.bincount(keys >> CODE_BITS, minlength=len(texts))
    return (keys & ((1 << CODE_BITS) - 1)).astype(np.uint32), np.cumsum(counts, dtype=np.int64)


class _StemCodes(dict[str, int]):
    """The code of each word's stem."""

    def __init__(self, code_of: Callable[[str], int]) -> None:
        super().__init__(dict.fromkeys(STOPS, STOP) | {TEXT_END: END})
        self._code_of = code_of

    def __missing__(self, word: str) -> int:
        code = self[word] = self._code_of(stem(word))
        return code
