"""IoA, an Internet of Agents on NATS. The names below are the public API; everything else may change."""

from ioa.agent.sdk import Agent, InputFile, TaskContext, UpstreamResult

__all__ = ["Agent", "InputFile", "TaskContext", "UpstreamResult"]
