"""NATS subjects of version 1: builders and parsers.

The subject of a request begins with the role and the name of its caller, and nats-server permits a caller only its own prefix:
`ioa.v1.agent.<pool>.<agent>`, `ioa.v1.user.<user>`, `ioa.v1.observer.<name>`, `ioa.v1.auditor.<name>`, `ioa.v1.admin.<name>`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ioa.errors import InvalidInputError
from ioa.protocol.ids import AgentId, CommId, GoalName, PoolId, UserId, check_token

ROOT = "ioa.v1"

GATEWAY = "_gateway"
"""Name of the gateway as a caller, for requests that concern no single user. No id has it."""

# Requests of agents
REGISTER = "registry.register"
"""Register the agent's card."""
RENEW = "registry.renew"
"""Renew the agent's lease."""
RENEW_AT_ALL = "registry.renew_at_all"
"""Renew the agent's lease at all registries, after a registry timed out; the first reply counts."""
DEREGISTER = "registry.deregister"
"""End the agent's lease."""
LAUNCH = "groups.launch"
"""Launch groups that the agent owns."""
INVITE = "groups.invite"
"""Invite agents into a group in which the agent holds the floor."""
ABANDON = "groups.abandon"
"""End a goal for which the agent found no members."""
SYNC = "groups.sync"
"""Fetch missed entries of the agent's groups."""
MEMBERSHIPS = "groups.memberships"
"""List the agent's open groups."""
GET_FILE = "groups.file"
"""Read a piece of a file that was announced to the agent."""
PUT_FILE = "groups.put"
"""Store a piece of a file for a group of the agent."""
SEARCH = "discovery.search"
"""Search for agents."""
REPORT = "discovery.report"
"""Report the outcomes of tasks of the agent's groups."""

# Requests of users
CANCEL = "groups.cancel"
"""Cancel a goal of the user, with all its groups."""
ANSWER = "groups.answer"
"""Answer a question of a group or task of the user's goals."""
GET_UPLOAD = "uploads.get"
"""Read a piece of a goal's file as a user."""
PUT_UPLOAD = "uploads.put"
"""Upload a piece of a file for a goal."""
PUT_TEAM = "groups.put_team"
"""Store a team under its name."""
GET_TEAM = "groups.team"
"""Read a team by its name."""
LIST_TEAMS = "groups.teams"
"""List named teams."""

# Requests of users, observers and admins
LIST_AGENTS = "registry.list"
"""List cards by pages, or the cards of an agent or a pool."""
INDEX_STATUS = "discovery.status"
"""Read the state of discovery's index."""
STANDING = "groups.standing"
"""Read the state of JetStream."""
STORED = "uploads.stored"
"""Read the owners of most stored bytes."""

# Requests of admins
REMOVE_AGENT = "registry.remove"
"""Remove an agent."""
PRUNE = "groups.prune"
"""Remove goals that ended long ago."""

# Read requests (`ioa.protocol.setup.reads`) of users, for their own goals, and of readers, for the goals of all users
GOALS_LIST = "goals.list"
"""List goals."""
GOALS_GET = "goals.get"
"""Read a goal."""
GROUPS_LIST = "groups.list"
"""List groups, or read one."""
LOG_PAGE = "log.page"
"""Read entries of a group's log."""
DEAD_PAGE = "dead.page"
"""Read dead letters."""

AUDIT_PAGE = "audit.page"
"""Read a page of the audit log, as an auditor."""

GROUP_SEARCH = f"{ROOT}.service.groups.{SEARCH}"
"""Subject to search for agents as group setup."""

ANY_GOAL = f"{ROOT}.goal.*"
ANY_ADDRESSED_GOAL = f"{ROOT}.goal.*.*"
WORK = f"{ROOT}.work"
"""Subject to queue accepted goals for an agent."""
ANY_POOL_WORK = f"{WORK}.*"
ANY_RESULT = f"{ROOT}.result.*.*"
ANY_SAY = f"{ROOT}.agent.*.*.say.*"
ANY_LOG = f"{ROOT}.comm.*.log"
ANY_TIMER = f"{ROOT}.comm.*.timer"
ANY_TIMER_SCHEDULE = f"{ROOT}.comm.*.timer.*"
ANY_LIVE = f"{ROOT}.live.*.*.*"
ANY_LIVE_PROGRESS = f"{ROOT}.live.*.*.progress"
ANY_DEAD = f"{ROOT}.dead.*"
ANY_HOOK = f"{ROOT}.hook.*"
ANY_OUTCOME = f"{ROOT}.outcome.*"
ANY_INBOX = f"{ROOT}.inbox.*.*"
ANY_AUDIT = f"{ROOT}.audit.*"


def goal_of(user: UserId) -> str:
    """Subject to publish a user's goal for any agent."""
    return f"{ROOT}.goal.{user}"


def goal_to(user: UserId, addressee: AgentId | PoolId) -> str:
    """Subject to publish a user's goal for one agent or pool."""
    return f"{goal_of(user)}.{addressee}"


def work_of(pool: PoolId | None) -> str:
    """Subject to queue an accepted goal for an agent of `pool`, or for any agent."""
    return f"{WORK}.{pool}" if pool else WORK


def result_of(goal: GoalName) -> str:
    """Subject to publish the result of a goal."""
    return f"{ROOT}.result.{goal.user}.{goal.goal_id}"


def agent(pool: PoolId, agent_id: AgentId, request: str) -> str:
    """Subject to {request}."""
    return f"{ROOT}.agent.{pool}.{agent_id}.{request}"


def any_agent(request: str) -> str:
    """Return the pattern of a request of all agents."""
    return f"{ROOT}.agent.*.*.{request}"


def user(user: str, request: str) -> str:
    """Subject to {request}."""
    return f"{ROOT}.user.{user}.{request}"


def observer(name: str, request: str) -> str:
    """Subject to {request}."""
    return f"{ROOT}.observer.{name}.{request}"


def auditor(name: str, request: str) -> str:
    """Subject to {request}."""
    return f"{ROOT}.auditor.{name}.{request}"


def reader(name: str, request: str) -> str:
    """Subject to {request}, of all users, as an admin or the gateway."""
    return f"{ROOT}.reader.{name}.{request}"


def admin(name: str, request: str) -> str:
    """Subject to {request}."""
    return f"{ROOT}.admin.{name}.{request}"


def for_user(request: str, owner: UserId) -> str:
    """Return an admin's request that concerns a goal of this user."""
    return f"{request}.{owner}"


def any_user(request: str) -> str:
    """Return the pattern of a request of all users."""
    return user("*", request)


def any_status(request: str) -> tuple[str, ...]:
    """Return the patterns of a request of users, observers and admins."""
    return user("*", request), observer("*", request), admin("*", request)


def say(pool: PoolId, agent_id: AgentId, comm_id: CommId) -> str:
    """Subject to send a message in a group as an agent, to any router."""
    return agent(pool, agent_id, f"say.{comm_id}")


def say_to(pool: PoolId, agent_id: AgentId, comm_id: CommId, router: str) -> str:
    """Subject to send a message in a group as an agent, to one router."""
    return f"{say(pool, agent_id, comm_id)}.{check_token(router)}"


def outcome(pool: PoolId) -> str:
    """Subject to store outcomes of a pool's tasks."""
    return f"{ROOT}.outcome.{pool}"


def any_live(user: UserId, comm_id: CommId) -> str:
    """Return the pattern of live messages about a user's goal, by the goal's root group."""
    return f"{ROOT}.live.{user}.{comm_id}.*"


def live_entry(user: UserId, comm_id: CommId) -> str:
    """Subject to signal, without content, that an entry was appended to a log of the goal's groups."""
    return f"{ROOT}.live.{user}.{comm_id}.entry"


def live_progress(user: UserId, comm_id: CommId) -> str:
    """Subject to publish progress reports of tasks live, on core NATS, after the first report."""
    return f"{ROOT}.live.{user}.{comm_id}.progress"


def any_say_to(router: str) -> str:
    """Return the pattern of all messages to one router."""
    return f"{ANY_SAY}.{check_token(router)}"


def log(comm_id: CommId) -> str:
    """Subject to append to the group's log."""
    return f"{ROOT}.comm.{comm_id}.log"


def timer(comm_id: CommId) -> str:
    """Subject to return the group's expired timers to the routers."""
    return f"{ROOT}.comm.{comm_id}.timer"


def timer_schedule(comm_id: CommId, at_ms: int) -> str:
    """Subject to schedule a timer in JetStream, in ms since the epoch. One subject per instant makes scheduling idempotent."""
    return f"{ROOT}.comm.{comm_id}.timer.{at_ms}"


def inbox(agent_id: AgentId, nonce: str) -> str:
    """Subject to push entries to an agent. Only the agent and the services know the nonce."""
    return f"{ROOT}.inbox.{agent_id}.{nonce}"


def inbox_prefix_of(owner: str) -> str:
    """Return the inbox prefix for replies to one credential, which no other credential can read."""
    return f"_INBOX.{owner}"


def dead(reason: str) -> str:
    """Subject to store a dead letter, by reason."""
    return f"{ROOT}.dead.{check_token(reason)}"


def hook(webhook_id: str) -> str:
    """Subject to queue a webhook's messages."""
    return f"{ROOT}.hook.{check_token(webhook_id)}"


def audit(deed: str) -> str:
    """Subject to record an action or rejection in the audit log, by kind, without content."""
    return f"{ROOT}.audit.{check_token(deed)}"


def caller_of(subject: str) -> str:
    """Return the name of a request's caller, or an empty text."""
    match subject.split("."):
        case ["ioa", "v1", "agent", _, agent_id, _, *_]:
            return agent_id
        case ["ioa", "v1", "user" | "reader" | "observer" | "auditor" | "admin", name, _, *_]:
            return name
        case _:
            return ""


def group_of_say(subject: str) -> str:
    """Return the group of a `say` subject, unchecked, as the key of fair queues."""
    return subject.split(".", 7)[6]


def kind_of(subject: str) -> str:
    """Return the kind of a request's subject without ids, such as `groups.launch` or `comm.say`."""
    match subject.split("."):
        case ["ioa", "v1", "agent", _, _, "say", *_]:
            return "comm.say"
        case ["ioa", "v1", "agent", _, _, service, verb, *_]:
            return f"{service}.{verb}"
        case ["ioa", "v1", "user" | "reader" | "observer" | "auditor" | "admin" | "service", _, service, verb, *_]:
            return f"{service}.{verb}"
        case _:
            return "other"


def parse_say(subject: str) -> tuple[CommId, AgentId]:
    """Return group and sender of a `say` subject, to any router or to one router.

    Raises:
        InvalidInputError: The subject has another form.
    """
    _, agent_id, comm_id, *_ = _ids(subject, ANY_SAY, f"{ANY_SAY}.*")
    return CommId(comm_id), AgentId(agent_id)


def parse_reader(subject: str) -> tuple[UserId, bool]:
    """Return the caller of a read request, and whether it may read the goals of all users.

    Raises:
        InvalidInputError: The subject has another form.
    """
    if subject.startswith(f"{ROOT}.reader."):
        return UserId(caller_of(subject)), True
    return UserId(_ids(subject, f"{ROOT}.user.*.>")[0]), False


def parse_owner(subject: str) -> UserId:
    """Return the user whom a request concerns: the caller, or the user that an admin names, see `for_user`.

    Raises:
        InvalidInputError: The subject has another form.
    """
    if subject.startswith(f"{ROOT}.admin."):
        return UserId(_ids(subject, f"{ROOT}.admin.*.*.*.*")[3])
    return UserId(_ids(subject, f"{ROOT}.user.*.>")[0])


def parse_agent(subject: str) -> tuple[PoolId, AgentId]:
    """Return pool and agent of an agent's request.

    Raises:
        InvalidInputError: The subject has another form.
    """
    pool, agent_id = _ids(subject, f"{ROOT}.agent.*.*.>")
    return PoolId(pool), AgentId(agent_id)


def parse_comm(subject: str) -> CommId:
    """Return the group of an `ioa.v1.comm.<comm_id>.…` subject.

    Raises:
        InvalidInputError: The subject has another form.
    """
    return CommId(_ids(subject, f"{ROOT}.comm.*.>")[0])


def parse_goal_subject(subject: str) -> tuple[UserId, str | None]:
    """Return the user of a goal's subject, and the addressed agent or pool, or None for any agent.

    Raises:
        InvalidInputError: The subject has another form.
    """
    user, *addressee = _ids(subject, ANY_GOAL, ANY_ADDRESSED_GOAL)
    return UserId(user), next(iter(addressee), None)


def _ids(subject: str, *forms: str) -> Sequence[str]:
    """Return the tokens of a received subject at the places of `*`, checked: nats-server permits publishing to a literal `*`."""
    tokens = subject.split(".")
    for form in forms:
        places = form.split(".")
        if places[-1] == ">":
            places[-1:] = tokens[len(places) - 1 :] or [">"]
        if len(places) == len(tokens) and all(place in ("*", token) for place, token in zip(places, tokens, strict=True)):
            try:
                return [check_token(token) for place, token in zip(places, tokens, strict=True) if place == "*"]
            except ValueError as error:
                raise InvalidInputError(str(error)) from None
    raise InvalidInputError(f"{subject!r} is not a subject of the form {forms[0]}.")
