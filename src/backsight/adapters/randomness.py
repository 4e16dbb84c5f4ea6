"""The system's randomness: the only place that draws secrets."""

import secrets


class SystemRandomness:
    """Random bytes of the operating system, fit for secrets."""

    def random_bytes(self, count: int) -> bytes:
        return secrets.token_bytes(count)
