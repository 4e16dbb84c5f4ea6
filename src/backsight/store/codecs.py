"""Text forms of values whose stored text is not the JSON of their fields."""

from backsight.core.memory.conditions import condition_from_text, condition_text
from backsight.store.mapping import Codec

CONDITION = Codec(condition_text, condition_from_text)
