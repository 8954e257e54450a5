"""An agent that reasons and acts: its model calls tools, reads their results, and answers (Yao et al., ReAct, 2022)."""

from ioa.react.mcp_servers import Mcp, mcp
from ioa.react.react_agent import ReactAgent
from ioa.react.tools import Call, Guard, Observation, ReactTool, tool

__all__ = ["Call", "Guard", "Mcp", "Observation", "ReactAgent", "ReactTool", "mcp", "tool"]
