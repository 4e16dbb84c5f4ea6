"""Secrets in text: keys, tokens, passwords and seed phrases, which are refused at the door and never stored.

Every pattern takes time in proportion to the text, whatever the text is.
"""

import re
from collections.abc import Mapping

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
        re.compile(rf"(?i)(?:{_NAMES})\w{{0,20}}{_VALUE}{_KEY_LIKE}"),
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

SEED_LENGTHS = frozenset({12, 15, 18, 21, 24})
_SEED_NAMES = ("seed", "mnemonic", "recovery", "wallet", "backup phrase")
_COMMON = """
    the and for with from was not are were but had has its our out his her who she him all any too per via off
    stop stops entry entries exit exits loss losses trade trades traded trading long longs shorts range ranges ranging
    break breaks breakout broke broken closed closing opened opening candle candles higher lower highs lows
"""
_NOT_IN_SEEDS = frozenset(_COMMON.split())
"""Words of English and of trading that the standard list of seed words (BIP 39) does not have."""


def secret_in(text: str) -> tuple[str, int] | None:
    """What a text seems to contain, and the line; None if it contains no secret.

    >>> secret_in("the cap is 2 %"), secret_in("first\\nBINANCE_API_KEY=a1b2c3d4e5f6a7b8")
    (None, ('a key', 2))
    """
    small = text.lower()
    for secret, (parts, pattern) in _SECRETS.items() if _may_have_secret(small) else ():
        match = pattern.search(text) if not parts or any(part in small for part in parts) else None
        if match and not (secret == "a wallet's key" and _is_hash(text, match.start())):  # noqa: S105
            return secret, text.count("\n", 0, match.start()) + 1
    return next(
        (("a seed phrase", number) for number, line in enumerate(text.split("\n"), start=1) if is_seed_phrase(line)),
        None,
    )


def _may_have_secret(small: str) -> bool:
    """Whether a text in small letters is worth the search for each kind of secret: few texts are."""
    return any(map(small.__contains__, _MARKS)) or _LONG_NUMBER.search(small) is not None


def _is_hash(text: str, start: int) -> bool:
    before = text[max(0, start - _NEAR) : start].lower()
    return any(name in before for name in _HASH_NAMES)


def is_seed_phrase(line: str) -> bool:
    """Whether a line consists of the words of a wallet's seed phrase, perhaps after its name, perhaps numbered.

    >>> is_seed_phrase("legal winner thank year wave sausage worth useful legal winner thank yellow")
    True
    >>> is_seed_phrase("wait for the retest and enter with half size below the high")
    False
    """
    if len(line) > 400 or line.count(" ") < min(SEED_LENGTHS) - 1:
        return False
    name, colon, rest = line.rpartition(":")
    words = [word for word in rest.replace(",", " ").split() if not word.rstrip(".)").isdecimal()]
    if len(words) not in SEED_LENGTHS or not all(map(_may_be_seed_word, words)):
        return False
    named = bool(colon) and any(seed in name.lower() for seed in _SEED_NAMES)
    return named or (not colon and _NOT_IN_SEEDS.isdisjoint(words))


def _may_be_seed_word(word: str) -> bool:
    return 3 <= len(word) <= 8 and word.isascii() and word.isalpha() and word.islower()


def refuse_secrets(text: str, *, field: str = "text") -> None:
    """Raise Refused if a text contains a string that looks like a secret.

    >>> refuse_secrets("the cap is 2 %")
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
    if secret_in(text) is None:
        return text
    lines = ((line, secret_in(line)) for line in text.split("\n"))
    return "\n".join(
        line if secret is None else f"[line removed: it looked like {secret[0]}]" for line, secret in lines
    )
