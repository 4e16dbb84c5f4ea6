"""Randomness for tests: bytes that are the same in every run."""

from hashlib import sha256
from itertools import count


class FakeRandomness:
    """Bytes that follow from a name and from how many were drawn before."""

    def __init__(self, name: str = "") -> None:
        self._name = name
        self._draws = count()

    def random_bytes(self, count: int) -> bytes:
        block = sha256(f"{self._name} {next(self._draws)}".encode()).digest()
        return (block * (count // len(block) + 1))[:count]
