"""The rule brain: a team of plain tools without a language model. Deterministic, and only as clever as it has to be."""

from ioa.agent.rules.brain import RuleBrain

__all__ = ["RuleBrain"]
