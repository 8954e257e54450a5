"""Do by a language model what no other agent does; it joins only where one is configured, and nobody checks its answer."""

from ioa import Agent, InvalidInputError, TaskContext, ask_model
from ioa.files import is_text

MAX_BYTES = 60_000
_ROLE = "You do one task of a team. Do not invent figures or sources; say what you cannot do."

agent = Agent(
    "assistant",
    description="Does by a language model what needs understanding: summarises, translates, rewrites, explains, drafts and "
    "classifies texts.",
    skills=["summaries of texts", "translation", "writing and rewriting", "explanations and general knowledge"], examples=[
        "summarise notes.txt in three sentences", "translate this into German", "rewrite this letter more politely",
        "explain how a heat pump works", "draft an e-mail that declines the offer", "what is the mood of these reviews",
        "give me ideas for a slogan", "answer this question from general knowledge",
    ], tags=["language model", "writing"], may_team_up=False,
)  # fmt: skip


@agent.task
async def run(task: str, ctx: TaskContext) -> str:
    """Ask the model, and say that it was one; what is too long for one question is refused, not cut, and so is a cut answer."""
    sizes = [file.path.stat().st_size for file in ctx.inputs if is_text(file)]
    sizes += [len(one.content.encode()) for one in ctx.results]
    if sum(sizes) > MAX_BYTES:
        raise InvalidInputError(f"{sum(sizes)} bytes are too long for the model; it takes {MAX_BYTES}.", hint="Send less text.")
    return f"{await ask_model(_ROLE, task, ctx)}\n\n(Written by a language model; nobody has checked it.)"
