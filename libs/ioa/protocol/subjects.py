"""NATS subjects of version 1: builders and parsers.

The subject of a message contains its sender, so NATS permissions make the sender unforgeable.
"""

from __future__ import annotations

from collections.abc import Mapping

from ioa.errors import InvalidInputError
from ioa.protocol.ids import AgentId, CommId, GoalName, PoolId, UserId, check_token

ROOT = "ioa.v1"

CALLER_AT, CALLER_OF_SAY_AT, READER_AT = -1, 5, 3
"""Index of the caller's token in the subject of a request."""
GROUP_SETUP, OBSERVERS, AUDITORS, GATEWAY, OF_USER = "_groups", "_observers", "_auditors", "_gateway", "_"
"""Names, or prefixes of names, of callers other than agents. No id has them."""

GOALS_LIST, GOALS_GET, GROUPS_LIST, LOG_PAGE, DEAD_PAGE = "goals.list", "goals.get", "groups.list", "log.page", "dead.page"
READ_REQUESTS: Mapping[str, str] = {
    GOALS_LIST: "list goals",
    GOALS_GET: "read a goal",
    GROUPS_LIST: "list groups, or read one",
    LOG_PAGE: "read entries of a group's log",
    DEAD_PAGE: "read dead letters",
}
"""Read requests (`ioa.protocol.reads`) of users, for their own goals, and of readers, for the goals of all users."""

ANY_GOAL = f"{ROOT}.goal.*"
ANY_ADDRESSED_GOAL = f"{ROOT}.goal.*.*"
WORK = f"{ROOT}.work"
"""Subject to queue accepted goals for an agent."""
ANY_POOL_WORK = f"{WORK}.*"
ANY_RESULT = f"{ROOT}.result.*.*"
ANY_SAY = f"{ROOT}.comm.*.say.*"
ANY_SAY_TO = f"{ANY_SAY}.*"
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

ANY_REGISTER = f"{ROOT}.registry.register.*.*"
ANY_RENEW = f"{ROOT}.registry.renew.*.*"
ANY_RENEW_AT_ALL = f"{ROOT}.registry.renew_at_all.*.*"
ANY_DEREGISTER = f"{ROOT}.registry.deregister.*"
GET_AGENTS = f"{ROOT}.registry.get"
"""Subject to read cards by id."""
LIST_AGENTS = f"{ROOT}.registry.list"
"""Subject to list cards by pages."""
REMOVE_AGENT = f"{ROOT}.registry.remove"
"""Subject to remove an agent."""
ANY_SEARCH = f"{ROOT}.discovery.search.*"
INDEX_STATUS = f"{ROOT}.discovery.status"
"""Subject to read the state of discovery's index."""
ANY_REPORT = f"{ROOT}.discovery.report.*"
CALLOUT_STATUS = f"{ROOT}.authcallout.status"
"""Subject to read the counts of admitted and rejected tokens."""
ANY_LAUNCH = f"{ROOT}.groups.launch.*"
ANY_INVITE = f"{ROOT}.groups.invite.*"
ANY_ABANDON = f"{ROOT}.groups.abandon.*"
ANY_SYNC = f"{ROOT}.groups.sync.*"
ANY_MEMBERSHIPS = f"{ROOT}.groups.memberships.*"
ANY_SET_ASIDE = f"{ROOT}.groups.set_aside.*"
ANY_GET_FILE = f"{ROOT}.groups.file.*"
ANY_PUT_FILE = f"{ROOT}.groups.put.*"
ANY_GET_UPLOAD = f"{ROOT}.uploads.get.*"
ANY_PUT_UPLOAD = f"{ROOT}.uploads.put.*"
STORED = f"{ROOT}.uploads.stored"
"""Subject to read the owners of most stored bytes."""
GROUP_STATUS = f"{ROOT}.groups.status"
"""Subject to read phase, turns and times of a group, without content."""
ANY_STANDING = f"{ROOT}.groups.standing.*"
ANY_CANCEL = f"{ROOT}.groups.cancel.*"
ANY_PUT_TEAM = f"{ROOT}.groups.put_team.*"
ANY_GET_TEAM = f"{ROOT}.groups.team.*"
ANY_LIST_TEAMS = f"{ROOT}.groups.teams.*"
ANY_ANSWER = f"{ROOT}.groups.answer.*"
BY_ADMIN = "_admin"
"""Last token of an admin's request for a user, so that the audit log does not attribute it to that user. No id has it."""
ANY_CANCEL_BY_ADMIN, ANY_ANSWER_BY_ADMIN = f"{ANY_CANCEL}.{BY_ADMIN}", f"{ANY_ANSWER}.{BY_ADMIN}"
PRUNE = f"{ROOT}.groups.prune"
"""Subject to remove goals that ended long ago."""


def goal_of(user: UserId) -> str:
    """Subject to publish a user's goal for any agent."""
    return f"{ROOT}.goal.{user}"


def goal_to(user: UserId, addressee: AgentId | PoolId) -> str:
    """Subject to publish a user's goal for one agent or pool."""
    return f"{goal_of(user)}.{addressee}"


def cancel(user: UserId) -> str:
    """Subject to cancel a goal of the user, with all its groups."""
    return f"{ROOT}.groups.cancel.{user}"


def answer(user: UserId) -> str:
    """Subject to answer a question of a group or task of the user's goals."""
    return f"{ROOT}.groups.answer.{user}"


def cancel_for(user: UserId) -> str:
    """Subject to cancel a user's goal as an admin."""
    return f"{cancel(user)}.{BY_ADMIN}"


def answer_for(user: UserId) -> str:
    """Subject to answer a question to a user as an admin."""
    return f"{answer(user)}.{BY_ADMIN}"


def work_of(pool: PoolId | None) -> str:
    """Subject to queue an accepted goal for an agent of `pool`, or for any agent."""
    return f"{WORK}.{pool}" if pool else WORK


def result_of(goal: GoalName) -> str:
    """Subject to publish the result of a goal."""
    return f"{ROOT}.result.{goal.user}.{goal.goal_id}"


def register(pool: PoolId, agent_id: AgentId) -> str:
    """Subject to register the agent's card."""
    return f"{ROOT}.registry.register.{pool}.{agent_id}"


def renew(pool: PoolId, agent_id: AgentId) -> str:
    """Subject to renew the agent's lease."""
    return f"{ROOT}.registry.renew.{pool}.{agent_id}"


def renew_at_all(pool: PoolId, agent_id: AgentId) -> str:
    """Subject to renew the agent's lease at all registries, after a timeout of one; the first reply counts."""
    return f"{ROOT}.registry.renew_at_all.{pool}.{agent_id}"


def deregister(agent_id: AgentId) -> str:
    """Subject to end the agent's lease."""
    return f"{ROOT}.registry.deregister.{agent_id}"


def search(caller: str) -> str:
    """Subject to search for agents, as an agent, or with `_` before another caller's name."""
    return f"{ROOT}.discovery.search.{caller}"


def search_of(user: UserId) -> str:
    """Subject to search for agents as a user."""
    return search(user if user == "*" else f"{OF_USER}{user}")


def standing_of(user: UserId | None) -> str:
    """Subject to read the state of JetStream, as a user, or with None as any observer."""
    return f"{ROOT}.groups.standing.{_looking(user)}"


def _looking(user: UserId | None) -> str:
    return OBSERVERS if user is None else user if user == "*" else f"{OF_USER}{user}"


def report(agent_id: AgentId) -> str:
    """Subject to report the outcomes of tasks of the agent's groups."""
    return f"{ROOT}.discovery.report.{agent_id}"


def user_read(user: UserId, request: str) -> str:
    """Subject to {request} of the user."""
    return f"{ROOT}.user.{user}.{request}"


def reader_read(name: str, request: str) -> str:
    """Subject to {request} of all users, as an admin or the gateway."""
    return f"{ROOT}.reader.{name}.{request}"


def audit_page(auditor: str) -> str:
    """Subject to read a page of the audit log."""
    return f"{ROOT}.observer.{auditor}.audit.page"


def parse_reader(subject: str) -> tuple[UserId, bool]:
    """Return the caller of a read request, and whether it may read the goals of all users.

    Raises:
        InvalidInputError: The subject has another form.
    """
    match subject.split("."):
        case ["ioa", "v1", "user", user, *_]:
            return UserId(_token(user)), False
        case ["ioa", "v1", "reader", name, *_]:
            return UserId(name), True
        case _:
            raise InvalidInputError(f"{subject!r} names no reader.")


def outcome(pool: PoolId) -> str:
    """Subject to store outcomes of a pool's tasks."""
    return f"{ROOT}.outcome.{pool}"


def launch(agent_id: AgentId) -> str:
    """Subject to launch groups that the agent owns."""
    return f"{ROOT}.groups.launch.{agent_id}"


def invite(agent_id: AgentId) -> str:
    """Subject to invite agents into a group in which the agent holds the floor."""
    return f"{ROOT}.groups.invite.{agent_id}"


def abandon(agent_id: AgentId) -> str:
    """Subject to end a goal for which the agent found no members."""
    return f"{ROOT}.groups.abandon.{agent_id}"


def sync(agent_id: AgentId) -> str:
    """Subject to fetch missed entries of the agent's groups."""
    return f"{ROOT}.groups.sync.{agent_id}"


def get_file(agent_id: AgentId) -> str:
    """Subject to read a piece of a file that was announced to the agent."""
    return f"{ROOT}.groups.file.{agent_id}"


def put_file(agent_id: AgentId) -> str:
    """Subject to store a piece of a file for a group of the agent."""
    return f"{ROOT}.groups.put.{agent_id}"


def get_upload(user: UserId) -> str:
    """Subject to read a piece of a goal's file as a user."""
    return f"{ROOT}.uploads.get.{user}"


def put_upload(user: UserId) -> str:
    """Subject to upload a piece of a file for a goal."""
    return f"{ROOT}.uploads.put.{user}"


def put_team(user: UserId) -> str:
    """Subject to store a team under its name."""
    return f"{ROOT}.groups.put_team.{user}"


def get_team(user: UserId) -> str:
    """Subject to read a team by its name."""
    return f"{ROOT}.groups.team.{user}"


def list_teams(user: UserId) -> str:
    """Subject to list named teams."""
    return f"{ROOT}.groups.teams.{user}"


def memberships(agent_id: AgentId) -> str:
    """Subject to list the agent's open groups."""
    return f"{ROOT}.groups.memberships.{agent_id}"


def any_live_of(user: UserId, comm_id: CommId) -> str:
    """Return the pattern of live messages about a user's goal, by the goal's root group."""
    return f"{ROOT}.live.{user}.{comm_id}.*"


def live_entry(user: UserId, comm_id: CommId) -> str:
    """Subject to signal, without content, that an entry was appended to a log of the goal's groups."""
    return f"{ROOT}.live.{user}.{comm_id}.entry"


def live_progress(user: UserId, comm_id: CommId) -> str:
    """Subject to publish progress reports of tasks live, on core NATS, after the first report."""
    return f"{ROOT}.live.{user}.{comm_id}.progress"


def say(comm_id: CommId, agent_id: AgentId) -> str:
    """Subject to send a message in a group as an agent, to any router."""
    return f"{ROOT}.comm.{comm_id}.say.{agent_id}"


def say_to(router: str, comm_id: CommId, agent_id: AgentId) -> str:
    """Subject to send a message in a group as an agent, to one router."""
    return f"{say(comm_id, agent_id)}.{check_token(router)}"


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


def set_aside(agent_id: AgentId) -> str:
    """Subject to make a dead letter of a queue's message that the agent cannot read."""
    return f"{ROOT}.groups.set_aside.{agent_id}"


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
    """Return the caller in a request's subject, or an empty text."""
    tokens = subject.split(".")
    return tokens[-1] if len(tokens) > len(ROOT.split(".")) + 2 else ""


def parse_say(subject: str) -> tuple[CommId, AgentId]:
    """Return group and sender of a `say` subject, to any router or to one router.

    Raises:
        InvalidInputError: The subject has another form.
    """
    match subject.split("."):
        case ["ioa", "v1", "comm", comm_id, "say", agent_id] | ["ioa", "v1", "comm", comm_id, "say", agent_id, _]:
            return CommId(_token(comm_id)), AgentId(_token(agent_id))
        case _:
            raise InvalidInputError(f"{subject!r} is not a subject of the form {ANY_SAY}.")


def group_of_say(subject: str) -> str:
    """Return the group of a `say` subject, unchecked, as the key of fair queues."""
    return subject.split(".", 4)[3]


def parse_caller(subject: str) -> AgentId:
    """Return the agent of a request's subject, `ioa.v1.<service>.<request>.<agent_id>`.

    Raises:
        InvalidInputError: The subject has another form.
    """
    match subject.split("."):
        case ["ioa", "v1", _, _, agent_id]:
            return AgentId(_token(agent_id))
        case _:
            raise InvalidInputError(f"{subject!r} names no caller.")


def parse_served(subject: str) -> UserId:
    """Return the user of an admin's request, see `cancel_for`.

    Raises:
        InvalidInputError: The subject has another form.
    """
    asked, _, by = subject.rpartition(".")
    if by != BY_ADMIN:
        raise InvalidInputError(f"{subject!r} is not an admin's request for a user.")
    return UserId(parse_caller(asked))


def parse_member(subject: str) -> tuple[PoolId, AgentId]:
    """Return pool and agent of a request's subject, `ioa.v1.registry.<request>.<pool>.<agent_id>`.

    Raises:
        InvalidInputError: The subject has another form.
    """
    match subject.split("."):
        case ["ioa", "v1", "registry", _, pool, agent_id]:
            return PoolId(_token(pool)), AgentId(_token(agent_id))
        case _:
            raise InvalidInputError(f"{subject!r} names no pool and agent.")


def parse_comm(subject: str) -> CommId:
    """Return the group of an `ioa.v1.comm.<comm_id>.…` subject.

    Raises:
        InvalidInputError: The subject has another form.
    """
    match subject.split("."):
        case ["ioa", "v1", "comm", comm_id, *_]:
            return CommId(_token(comm_id))
        case _:
            raise InvalidInputError(f"{subject!r} does not belong to a group.")


def parse_goal_subject(subject: str) -> tuple[UserId, str | None]:
    """Return the user of a goal's subject, and the addressed agent or pool, or None for any agent.

    Raises:
        InvalidInputError: The subject has another form.
    """
    match subject.split("."):
        case ["ioa", "v1", "goal", user]:
            return UserId(_token(user)), None
        case ["ioa", "v1", "goal", user, addressee]:
            return UserId(_token(user)), addressee
        case _:
            raise InvalidInputError(f"{subject!r} names no user of a goal.")


def kind_of(subject: str) -> str:
    """Return the kind of a request's subject without ids, such as `groups.launch` or `comm.say`."""
    tokens = subject.removeprefix(f"{ROOT}.").split(".")
    if tokens[0] in ("registry", "discovery", "groups", "uploads"):
        return ".".join(tokens[:2])
    if tokens[0] in ("user", "reader", "observer"):
        return ".".join(tokens[2:4])
    return "comm.say" if "say" in tokens else "other"


def _token(value: str) -> str:
    """Check a token of a received subject: nats-server permits publishing on `…say.*` as a literal name."""
    try:
        return check_token(value)
    except ValueError as error:
        raise InvalidInputError(str(error)) from None
