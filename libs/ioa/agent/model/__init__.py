"""The model brain: a language model decides, within the legal messages. If it fails, nothing decides in its place."""

from ioa.agent.model.metered_calls import Budget, Cause
from ioa.agent.model.model_brain import ModelBrain

__all__ = ["Budget", "Cause", "ModelBrain"]
