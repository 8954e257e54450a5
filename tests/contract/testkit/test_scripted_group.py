"""An agent in a real group with scripted members."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ioa import InvalidInputError
from ioa_testkit import ScriptError, System
from tests.contract.testkit.agents import hanging, translator


async def test_tasks_run_beside_the_discussion_and_feed_each_other(ioa_system: System) -> None:
    """The discussion continues, and then waits for them."""
    async with ioa_system.group("Print the menu", agent=translator(), members=["lead", "cook"]) as group:
        lead, cook = group["lead"], group["cook"]
        cooked = await lead.assigns(cook, "say what is there", beside=True)
        await cook.reports(cooked, "looking into the pot", 0.5)
        await lead.says("How long will it take?", to=cook)
        await cook.finishes(cooked, "Bread is there.")
        await cook.says("It is done.", to=lead)
        given = await lead.assigns(group.agent_id, "translate bread into French", uses=[cooked], beside=True)
        await lead.waits_for(given)
        answer = await given.answer()
        assert (await cooked.answer()).content == "Bread is there."
        await lead.concludes("Done.")
    assert answer.files == {"menu.txt": b"pain\nBread is there."}


async def test_a_task_that_fails_is_an_answer(ioa_system: System) -> None:
    """With its reported words."""
    async with ioa_system.group("Print the menu", agent=translator()) as group:
        answer = await group["lead"].asks("translator", "translate wine into French")
    assert (answer.succeeded, "I know soup and bread only." in answer.content, answer.files) == (False, True, {})


async def test_rejected_message_fails(ioa_system: System) -> None:
    """Such as a report on a task of another member."""
    async with ioa_system.group("Print the menu", agent=translator()) as group:
        lead = group["lead"]
        given = await lead.assigns("translator", "translate soup into French")
        await given.answer()
        with pytest.raises(ScriptError, match="The router refused lead's INFORM_TASK_RESULT"):
            await lead.finishes(given, "It was me.")


async def test_invalid_message_fails(ioa_system: System) -> None:
    """The error explains an invalid message."""
    async with ioa_system.group("Print the menu", agent=translator()) as group:
        with pytest.raises(ScriptError, match="lead cannot say that: next_speaker: 'no such id!' is not a valid id"):
            await group["lead"].says("Hello", to="no such id!")
        with pytest.raises(InvalidInputError, match=r"'cook' is no scripted member.*There are lead"):
            group["cook"]


async def test_missing_answer_fails(ioa_system: System) -> None:
    """So does a result; the agent that still works is stopped with the group."""
    ioa_system.within = timedelta(seconds=0.5)
    async with ioa_system.group("Rest", agent=hanging()) as group:
        with pytest.raises(ScriptError, match=r"(?s)Task t1-task1 has no result after 0\.5 s.*sleep now"):
            await group["lead"].asks("sleeper", "sleep now")
        with pytest.raises(ScriptError, match="sleeper works on a task that the discussion waits for"):
            await group["lead"].concludes("Enough.")
        with pytest.raises(ScriptError, match="The group has not ended"):
            await group.result()
