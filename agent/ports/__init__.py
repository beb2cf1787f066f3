"""Ports with a meter behind them: opened, probed, recorded and played again."""
