"""Who may call an operation. A module of its own, so that `backsight --help` does not import pydantic."""

from typing import Literal, get_args

Audience = Literal["trader", "coach", "owner"]
AUDIENCES: tuple[Audience, ...] = get_args(Audience)
