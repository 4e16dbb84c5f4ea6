"""The loops that run agents: live, in a backtest, or as a replay."""
