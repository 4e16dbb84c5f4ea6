"""The prompt section with the state of the account and the strategy, in one line."""

from backsight.core.memory.affective import Mood
from backsight.core.prompts.amounts import share
from backsight.core.prompts.sections import Section, section_of

HEADING = "## Your state"
NOTABLE_DRAWDOWN = 0.005
NOTABLE_STREAK = 3
LONGEST_STREAK = 999


def your_state(mood: Mood) -> Section:
    """Drawdown, risk appetite and streak; empty in a neutral state, which has neither a drawdown nor a streak.

    >>> print(your_state(Mood(drawdown=0.062, risk_appetite=0.9, consecutive_losses=3)).text)
    ## Your state
    - drawdown 6.2% below the equity peak, risk appetite 90% of normal, 3 losses in a row
    >>> your_state(Mood(consecutive_wins=1)).text
    ''
    """
    parts = []
    if mood.drawdown >= NOTABLE_DRAWDOWN:
        parts.append(f"drawdown {share(mood.drawdown)} below the equity peak")
        parts.append(f"risk appetite {share(mood.risk_appetite)} of normal")
    losses, wins = mood.consecutive_losses, mood.consecutive_wins
    if max(losses, wins) >= NOTABLE_STREAK:
        count = f"{max(losses, wins)}" if max(losses, wins) <= LONGEST_STREAK else f">{LONGEST_STREAK}"
        parts.append(f"{count} {'losses' if losses >= wins else 'wins'} in a row")
    return section_of("state", HEADING, [f"- {', '.join(parts)}"] if parts else [])
