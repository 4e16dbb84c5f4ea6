"""Secrets in text: keys, tokens, passwords and seed phrases, which are refused at the door and never stored.

Every pattern takes time in proportion to the text, whatever the text is.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from backsight.core.errors import Refused

_VALUE = r"[\"']?\s{0,5}[:=]\s{0,5}[\"']?"
"""What stands between a name and its value."""
_KEY_LIKE = r"(?=[^\s\"',;]{0,80}[0-9])[^\s\"',;]{12}"
"""A value with a digit and at least twelve characters; a word of a sentence has no digit."""
_NAMES = (
    r"api[_ -]?(?:key|secret)|secret(?:[_ -]?(?:access[_ -]?)?key)?|access[_ -]?key|private[_ -]?key|passphrase"
    r"|mnemonic|(?:access|auth|api|bot|refresh|session|secret)[_ -]?token"
)
_SECRETS: Mapping[str, tuple[tuple[str, ...], re.Pattern[str]]] = {
    "a private key": (("-----begin",), re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
    "an AWS access key": (("akia", "asia"), re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    "a GitHub token": (
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        re.compile(r"\bgh[pousr]_[A-Za-z0-9]{36,}\b|\bgithub_pat_\w{40,}\b"),
    ),
    "a Slack token": (("xox",), re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}")),
    "a model provider's key": (("sk-",), re.compile(r"\bsk-(?=[A-Za-z_-]{0,99}[0-9])[A-Za-z0-9_-]{20}")),
    "a Google key": (("aiza",), re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b")),
    "a key of Backsight": (("bsk.",), re.compile(r"\bbsk\.[A-Za-z0-9_-]{1,140}\.[A-Za-z0-9_-]{43}")),
    "a web token": (("eyj",), re.compile(r"\beyJ[A-Za-z0-9_-]{8,400}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8}")),
    "a password in an address": (("://",), re.compile(r"\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@]{1,200}:[^\s/@]{3,200}@")),
    "a bearer token": (
        ("bearer",),
        re.compile(r"(?i)\bbearer\s{1,5}(?=[A-Za-z0-9._~+/-]{0,80}[0-9])[A-Za-z0-9._~+/-]{16}"),
    ),
    "a password": (("passw",), re.compile(rf"(?i)passw(?:or)?d{_VALUE}[^\s\"']{{8}}")),
    "a key": (
        ("key", "secret", "token", "passphrase", "mnemonic"),
        re.compile(rf"(?i)(?:{_NAMES})\w{{0,20}}(?:{_VALUE}|\s{{1,5}}(?:is|ist|est|es)\s{{1,5}}){_KEY_LIKE}"),
    ),
    "a key in a variable": (
        ("_key", "_secret", "_token", "_pass"),
        re.compile(rf"[A-Z0-9]_(?:KEY|SECRET|TOKEN|PASSWORD|PASSPHRASE){_VALUE}[^\s\"',;]{{8}}"),
    ),
    "a wallet's key": ((), re.compile(r"\b(?:0x)?(?=[0-9a-fA-F]*[a-fA-F])(?=[0-9a-fA-F]*[0-9])[0-9a-fA-F]{64}\b")),
}
"""For each kind of secret: what a text with one contains in small letters, and the pattern.

Nothing that a wallet's key contains is known before.
"""
_MARKS = (
    "-----begin", "akia", "asia", "_", "xox", "sk-", "aiza", "bsk.", "eyj", "://", "bearer", "pass", "key", "secret",
    "token", "mnemonic",
)  # fmt: skip
"""A text that contains none of these in small letters contains no secret but a wallet's key or a seed phrase."""
_LONG_NUMBER = re.compile(r"[0-9a-f]{64}")
_HASH_NAMES = ("tx", "hash", "transaction", "block", "sha", "digest")
"""What is written before 64 hexadecimal digits that are no key."""
_NEAR = 24

_KEY_END = re.compile(r"-----END [A-Z ]*PRIVATE KEY-----")

SEED_LENGTHS = frozenset({12, 15, 18, 21, 24})
SHORTEST_SEED = 23
"""Characters of twelve Chinese words with something between them."""
LONGEST_SEED = 400
"""Characters of a seed phrase with its numbers and its name."""
_SEED_NAMES = (
    "seed", "mnem", "recovery", "wallet", "backup phrase", "semilla", "récupération", "recupero",
    "助记词", "助記詞", "復元フレーズ", "니모닉", "복구",
)  # fmt: skip
_COMMON = """
    the and for with from was not are were but had has its our out his her who she him too per than their been which
    both while some could should would back down low new set get got big
    stop stops entries exits loss losses trades traded trading longs shorts ranges ranging
    break breaks breakout broke closed closing opened opening candle candles higher lower highs lows
    les des une par est pas qui avec dans pour los las del que con una por sin che non dei nel
    das der die den dem ein mit auf und ist nicht het een
"""
_NOT_IN_SEEDS = frozenset(_COMMON.split())
"""Words of trading, and of languages in Latin letters, that no standard list of seed words (BIP 39) has."""
_KOREAN_ENDINGS = "은는을를에했다요"
_MOST_KOREAN_ENDINGS = 0.25
"""Seed words of Korean are bare nouns, few of which end like the words of a sentence."""
_NUMBERING = re.compile(r"(?:\(?\d{1,2}[.):]?|[-*•])$")
_NAME = re.compile(r"^(.*\D)[:：](.*)", re.DOTALL)
_AROUND = " \t\"'`[](){}<>*_"


def secret_in(text: str) -> tuple[str, int] | None:
    """What a text seems to contain, and the line; None if it contains no secret.

    >>> secret_in("the cap is 2%"), secret_in("first\\nBINANCE_API_KEY=a1b2c3d4e5f6a7b8")
    (None, ('a key', 2))
    """
    first = next(_secrets_in(text), None)
    return None if first is None else (first.kind, first.first + 1)


class _Secret(NamedTuple):
    """What some lines of a text look like, with the indexes of the first and the last line."""

    kind: str
    first: int
    last: int


def _secrets_in(text: str) -> Iterator[_Secret]:
    small, lines = text.lower(), text.split("\n")
    if _may_have_secret(small):
        yield from _marked_secrets(text, small, lines)
    if len(text) >= SHORTEST_SEED:
        yield from _seed_phrases(lines)


def _marked_secrets(text: str, small: str, lines: Sequence[str]) -> Iterator[_Secret]:
    """Secrets of the kinds that have a pattern."""
    ends = list(accumulate(len(line) + 1 for line in lines))
    for kind, (parts, pattern) in _SECRETS.items():
        covered = 0  # by the secret before
        for match in pattern.finditer(text) if not parts or any(part in small for part in parts) else ():
            if match.start() < covered or (kind == "a wallet's key" and _is_hash(text, match.start())):
                continue
            covered = match.end()
            if kind == "a private key":  # all of it, and not only the line that announces it
                closing = _KEY_END.search(text, match.end())
                covered = len(text) if closing is None else closing.end()
            yield _Secret(kind, bisect_right(ends, match.start()), bisect_right(ends, covered - 1))


def _may_have_secret(small: str) -> bool:
    """Whether a text in small letters is worth the search for each kind of secret: few texts are."""
    return any(map(small.__contains__, _MARKS)) or _LONG_NUMBER.search(small) is not None


def _is_hash(text: str, start: int) -> bool:
    before = text[max(0, start - _NEAR) : start].lower()
    return any(name in before for name in _HASH_NAMES)


# Seed phrases


def _seed_phrases(lines: Sequence[str]) -> Iterator[_Secret]:
    """Lines that are a seed phrase, alone or together with neighbours that have some of its words each."""
    run: list[list[str]] = []  # the words of the lines above that may be a part of a phrase
    for number, line in enumerate([*lines, ""]):
        if is_seed_phrase(line):
            yield _Secret("a seed phrase", number, number)
        if len(lines) > 1 and line and (words := _words_of_seed(_named(line[: LONGEST_SEED + 1])[1])):
            run.append(words)
            continue
        if len(run) > 1 and sum(map(len, run)) in SEED_LENGTHS:
            first = number - len(run)
            above = lines[first - 1].rstrip(_AROUND) if first else ""
            name = above if above.endswith((":", "：")) else ""
            phrase = " ".join([name, *lines[first:number]])
            # Words one below the other may be any list.
            is_list = all(len(words) == 1 for words in run) and not _is_numbered(phrase)
            if is_seed_phrase(phrase) and (not is_list or _is_named(_named(phrase)[0])):
                yield _Secret("a seed phrase", first, number - 1)
        run = []


def is_seed_phrase(text: str) -> bool:
    """Whether a text on one line is a wallet's seed phrase, perhaps after its name, perhaps numbered.

    Lists of seed words exist in Latin letters, Chinese, Japanese and Korean.

    >>> is_seed_phrase("legal winner thank year wave sausage worth useful legal winner thank yellow")
    True
    >>> is_seed_phrase("wait for the retest and enter with half size below the high")
    False
    """
    if len(text) > 2 * LONGEST_SEED or len(text.split(None, min(SEED_LENGTHS) - 1)) < min(SEED_LENGTHS):
        return False
    name, rest = _named(text)
    is_named = _is_named(name)
    words = _words_of_seed(rest.lower() if is_named else rest)
    if len(words) not in SEED_LENGTHS:
        return False
    return is_named or ((not name or _is_numbered(rest)) and not _is_sentence(words))


def _named(text: str) -> tuple[str, str]:
    """What is written before the last colon of a text, and what after it; a colon after a number is no name."""
    parts = _NAME.match(text) if ":" in text or "：" in text else None
    return (parts[1].strip(_AROUND), parts[2]) if parts else ("", text)


def _is_named(name: str) -> bool:
    small = unicodedata.normalize("NFC", name).lower()
    return any(seed in small for seed in _SEED_NAMES)


def _is_numbered(text: str) -> bool:
    """Whether the numbers before the words of a text count from 1."""
    numbers = [int(word.strip("().:")) for word in text.split() if word.strip("().:").isdecimal()]
    return len(numbers) >= min(SEED_LENGTHS) and numbers == list(range(1, len(numbers) + 1))


def _words_of_seed(text: str) -> list[str]:
    """The words of a text without their numbers; empty if one of them cannot be a seed word."""
    bare = unicodedata.normalize("NFC", text).strip(_AROUND).replace(",", " ").replace("、", " ")
    words = list[str]()
    for part in bare.split():
        word = part.strip(_AROUND)
        if _may_be_seed_word(word):
            words.append(word)
        elif not _NUMBERING.match(part):
            return []  # most texts end here, after a few words
    return words


def _may_be_seed_word(word: str) -> bool:
    if not word.isalpha():
        return False
    if word[0] <= _LAST_LATIN:
        return 3 <= len(word) <= 8 and word.islower() and word[-1] <= _LAST_LATIN
    return _OTHER_SEED_WORD.fullmatch(word) is not None


_LAST_LATIN = "\u024f"
_OTHER_SEED_WORD = re.compile("[\u3041-\u3096\u30fc]{2,9}|[\uac00-\ud7a3]{2,6}|[\u4e00-\u9fff]")
"""A word in hiragana, in hangul, or a Chinese character."""


def _is_sentence(words: Collection[str]) -> bool:
    """Whether words that may all be seed words are rather those of a sentence."""
    endings = sum(word[-1] in _KOREAN_ENDINGS for word in words)
    return not _NOT_IN_SEEDS.isdisjoint(words) or endings >= _MOST_KOREAN_ENDINGS * len(words)


def refuse_secrets(text: str, *, field: str = "text") -> None:
    """Raise Refused if a text contains a string that looks like a secret.

    >>> refuse_secrets("the cap is 2%")
    >>> refuse_secrets("api_key = 3f9a8b7c6d5e4f3a")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Refused: text: line 1 looks like it contains a key; language models read it, so remove it
    """
    secret = secret_in(text)
    if secret is not None:
        raise Refused(
            f"line {secret[1]} looks like it contains {secret[0]}; language models read it, so remove it", field=field
        )


def without_secrets(text: str) -> str:
    """A text that must be recorded, without the lines that look like they contain a secret.

    >>> without_secrets("filled\\nBearer abcdef0123456789abcdef")
    'filled\\n[line removed: it looked like a bearer token]'
    """
    kinds: dict[int, str] = {}
    for secret in _secrets_in(text):
        for line in range(secret.first, secret.last + 1):
            kinds.setdefault(line, secret.kind)
    if not kinds:
        return text
    return "\n".join(
        f"[line removed: it looked like {kinds[number]}]" if number in kinds else line
        for number, line in enumerate(text.split("\n"))
    )
