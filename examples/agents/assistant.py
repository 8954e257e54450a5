"""Do what no other agent does by asking a language model: translate, rewrite, explain. It joins only where a model is configured.

The model sees the task, earlier results and the texts that came with the goal. Its answer says who wrote it: nobody checks it.
"""

from __future__ import annotations

import asyncio
import json
import os
from datetime import timedelta

from pydantic import BaseModel

from ioa import Agent, InvalidInputError, TaskContext, TaskError
from ioa.adapters.openai.chat import ModelSettings, open_openai_chat
from ioa.ports.chat_model import AnswerLimits, ChatMessage, ChatModel
from task_files import read_text, with_suffix

MAX_BYTES = 60_000
_TEXTS = (".txt", ".md", ".csv", ".html", ".json")
_LIMITS = AnswerLimits(max_tokens=4_000, timeout=timedelta(minutes=3))
_ROLE = (
    'You do one task of a team. Answer with nothing but JSON: {"text": "…"}. '
    "Do not invent figures or sources; say what you cannot do."
)

agent = Agent(
    "assistant",
    description="Does by a language model what needs understanding: translates, rewrites, explains, drafts and classifies texts.",
    skills=["translation", "writing and rewriting", "explanations and general knowledge"],
    examples=[
        "translate this into German", "rewrite this letter more politely", "explain how a heat pump works",
        "draft an e-mail that declines the offer", "what is the mood of these reviews", "give me ideas for a slogan",
        "answer this question from general knowledge",
    ],
    tags=["language model", "writing"],
    may_team_up=False,
)  # fmt: skip


class _Reply(BaseModel):
    text: str


@agent.task
async def run(task: str, ctx: TaskContext) -> str:
    """Ask the model that the environment names.

    Raises:
        InvalidInputError: No model is configured.
    """
    settings = ModelSettings.from_environment(os.environ, agent.agent_id)
    if settings is None:
        raise InvalidInputError("No language model is configured.", hint="Set IOA_LLM_BASE_URL, IOA_LLM_API_KEY and IOA_LLM_MODEL.")
    async with open_openai_chat(settings) as chat:
        return await reply(task, ctx, chat, settings.model)


async def reply(task: str, ctx: TaskContext, chat: ChatModel, model: str) -> str:
    """Have a model do the task.

    Raises:
        InvalidInputError: The texts that came along are too long for one question, which are not cut in silence.
        TaskError: The model's answer was cut, or is none.
    """
    question = await asyncio.to_thread(_question, task, ctx)
    answer = await chat.answer([ChatMessage("system", _ROLE), ChatMessage("user", question)], _Reply, _LIMITS)
    ctx.spend(tokens=answer.prompt_tokens + answer.answer_tokens, answer_tokens=answer.answer_tokens)
    if answer.finish == "length":
        raise TaskError(f"The answer of {model} was cut.", hint="Ask for less at once.")
    try:
        found = json.loads(answer.text)["text"]
    except (ValueError, TypeError, KeyError):
        found = answer.text
    if not isinstance(found, str) or not found.strip():
        raise TaskError(f"{model} gave no answer.", hint="Try again.")
    return f"{found.strip()}\n\n(Written by the language model {model}; nobody has checked it.)"


def _question(task: str, ctx: TaskContext) -> str:
    texts = with_suffix(ctx.inputs, _TEXTS)
    told = [f"Task: {task}"]
    told += [f"Earlier result ({result.task_desc}):\n{result.content}" for result in ctx.results]
    if left := [file.name for file in ctx.inputs if file not in texts]:
        told.append(f"Files that you cannot see: {', '.join(left)}")
    size = sum(map(len, told)) + sum(file.path.stat().st_size for file in texts)
    if size > MAX_BYTES:
        raise InvalidInputError(f"{size} bytes are too long for the model; it takes {MAX_BYTES}.", hint="Send less text.")
    return "\n\n".join([*told, *(f"File {file.name}:\n{read_text(file.path)}" for file in texts)])


if __name__ == "__main__":
    agent.run()
