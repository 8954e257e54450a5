"""State the group's answer: one text that holds each result word for word, so that its numbers stay right."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import PurePosixPath

from ioa.agent.answer_files import Lineage, files_of_answer
from ioa.agent.file_names import FileNames
from ioa.agent.rules.plan_progress import Job, PlanProgress, PlanStatus
from ioa.agent.rules.text.goal_splitting import MAX_READ_CHARS
from ioa.agent.rules.text.masking import Mask
from ioa.agent.rules.text.references import is_document, runs_code
from ioa.agent.rules.titles import as_long_as_a_title, title_of
from ioa.ports.brain import GroupView, TaskRecord, WholeConclusion
from ioa.protocol.goals import Artifact, Reason
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import Conclusion, Discussion, TaskOutcome

_NOBODY = "Nobody here does this as it is said; an agent with a language model might. What those say who were asked:"
_END, _FILE_NAME = re.compile(r"(?<=[.!?])\s"), re.compile(r"[\w.-]++")
_NAME_CHARS = 100
_MOST_REASONS, _REASON_CHARS = 8, 500
"""How many of those are heard who were given one task in vain, of whom rules ask three, and by how much it is told where a sentence
of theirs ends, of which a title's length is shown: there may be hundreds, of 200,000 characters each."""
_MOST_LOOKED_THROUGH = 8
"""In how many of those that build on a result it is looked for; in all of hundreds it would take seconds."""
_FORCED = {
    Reason.MAX_TURNS: "The discussion was cut short: no turn was left.",
    Reason.BUDGET: "The discussion was cut short: its budget was spent.",
}


@dataclass(frozen=True)
class Section:
    """One need and what came of it. `text` is the result, or why there is none; `record` is that of the task that is done."""

    title: str
    text: str
    task_id: TaskId
    uses: tuple[TaskId, ...]
    record: TaskRecord | None
    declined: bool = False
    skipped: bool = False

    @property
    def done(self) -> bool:
        """Whether there is a result."""
        return self.record is not None


def conclude_course(view: GroupView) -> Conclusion:
    """State what was said last, word for word: where a policy leads, that is what its course has come to; with files of tasks."""
    last = next((one.payload.content for one in reversed(view.messages) if isinstance(one.payload, Discussion)), "")
    reason = Reason.CONCLUDED if last and view.state.forced is None else Reason.FAILED
    return WholeConclusion(content=last or "Nothing was said.", reason=reason, artifacts=files_of_answer(view.tasks))


def conclude(view: GroupView) -> Conclusion:
    """Merge the results of all tasks into the conclusion; FAILED if a need was not fulfilled, with what was reached kept.

    NO_AGENT if nothing was reached, and all who were asked say that they do no such tasks.
    """
    progress = PlanProgress(view)
    sections = _sections_of_record(view) if progress.is_led_by_others else _sections_of_plan(view, progress.jobs)
    sections = _without_outdated(sections, view.charter.inputs)
    reached = [section for section in sections if section.done]
    missing = [section for section in sections if not section.done]
    reason = Reason.CONCLUDED if reached and not missing else Reason.FAILED
    nobody_does_it = any(one.declined for one in missing) and all(one.declined or one.skipped for one in missing)
    if nobody_does_it and not reached:
        reason = Reason.NO_AGENT
    forced = _FORCED.get(view.state.forced) if view.state.forced else None
    artifacts, reached = _named_apart(files_of_answer([one.record for one in reached if one.record]), reached)
    paragraphs = [*_complaint(missing, forced, len(sections)), *_body(reached, len(sections) > 1)]
    if artifacts and len(sections) > 1:
        paragraphs.append("Files: " + ", ".join(f"`{artifact.name}`" for artifact in artifacts))
    return WholeConclusion(content="\n\n".join(paragraphs), reason=reason, artifacts=artifacts)


def _without_outdated(sections: Sequence[Section], inputs: Sequence[Artifact]) -> list[Section]:
    """Take back what was answered of a file as it came, though code that was run before it wrote that file anew."""
    came, lineage = {file.name: file.sha256 for file in inputs}, _lineage_of(sections)
    names = FileNames(came)
    kept, outdated = list[Section](), 0
    writers, wrote = defaultdict[str, list[Section]](list), defaultdict[str, int](int)
    for section in sections:
        if record := section.record:
            under = lineage.under(section.task_id)
            others = [name for name, bits in wrote.items() if bits & ~under]
            named = names.find_in(f"{record.spec.task_desc[:MAX_READ_CHARS]} {section.text[:MAX_READ_CHARS]}") if others else ()
            anew = next((name for name in others if name in named), None)
            if anew is not None or outdated & under:
                outdated |= lineage.bit(section.task_id)
                went = "what it builds on was taken back"
                if anew is not None:
                    by = next(one.title for one in writers[anew] if not lineage.has(section.task_id, one.task_id))
                    went = f"{anew} was written anew by “{by}”"
                why = f"{went}, and this was answered of the file as it came. Say 'in' and the file's name in this request."
                kept.append(replace(section, text=why, record=None))
                continue
            if runs_code(record.spec.task_desc):
                for file in record.artifacts:
                    if came.get(file.name, file.sha256) != file.sha256:
                        writers[file.name].append(section)
                        wrote[file.name] |= lineage.bit(section.task_id)
        kept.append(section)
    return kept


def _named_apart(files: Sequence[Artifact], sections: Sequence[Section]) -> tuple[tuple[Artifact, ...], list[Section]]:
    """Give each file a name of its own, `chart-2.png` beside `chart.png`, in the words of its task and of who draws it, too."""
    taken, named, renamed = set[str](), list[Artifact](), defaultdict[TaskId, dict[str, str]](dict)
    makers = defaultdict[Artifact, set[TaskId]](set)
    for one in sections:
        for file in one.record.artifacts if one.record else ():
            makers[file].add(one.task_id)
    for file in files:
        name, path, number = file.name, PurePosixPath(file.name), 1
        while name.casefold() in taken:
            number += 1
            name = f"{path.stem[:_NAME_CHARS]}-{number}{path.suffix[:_NAME_CHARS]}"
        taken.add(name.casefold())
        named.append(file.model_copy(update={"name": name}))
        for one in sections if name != file.name else ():
            if one.task_id in makers[file] or (one.uses and makers[file].issuperset(one.uses)):
                renamed[one.task_id].setdefault(file.name, name)
    return tuple(named), [replace(section, text=_renamed(section.text, renamed[section.task_id])) for section in sections]


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """Put names in the place of others: by one reading of the text, however many there are."""
    if not names:
        return text
    return _FILE_NAME.sub(
        lambda word: word[0].replace(name, names[name]) if (name := word[0].rstrip(".")) in names else word[0], text
    )


def _sections_of_plan(view: GroupView, jobs: Sequence[Job]) -> list[Section]:
    sections = []
    for job in jobs:
        record = job.attempt if job.standing is PlanStatus.DONE else None
        sections.append(
            Section(
                title=title_of(job.plan.task_desc or view.charter.goal),
                text=record.conclusion if record else _why(job.attempts, job.standing),
                task_id=job.plan.task_id,
                uses=job.plan.uses,
                record=record,
                declined=record is None and bool(job.attempts) and all(one.declined for one in job.attempts),
                skipped=job.standing is PlanStatus.SKIPPED,
            )
        )
    return sections


def _sections_of_record(view: GroupView) -> list[Section]:
    return [
        Section(
            title=title_of(task.spec.task_abstract or task.spec.task_desc),
            text=task.conclusion if task.outcome is TaskOutcome.DONE else _why((task,), PlanStatus.FAILED),
            task_id=task.spec.task_id,
            uses=task.spec.uses,
            record=task if task.outcome is TaskOutcome.DONE else None,
        )
        for task in view.tasks
    ]


def _why(attempts: Sequence[TaskRecord], standing: PlanStatus) -> str:
    """Why there is no result, by each who was given the task: who fits it best at length, the others in a sentence.

    Who declined it says nothing of it, and is heard only if nobody else is: then as one of those who came nearest.
    """
    if not attempts:
        return {
            PlanStatus.SKIPPED: "not started, since nothing it needed was there",
            PlanStatus.FAILED: "its agent was lost and nobody could stand in",
        }.get(standing, "not started")
    tried = [record for record in attempts if not record.declined]
    if len(tried) == 1:
        return _said(tried[0])
    heard = tried or attempts
    best, *others = heard[:_MOST_REASONS]
    reasons = [(best, _said(best)), *((record, _first_sentence(_said(record))) for record in others)]
    listed = "".join(f"\n  - {record.spec.assignee}: {why}" for record, why in reasons)
    listed += f"\n  - and {len(heard) - len(reasons)} more" if len(heard) > len(reasons) else ""
    return listed if tried else f"{_NOBODY}{listed}"


def _first_sentence(text: str) -> str:
    mask = Mask()  # what is quoted may hold the end of another one
    sentence = _END.split(mask.cover(text[:_REASON_CHARS]), maxsplit=1)[0]
    return as_long_as_a_title(" ".join(mask.uncover(sentence).split()))


def _said(record: TaskRecord) -> str:
    if record.outcome is None:
        return "not finished"
    if record.rejected:
        return f"rejected: {record.rejected}"
    return record.conclusion or ("cancelled" if record.outcome is TaskOutcome.CANCELLED else "no reason was given")


def _complaint(missing: Sequence[Section], forced: str | None, total: int) -> list[str]:
    lines = [forced] if forced and (missing or not total) else []
    if total == 0:
        lines.append("No task was given out.")
    elif missing:
        lines.append("Not everything was reached. Missing:" if total > 1 else "The goal was not reached:")
        lines[-1] += "".join(f"\n- {section.title}: {section.text}".replace(": \n", ":\n", 1) for section in missing)
    return lines


def _body(reached: Sequence[Section], titled: bool) -> list[str]:
    paragraphs, shown = list[str](), list[Section]()
    lineage = _lineage_of(reached)
    for section in _report_first(reached, lineage):
        text = section.text.strip()
        made_of_it = islice((other.text for other in shown if lineage.has(other.task_id, section.task_id)), _MOST_LOOKED_THROUGH)
        if text and any(f"\n{text}\n" in f"\n{other.strip()}\n" for other in made_of_it):
            continue
        shown.append(section)
        paragraphs.append(f"## {section.title}\n\n{text or 'Done.'}" if titled else text or "Done.")
    return paragraphs


def _lineage_of(sections: Sequence[Section]) -> Lineage:
    return Lineage({section.task_id: section.uses for section in sections})


def _report_first(reached: Sequence[Section], lineage: Lineage) -> list[Section]:
    """Put a final report that builds on all the others in front of them, unless it is a file: its words only name that."""
    others, last = list(reached[:-1]), reached[-1] if reached else None
    if last is None or not others or not is_document(last.title) or (last.record and last.record.artifacts):
        return list(reached)
    return [last, *others] if all(lineage.has(last.task_id, other.task_id) for other in others) else list(reached)
