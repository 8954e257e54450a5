"""The table of all routes: who may call what, what is sent, and what comes back. Routes and their description come from it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ioa.client.documents import GoalDocument, GroupDocument, ResultDocument, SearchDocument
from ioa.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    NoAgentError,
    NotFoundError,
    OverQuotaError,
    PayloadTooLargeError,
    RateLimitedError,
    UnauthenticatedError,
)
from ioa.protocol.api_keys import Scope
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Artifact
from ioa.protocol.named_teams import TeamList, TeamRow
from ioa.protocol.search import Search
from ioa_gateway.calls import ApiRow, Nothing, json_reader
from ioa_gateway.event_stream import EVENTS
from ioa_gateway.routes import agents, agui, chat, files, goals, groups, questions, seats, session, teams, webhooks

PREFIX = "/v1"

_READS, _LAUNCHES = (Scope.GOALS_READ,), (Scope.GOALS_WRITE,)
_READS_AND_LAUNCHES = (*_READS, *_LAUNCHES)
"""By which a goal is launched, and what becomes of it told."""
_AGENTS, _SEATS, _TEAMS = (Scope.AGENTS_READ,), (Scope.SEATS,), (Scope.TEAMS_WRITE,)
_WEBHOOKS = (*_READS, Scope.WEBHOOKS_WRITE)
"""A webhook is sent results."""

_nothing = json_reader(Nothing)
_LAST_EVENT_ID = {groups.LAST_EVENT_ID: "the `id` of the last event seen; goes before `after`"}
_FOLLOWED = {
    200: "Events `entry`, each with its sequence as `id`, and at last one `end`.",
    204: "It has ended, and nothing lies behind.",
}

TABLE: tuple[ApiRow[Any, Any], ...] = (
    ApiRow(
        "POST",
        "/goals",
        _LAUNCHES,
        "Launch a goal",
        goals.launch,
        Nothing,
        GoalOrder,
        {
            201: "It is accepted.",
            202: "It is stored and will not be lost, but is not accepted yet.",
            200: "The same goal was launched with this idempotency key before.",
        },
        goals.read_order,
        (InvalidInputError, PayloadTooLargeError, ConflictError, RateLimitedError),
        within=timedelta(seconds=5),
        headers={goals.IDEMPOTENCY_KEY: "with the same one the same goal is launched once, however often it is sent"},
        told=dict.fromkeys((200, 201, 202), goals.LaunchedDocument),
    ),
    ApiRow(
        *("GET", "/goals", _READS, "List goals, newest first", goals.list_goals),
        *(goals.GoalsQuery, Nothing, {200: "A page: `goals`, and `next` to ask for the one behind."}, _nothing),
        (InvalidInputError,),
        told={200: goals.GoalsDocument},
    ),
    ApiRow(
        *("GET", "/goals/{goal_id}", _READS, "Show a goal", goals.show),
        *(goals.WhoseQuery, Nothing, {200: "The goal, its team and its tasks."}, _nothing),
        (InvalidInputError, NotFoundError),
        told={200: GoalDocument},
    ),
    ApiRow(
        *("GET", "/goals/{goal_id}/result", _READS, "Show how a goal ended", goals.result),
        *(goals.ResultQuery, Nothing, {200: "How it ended.", 204: "It has not ended yet."}, _nothing),
        (InvalidInputError, NotFoundError, RateLimitedError),
        within=timedelta(seconds=goals.LONGEST_WAIT_SECONDS + 5),
        told={200: ResultDocument},
    ),
    ApiRow(
        *("POST", "/goals/{goal_id}/cancel", _LAUNCHES, "Cancel a goal of one's own", goals.cancel),
        *(goals.WhoseQuery, goals.CancelOrder, {202: "It will end.", 200: "It had ended already, like this."}),
        *(json_reader(goals.CancelOrder), (InvalidInputError, NotFoundError, ForbiddenError)),
        told={200: ResultDocument, 202: goals.CancellingDocument},
    ),
    ApiRow(
        *("POST", "/goals/{goal_id}/fork", _READS_AND_LAUNCHES, "Have a new goal go on from one of one's own, as it stood"),
        *(goals.fork, Nothing, goals.ForkOrder),
        {
            201: "The new goal is accepted.",
            202: "It is stored and will not be lost, but is not accepted yet.",
            200: "The same fork was launched with this idempotency key before.",
        },
        json_reader(goals.ForkOrder),
        (InvalidInputError, NotFoundError, PayloadTooLargeError, ConflictError, NoAgentError, RateLimitedError),
        within=timedelta(seconds=20),
        headers={goals.IDEMPOTENCY_KEY: "with the same one the same fork is launched once, however often it is sent"},
        told=dict.fromkeys((200, 201, 202), goals.LaunchedDocument),
    ),
    ApiRow(
        *("GET", "/goals/{goal_id}/events", _READS, "Follow a goal and its nested teams", groups.follow_goal),
        *(groups.GoalEventsQuery, Nothing, _FOLLOWED, _nothing),
        (InvalidInputError, NotFoundError, RateLimitedError),
        media_type=EVENTS,
        headers=_LAST_EVENT_ID,
    ),
    ApiRow(
        *("GET", "/goals/{goal_id}/entries", _READS, "Show what was said, by pages either way", groups.entries),
        *(groups.EntriesQuery, Nothing, {200: "Entries, by rising sequence."}, _nothing),
        (InvalidInputError,),
        told={200: groups.EntriesDocument},
    ),
    ApiRow(
        *("GET", "/goals/{goal_id}/state", _READS, "Show how a goal and its nested teams stood", groups.state),
        *(groups.StateQuery, Nothing, {200: "The groups; none before there was one."}, _nothing),
        (InvalidInputError,),
        told={200: groups.StatesDocument},
    ),
    ApiRow(
        *("GET", "/goals/{goal_id}/trace", _READS, "Show the trace of a goal: what took how long", groups.trace),
        *(goals.WhoseQuery, Nothing, {200: "Spans, those that have ended."}, _nothing),
        (InvalidInputError, NotFoundError, RateLimitedError),
        within=timedelta(seconds=15),
        told={200: groups.TraceDocument},
    ),
    ApiRow(
        *("GET", "/artifacts/{goal_id}/{seq}/{number}/{name}", _READS, "Fetch a file of an entry", files.fetch),
        files.FileQuery,
        Nothing,
        {200: "The file.", 206: "The range of it.", 304: "It is the one that is known.", 416: "It has no such range."},
        _nothing,
        (InvalidInputError, NotFoundError),
        within=timedelta(seconds=60),
        media_type="application/octet-stream",
        headers={"Range": "which bytes, such as `bytes=0-99`", "If-None-Match": "the `ETag` of the file that is known"},
    ),
    ApiRow(
        *("GET", "/groups/{comm_id}", _READS, "Show where a group stands", groups.show),
        *(Nothing, Nothing, {200: "The group."}, _nothing),
        (InvalidInputError, NotFoundError),
        told={200: GroupDocument},
    ),
    ApiRow(
        *("GET", "/groups/{comm_id}/events", _READS, "Follow a group and its nested teams", groups.follow_group),
        *(groups.EventsQuery, Nothing, _FOLLOWED, _nothing),
        (InvalidInputError, NotFoundError, RateLimitedError),
        media_type=EVENTS,
        headers=_LAST_EVENT_ID,
    ),
    ApiRow(
        *(
            "GET",
            "/events",
            _READS,
            "Follow what one page shows: the list of goals, a goal, or both",
            groups.follow_page,
        ),
        *(groups.PageQuery, Nothing, {**_FOLLOWED, 200: f"{_FOLLOWED[200]} Of the list `goal`, for each row."}, _nothing),
        (InvalidInputError, NotFoundError, RateLimitedError),
        media_type=EVENTS,
        headers=_LAST_EVENT_ID,
    ),
    ApiRow(
        *("PUT", "/uploads/{name}", _LAUNCHES, "Store a file for the inputs of goals", files.upload),
        *(Nothing, Nothing, {201: "It is stored; this is how `inputs` name it."}, _nothing),
        (InvalidInputError, PayloadTooLargeError, OverQuotaError),
        within=timedelta(minutes=30),
        takes_bytes=True,
        told={201: Artifact},
    ),
    ApiRow(
        *("GET", "/agents", _AGENTS, "List agents by id", agents.list_agents),
        *(agents.AgentsQuery, Nothing, {200: "A page: `agents`, and `next` to ask for the one behind."}, _nothing),
        (InvalidInputError,),
        told={200: agents.AgentsDocument},
    ),
    ApiRow(
        *("POST", "/agents/search", _AGENTS, "Say who fits each need, and why", agents.search),
        *(Nothing, Search, {200: "The hits of each need, best first."}, json_reader(Search)),
        (InvalidInputError, RateLimitedError),
        told={200: SearchDocument},
    ),
    ApiRow(
        *("POST", "/webhooks", _WEBHOOKS, "Have what becomes of goals sent to a URL", webhooks.make),
        *(Nothing, webhooks.WebhookOrder, {201: "It is made; its secret is told once."}, json_reader(webhooks.WebhookOrder)),
        (InvalidInputError, NotFoundError, OverQuotaError),
        within=timedelta(seconds=15),
        told={201: webhooks.MadeDocument},
    ),
    ApiRow(
        *("GET", "/webhooks", _WEBHOOKS, "List the webhooks of one's own", webhooks.list_all),
        *(Nothing, Nothing, {200: "The webhooks."}, _nothing),
        told={200: webhooks.WebhooksDocument},
    ),
    ApiRow(
        *("GET", "/webhooks/{webhook_id}", _WEBHOOKS, "Show a webhook of one's own", webhooks.show),
        *(Nothing, Nothing, {200: "The webhook."}, _nothing),
        (NotFoundError,),
        told={200: webhooks.WebhookDocument},
    ),
    ApiRow(
        *("DELETE", "/webhooks/{webhook_id}", _WEBHOOKS, "Remove a webhook of one's own", webhooks.remove),
        *(Nothing, Nothing, {204: "It is gone."}, _nothing),
        (NotFoundError,),
    ),
    ApiRow(
        *("GET", "/questions", _READS, "List what groups and tasks ask the user of the key", questions.waiting),
        *(questions.QuestionsQuery, Nothing, {200: "What waits, each with what stands if nobody answers."}, _nothing),
        (InvalidInputError, NotFoundError),
        told={200: questions.QuestionsDocument},
    ),
    ApiRow(
        *(
            "POST",
            "/groups/{comm_id}/answer",
            _LAUNCHES,
            "Answer what a group or a task asks its user",
            questions.answer,
        ),
        *(Nothing, questions.AnswerOrder, {200: "It counts, now or since it was sent before."}, json_reader(questions.AnswerOrder)),
        (InvalidInputError, NotFoundError, ForbiddenError, ConflictError),
        told={200: questions.AnsweredDocument},
    ),
    ApiRow(
        *("GET", "/seats", _SEATS, "Tell what waits for people: a turn, something to decide, a conclusion", seats.anybody),
        *(Nothing, Nothing, {200: "What waits, with the form of each answer."}, _nothing),
        told={200: seats.WaitingDocument},
    ),
    ApiRow(
        *("GET", "/seats/{name}", _SEATS, "Tell what waits for one person", seats.show),
        *(Nothing, Nothing, {200: "What waits, with the form of each answer."}, _nothing),
        (InvalidInputError,),
        told={200: seats.WaitingDocument},
    ),
    ApiRow(
        *("GET", "/seats/{name}/groups/{comm_id}", _SEATS, "Tell what one person has heard in a group", seats.heard),
        *(Nothing, Nothing, {200: "The group as that person knows it."}, _nothing),
        (InvalidInputError, NotFoundError),
        told={200: seats.HeardDocument},
    ),
    ApiRow(
        *("POST", "/groups/{comm_id}/messages", _SEATS, "Answer as a person whose turn it is", seats.answer),
        *(Nothing, seats.SayOrder, {201: "It is taken, now or when it was sent before."}, json_reader(seats.SayOrder)),
        (InvalidInputError, NotFoundError, ConflictError),
        told={201: seats.SaidAt},
    ),
    ApiRow(
        *("GET", "/teams", _READS, "List the teams that were put, by name", teams.list_teams),
        *(Nothing, Nothing, {200: "Each with its newest version, and whose it is."}, _nothing),
        told={200: TeamList},
    ),
    ApiRow(
        *("GET", "/teams/{name}", _READS, "Show a team that was put", teams.show),
        *(teams.TeamQuery, Nothing, {200: "The team, as a team file says it."}, _nothing),
        (InvalidInputError, NotFoundError),
        told={200: teams.TeamDocument},
    ),
    ApiRow(
        *("PUT", "/teams/{name}", _TEAMS, "Put a team under its name, as the next version", teams.put),
        *(Nothing, teams.TeamBody, {200: "It is kept as this version, which it may have been before."}, teams.read_team),
        (InvalidInputError, PayloadTooLargeError, OverQuotaError),
        told={200: TeamRow},
    ),
    ApiRow(
        *("POST", "/chat/completions", _READS_AND_LAUNCHES, "Reach a goal as if by chatting with a model", chat.complete),
        *(Nothing, chat.ChatOrder, {200: "The conclusion, as what the model says."}, json_reader(chat.ChatOrder)),
        (InvalidInputError, NotFoundError, PayloadTooLargeError, ConflictError, RateLimitedError),
        within=timedelta(days=1),
        headers={goals.IDEMPOTENCY_KEY: "with the same one the same goal is launched once; without, the same words soon mean it"},
        told={200: chat.CompletionDocument},
        tells=chat.as_chat,
    ),
    ApiRow(
        *("GET", "/models", _AGENTS, "List what may be named as a model: `ioa`, and each pool", chat.models),
        *(Nothing, Nothing, {200: "The models."}, _nothing),
        told={200: chat.ModelsDocument},
        tells=chat.as_chat,
    ),
    ApiRow(
        *("POST", "/agui/{pool}", _READS_AND_LAUNCHES, "Reach a goal as a run of AG-UI", agui.run),
        *(Nothing, agui.RunInput, {200: "The events of the run."}, json_reader(agui.RunInput)),
        (InvalidInputError, NotFoundError, PayloadTooLargeError, ConflictError, RateLimitedError),
        within=timedelta(seconds=15),
        media_type=EVENTS,
        headers=_LAST_EVENT_ID,
    ),
    ApiRow(
        *("POST", "/session", (), "Let a browser in that shows a key or a token", session.begin),
        *(Nothing, session.SessionOrder, {204: "The cookie stands for it."}, json_reader(session.SessionOrder)),
        (InvalidInputError, UnauthenticatedError),
    ),
    ApiRow(
        *("GET", "/session", (), "Say whose the session of this browser is", session.show),
        *(Nothing, Nothing, {200: "Whose it is, and what it is for.", 204: "There is none."}, _nothing),
    ),
    ApiRow(
        *("DELETE", "/session", (), "End the session of this browser", session.end),
        *(Nothing, Nothing, {204: "It is over, and the cookie gone."}, _nothing),
    ),
)
