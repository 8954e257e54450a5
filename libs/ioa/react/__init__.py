"""An agent that reasons and acts: its model asks for tools, sees what they bring, and answers (Yao et al., ReAct, 2022)."""

from ioa.react.agent import react_agent
from ioa.react.mcp_servers import Mcp, mcp
from ioa.react.tools import Call, Guard, Observation, ReactTool, tool

__all__ = ["Call", "Guard", "Mcp", "Observation", "ReactTool", "mcp", "react_agent", "tool"]
