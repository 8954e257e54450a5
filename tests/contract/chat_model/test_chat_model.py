"""The contract runs on the shipped fake and on the adapter for OpenAI-compatible endpoints."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ioa.adapters.openai.openai_chat import ModelSettings, open_openai_chat
from ioa.ports.chat_model import ChatModel, ModelAnswer
from ioa.testing import ChatModelContract, ScriptedModel
from tests.rig.http_script import Line, serving


class TestScriptedModel(ChatModelContract):
    """The shipped fake."""

    @asynccontextmanager
    async def model_saying(self, *answers: ModelAnswer) -> AsyncIterator[ChatModel]:
        """Play them as a script."""
        yield ScriptedModel(answers)


class TestOpenAiChat(ChatModelContract):
    """The adapter, on loopback."""

    @asynccontextmanager
    async def model_saying(self, *answers: ModelAnswer) -> AsyncIterator[ChatModel]:
        """Serve them as chat completions."""
        with serving(*map(_completion, answers)) as (url, _):
            async with open_openai_chat(ModelSettings(url, "tiny")) as chat:
                yield chat


def _completion(answer: ModelAnswer) -> Line:
    calls = [
        {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in answer.tool_calls
    ]
    message = {"role": "assistant", "content": answer.text or None, **({"tool_calls": calls} if calls else {})}
    reason = {"tools": "tool_calls"}.get(answer.finish, answer.finish)
    usage = {"prompt_tokens": answer.prompt_tokens, "completion_tokens": answer.answer_tokens}
    return Line(body=json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": reason}], "usage": usage}))
