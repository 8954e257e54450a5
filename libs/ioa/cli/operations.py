"""`ioa dead`, `ioa audit`, `ioa prune` and `ioa trace export`: looks after a running system."""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.text import Text

from ioa.adapters.nats.stores.audit_stream import NatsAuditTrail
from ioa.adapters.otlp import export_spans
from ioa.cli.command import command, parse_age
from ioa.cli.output.console import create_fields, create_table, local_time, size
from ioa.cli.output.terminal import Terminal
from ioa.client.client import Client
from ioa.client.spans import GoalTrace, read_spans
from ioa.errors import ConflictError, InvalidInputError
from ioa.foreign_text import continued, shown_in_line
from ioa.protocol.goal_order import find_goal_id
from ioa.protocol.ids import GoalName
from ioa.protocol.operation.audit import AuditLine
from ioa.protocol.operation.dead_letters import DeadLetter
from ioa.protocol.operation.status import Prune
from ioa.protocol.setup.reads import MAX_LISTED
from ioa.protocol.subjects import parse_goal_subject
from ioa.runtime.exit_code import ExitCode

dead_app, audit_app, prune_app = typer.Typer(), typer.Typer(), typer.Typer()
trace_app = typer.Typer(no_args_is_help=True, help="Export traces of goals to OpenTelemetry.")
trace_app.callback()(lambda: None)  # so that the only command of the family keeps its name

_AUDIT_PAGE = 500


@command(dead_app)
async def dead(
    system: Client,
    terminal: Terminal,
    number: Annotated[int | None, typer.Argument(min=1)] = None,
    *,
    retry: bool = False,
    limit: Annotated[int, typer.Option(min=1, max=MAX_LISTED)] = 50,
) -> None:
    """List messages that could not be processed, show one, or publish it again.

    Fix the cause before --retry. If the system has credentials, --retry needs the credentials of an admin.

    Args:
        number (N): The number of a letter: show it.
        retry: Publish letter N again on its subject, and remove it from the dead letters.
        limit: Maximum number of letters, newest first.
    """
    if number is not None:
        await (put_back if retry else show_letter)(system, terminal, number)
    elif retry:
        raise InvalidInputError("--retry needs the number of a letter.", hint="`ioa dead` lists the letters.")
    else:
        await list_letters(system, terminal, limit)


async def list_letters(system: Client, terminal: Terminal, limit: int) -> None:
    """List a page of letters, newest first."""
    page = await system.dead_letters(limit=limit)
    rows = [(str(one.seq), local_time(one.at), *map(shown_in_line, (one.reason, one.subject, one.why))) for one in page.letters]
    table = create_table(("number", "when", "reason", "where", "why"), rows, folded=("where", "why"))
    terminal.show([*map(_letter_document, page.letters)], table if rows else "No dead letters.")
    if page.before is not None:
        terminal.note("There are more: --limit N lists more of them.")


async def show_letter(system: Client, terminal: Terminal, number: int) -> None:
    """Show one letter, and the message as it came."""
    letter = await system.dead_letter(number)
    fields = {"number": str(letter.seq), "when": local_time(letter.at), "reason": letter.reason, "why": shown_in_line(letter.why)}
    fields |= {"where": shown_in_line(letter.subject), "size": size(letter.size_bytes)}
    data = base64.b64encode(letter.data).decode("ascii")
    terminal.show(_letter_document(letter) | {"data_base64": data}, create_fields(fields), Text())
    terminal.print(continued(letter.data.decode("utf-8", errors="replace")))


async def put_back(system: Client, terminal: Terminal, number: int) -> None:
    """Publish a letter again, and remove it from the dead letters.

    Raises:
        ConflictError: The letter is a goal whose id has a result.
    """
    letter = await system.dead_letter(number)
    goal = _goal_name(letter)
    if goal is not None and await system.result(goal) is not None:
        raise ConflictError(
            f"The goal {goal.goal_id} of dead letter {number} has ended, and a goal ends once.",
            hint="Publish it again under another goal_id; `ioa dead N` shows it.",
        )
    is_first = await system.retry_dead_letter(letter)
    again = "" if is_first else "; it was published again before, as the same message"
    subject = shown_in_line(letter.subject)
    terminal.show({"put_back": number, "subject": letter.subject, "first": is_first}, f"{number} is back on {subject}{again}")


def _goal_name(letter: DeadLetter) -> GoalName | None:
    """Return the goal that a letter names, if any."""
    goal_id = find_goal_id(letter.data)
    try:
        return None if goal_id is None else GoalName(parse_goal_subject(letter.subject)[0], goal_id)
    except InvalidInputError:
        return None


def _letter_document(letter: DeadLetter) -> dict[str, Any]:
    fields = {name: getattr(letter, name) for name in ("reason", "why", "subject", "size_bytes")}
    return {"number": letter.seq, "at": letter.at.isoformat() if letter.at else None, **fields}


@command(audit_app)
async def audit(system: Client, terminal: Terminal, *, since: str = "1d", who: str | None = None, what: str | None = None) -> None:
    """List joins, launches, cancellations and rejections by name, and the ends of goals; no contents.

    Repeated rejections of a caller have one line a minute, with a count. On a system with keys this needs an auditor or an admin.

    Args:
        since (AGE): How far back: 7d, 12h, 30m.
        who (NAME): Only what this one did, or was done to it.
        what (WORD): Only this deed (`launched`), or `refused`, or `done`.
    """
    found = await _lines_since(system, datetime.now(UTC) - parse_age(since))
    by_name = [line for line in found if who in (None, line.who, line.target)]
    lines = [line for line in by_name if what in (None, line.deed, "refused" if line.refused else "done")]
    table = create_table((), map(_cells, lines)) if lines else "Nothing in this time."
    terminal.show([line.model_dump(mode="json") for line in lines], table)


async def _lines_since(system: Client, start: datetime) -> list[AuditLine]:
    """Return the lines since a time, oldest first.

    Services write concurrently, and counts at the end of their minute, so that numbers have no order in time.
    """
    trail, found, before = NatsAuditTrail(system.connection), list[AuditLine](), None
    while True:
        page = await trail.page(limit=_AUDIT_PAGE, before=before)
        new = [line for _, line in page.lines if line.at >= start]
        found += new
        before = page.before
        if before is None or (page.lines and not new):
            found.reverse()
            return sorted(found, key=lambda line: line.at)


def _cells(line: AuditLine) -> Sequence[str]:
    outcome = f"refused: {line.refused}" if line.refused else line.why
    times = f"{line.times:,} times" if line.times > 1 else ""
    return [*map(shown_in_line, (local_time(line.at), line.who or "-", line.deed, line.target, outcome, times))]


@command(prune_app)
async def prune(system: Client, terminal: Terminal, *, older_than: str = "30d", dry_run: bool = False) -> ExitCode:
    """Remove records, logs, results and files of goals that ended long ago. Their ids cannot be used again.

    Group setup does this by itself after IOA_KEEP. On a system with keys this needs an admin. Exits 1 if a goal could not be
    removed.

    Args:
        older_than (AGE): How long ago a goal must have ended: 7d, 12h, 30m.
        dry_run: Only report what would be removed.
    """
    age, goals, counts, after = parse_age(older_than), Counter[str](), Counter[str](), 0
    while True:
        part = await system.prune(Prune(older_than=age, after=after, dry_run=dry_run))
        goals.update(part.goals)
        counts.update(groups=part.groups, files=part.files, not_removed=part.failed)
        if part.after is None:
            break
        after = part.after
    verb = "would be removed" if dry_run else "removed"
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in goals.most_common())
    text = f"{goals.total():,} goals {verb}{f' ({reasons})' if reasons else ''}"
    others = f"{counts['groups']:,} groups, {counts['files']:,} files"
    terminal.show({"dry_run": dry_run, "goals": dict(goals), **counts}, f"{text}, {others}")
    if failed := counts["not_removed"]:
        terminal.print(Text(f"{failed:,} goals could not be removed; the log of group setup contains the reason", style="red"))
    return ExitCode.FAILED if failed else ExitCode.DONE


@command(trace_app, "export")
async def export_trace(system: Client, terminal: Terminal, goal_id: str, *, endpoint: str | None = None) -> None:
    """Export the trace of a goal: its groups, turns, tasks, calls of models, nested teams. Twice is the same trace.

    Args:
        endpoint (URL): Collector of OTLP over HTTP. Default: OTEL_EXPORTER_OTLP_ENDPOINT, otherwise port 4318 of this machine.
    """
    goal, made = await system.find_goal(goal_id), GoalTrace()
    spans = [span async for span in read_spans(system, goal.comm_id, made)]
    if spans and made.is_sampled:
        await asyncio.to_thread(export_spans, made.trace_id, spans, endpoint)
    terminal.show(
        {"goal_id": goal.goal_id, "trace_id": made.trace_id, "spans": len(spans), "sampled": made.is_sampled},
        f"Exported {len(spans)} spans of trace {made.trace_id}."
        if made.is_sampled
        else "This goal was launched with the request to keep no trace of it; nothing was exported.",
    )
