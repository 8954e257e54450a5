"""The model brain: a language model decides, within the legal messages. If it fails, nothing decides in its place."""

from ioa.agent.model.brain import ModelBrain
from ioa.agent.model.metered_calls import Budget, Cause

__all__ = ["Budget", "Cause", "ModelBrain"]
