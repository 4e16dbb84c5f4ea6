"""The state of the account and the strategy, in a prompt."""

from backsight.core.memory.affective import Mood
from backsight.core.prompts.state import your_state


def test_the_state_has_its_layout_to_the_byte_and_is_left_out_when_neutral() -> None:
    mood = Mood(drawdown=0.153, risk_appetite=0.4147, consecutive_losses=4)
    assert your_state(mood).text == (
        "## Your state\n- drawdown 15%, 76% of the 20% you accept: take 41% of your usual risk, 4 losses in a row"
    )
    assert your_state(Mood(consecutive_wins=3)).text == "## Your state\n- 3 wins in a row"
    assert your_state(Mood(drawdown=0.004, consecutive_losses=2)).text == ""
