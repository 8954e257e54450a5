"""The rule brain: coordinates a team of agents without a language model."""

from ioa.agent.rules.brain import RuleBrain

__all__ = ["RuleBrain"]
