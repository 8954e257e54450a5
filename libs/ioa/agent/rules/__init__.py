"""The rule brain: coordinates a team of agents without a language model."""

from ioa.agent.rules.rules_brain import RuleBrain

__all__ = ["RuleBrain"]
