"""The model brain: a language model decides, within what is legal, and where it fails nobody does, unless rules are to."""

from ioa.agent.model.brain import ModelBrain
from ioa.agent.model.budget import Budget
from ioa.agent.model.tally import Cause, ModelTally

__all__ = ["Budget", "Cause", "ModelBrain", "ModelTally"]
