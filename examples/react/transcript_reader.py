"""Answer from stored transcripts of speech. `TRANSCRIPTS` names the database; the agent does not transcribe."""

from __future__ import annotations

import os
from pathlib import Path

from ioa import Agent
from ioa.react import ReactAgent, tool
from transcripts import Transcripts


def transcript_reader(path: Path) -> Agent:
    """Create the agent of a database."""
    transcripts = Transcripts(path)
    return ReactAgent(
        "transcript-reader",
        description="Reads stored transcripts of meetings and broadcasts: finds statements, their speakers and times.",
        examples=["what did the council agree on in the transcripts", "who spoke about the harbour in the meeting"],
        tags=["transcripts"],
        tools=[tool(transcripts.find), tool(transcripts.read)],
        instructions="Read on from a line before you rely on it: it may be taken back later. Quote it with its time mark.",
        max_steps=5,
    )


agent = transcript_reader(Path(os.environ.get("TRANSCRIPTS", "country/transcripts.sqlite")))

if __name__ == "__main__":
    agent.run()
