"""The prompt section with the state of the account and the strategy, in one line."""

from collections.abc import Iterator

from backsight.core.memory.affective import MAX_DRAWDOWN, Mood
from backsight.core.prompts.amounts import share
from backsight.core.prompts.sections import Section, section_of

HEADING = "## Your state"
NOTABLE_DRAWDOWN = 0.005
NOTABLE_STREAK = 3
LONGEST_STREAK = 999
USUAL_APPETITE = 0.995
"""From this risk appetite on the usual risk is taken."""


def your_state(mood: Mood) -> Section:
    """Drawdown, risk to take and streak; empty in a neutral state, which has neither a drawdown nor a streak.

    >>> print(your_state(Mood(drawdown=0.12, risk_appetite=0.64, consecutive_losses=3)).text)
    ## Your state
    - drawdown 12%, 60% of the 20% you accept: take 64% of your usual risk, 3 losses in a row
    >>> print(your_state(Mood(drawdown=0.39, risk_appetite=0.1)).text)
    ## Your state
    - drawdown 39%, beyond the 20% you accept: take 10% of your usual risk
    >>> your_state(Mood(consecutive_wins=1)).text
    ''
    """
    parts = list(_parts(mood))
    return section_of("state", HEADING, [f"- {', '.join(parts)}"] if parts else [])


def _parts(mood: Mood) -> Iterator[str]:
    if mood.drawdown >= NOTABLE_DRAWDOWN:
        used, accepted = mood.drawdown / MAX_DRAWDOWN, share(MAX_DRAWDOWN)
        limit = f"beyond the {accepted} you accept" if used > 1 else f"{share(used)} of the {accepted} you accept"
        appetite = f": take {share(mood.risk_appetite)} of your usual risk"
        yield f"drawdown {share(mood.drawdown)}, {limit}{appetite if mood.risk_appetite < USUAL_APPETITE else ''}"
    losses, wins = mood.consecutive_losses, mood.consecutive_wins
    if max(losses, wins) >= NOTABLE_STREAK:
        count = f"{max(losses, wins)}" if max(losses, wins) <= LONGEST_STREAK else f">{LONGEST_STREAK}"
        yield f"{count} {'losses' if losses >= wins else 'wins'} in a row"
