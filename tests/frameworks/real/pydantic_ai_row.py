"""Pydantic AI: its `FunctionModel` does the task, and asks for a tool in between."""

from pydantic_ai import Agent as Assistant
from pydantic_ai import RunContext
from pydantic_ai.messages import BinaryContent, FilePart, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from ioa import TaskContext, adopt
from ioa.hosting.agent import Agent
from ioa.testing.foreign_agent import FinalAnswer, ForeignAgent, Made, ProgressStep, Spent


def adopted(foreign: ForeignAgent) -> Agent:
    """Adopt an assistant whose model is the foreign agent."""

    def made(ctx: TaskContext) -> Assistant[TaskContext, str]:
        async def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
            parts: list[TextPart | FilePart | ToolCallPart] = []
            usage = RequestUsage(input_tokens=0, output_tokens=0)
            if len(messages) > 1:
                return ModelResponse([TextPart("done")])
            async for deed in foreign.perform(str(messages[0].parts[0].content), messages[0].conversation_id or ""):
                match deed:
                    case ProgressStep(text):
                        parts += [TextPart(text), ToolCallPart("look", {})]
                    case Spent(tokens, answer_tokens):
                        usage = RequestUsage(input_tokens=tokens, output_tokens=answer_tokens)
                    case Made(_, data):
                        parts.append(FilePart(BinaryContent(data, media_type="application/octet-stream")))
                    case FinalAnswer(str(text)) if not any(isinstance(part, ToolCallPart) for part in parts):
                        parts.append(TextPart(text))
            return ModelResponse(parts, usage=usage)

        assistant = Assistant(FunctionModel(answer), output_type=[str, type(None)], deps_type=TaskContext, retries=0)

        @assistant.tool
        def look(run: RunContext[TaskContext]) -> str:
            """Look."""
            return run.deps.task_key

        return assistant

    return adopt.pydantic_ai("assistant", made, description="Does its tasks")
