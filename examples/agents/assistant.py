"""Do what no other agent does by asking a language model: translate, rewrite, explain. It joins only where a model is configured.

The model sees the task, earlier results and the texts that came with the goal. Its answer says who wrote it: nobody checks it.
"""

from ioa import Agent, ChatMessage, InvalidInputError, TaskContext, TaskError
from ioa.files import read_text, with_suffix

MAX_CHARS = 60_000
_TEXTS = (".txt", ".md", ".csv", ".html", ".json")
_ROLE = "You do one task of a team. Do not invent figures or sources; say what you cannot do."

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


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Ask the model, and say that it was one; what is too long for one question is refused, not cut, and so is a cut answer."""
    texts = with_suffix(ctx.inputs, _TEXTS)
    told = [f"Task: {task}", *(f"Earlier result ({one.task_desc}):\n{one.content}" for one in ctx.results)]
    told += [f"File {file.name}:\n{read_text(file.path) if file in texts else '(you cannot see it)'}" for file in ctx.inputs]
    if (size := sum(map(len, told))) > MAX_CHARS:
        raise InvalidInputError(f"{size} characters are too long for the model; it takes {MAX_CHARS}.", hint="Send less text.")
    answer = ctx.chat([ChatMessage("system", _ROLE), ChatMessage("user", "\n\n".join(told))]).result()
    if not answer.complete or not answer.text.strip():
        raise TaskError("The model gave no whole answer.", hint="Ask for less at once.")
    return f"{answer.text.strip()}\n\n(Written by a language model; nobody has checked it.)"
