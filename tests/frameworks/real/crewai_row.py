"""CrewAI: a crew of one agent, whose model does the task."""

from typing import Any

from crewai import Agent as Member
from crewai import BaseLLM, Crew, Task
from crewai.tools import tool
from pydantic import PrivateAttr

from ioa import TaskContext, adopt
from ioa.hosting.agent import Agent
from ioa.testing.foreign_agent import FinalAnswer, ForeignAgent, Made, ProgressStep, Spent


class ForeignModel(BaseLLM):
    """A model that plays the foreign agent."""

    _foreign: ForeignAgent = PrivateAttr()
    _ctx: TaskContext = PrivateAttr()
    _is_asked: bool = PrivateAttr(default=False)

    def playing(self, foreign: ForeignAgent, ctx: TaskContext) -> "ForeignModel":
        """Play a foreign agent."""
        self._foreign, self._ctx = foreign, ctx
        return self

    def call(self, messages: Any, *_: Any, **__: Any) -> str:
        """Answer, as the crew's prompt wants it; in a thread, which looks by itself whether it is to stop."""
        said = messages if isinstance(messages, str) else messages[-1]["content"]
        words = said.partition("Do this: ")[2].partition(" (end)")[0]
        if self._is_asked:
            return "Thought: I know\nFinal Answer: done"
        answer = ""
        for deed in self._foreign.play(words, self._ctx.task_key, lambda: self._ctx.cancelled):
            match deed:
                case ProgressStep(text):
                    self._is_asked = True
                    return f"Thought: {text}\nAction: look\nAction Input: {{}}"
                case Spent(tokens, answer_tokens):
                    self._track_token_usage_internal({"prompt_tokens": tokens, "completion_tokens": answer_tokens})
                case Made(name, data):
                    self._ctx.artifact(name, data)
                case FinalAnswer(text):
                    answer = text or ""
        return f"Thought: I know\nFinal Answer: {answer}"


@tool
def look() -> str:
    """Look."""
    return "seen"


def adopted(foreign: ForeignAgent) -> Agent:
    """Adopt a crew whose model is the foreign agent."""

    def made(ctx: TaskContext) -> Crew:
        model = ForeignModel(model="foreign").playing(foreign, ctx)
        member = Member(role="worker", goal="work", backstory="none", llm=model, tools=[look], max_retry_limit=0)
        task = Task(description="Do this: {task} (end)", expected_output="what was asked for", agent=member)
        return Crew(agents=[member], tasks=[task])

    return adopt.crewai("crew", made, description="Does its tasks")
