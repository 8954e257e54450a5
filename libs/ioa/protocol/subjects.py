"""Every NATS subject of version 1, built and parsed here and nowhere else.

The sender of a message stands in its subject, so that NATS permissions make it unforgeable.
"""

from __future__ import annotations

from ioa.errors import InvalidInputError
from ioa.protocol.ids import AgentId, CommId, GoalName, PoolId, UserId, check_token

ROOT = "ioa.v1"

CALLER_AT, CALLER_OF_SAY_AT = -1, 5
"""Which token of a request's subject names who asks."""
GROUP_SETUP, OBSERVERS, OF_USER = "_groups", "_observers", "_"
"""What callers that are no agents are called, or their names begin with: no id can."""

ANY_GOAL = f"{ROOT}.goal.*"
ANY_ADDRESSED_GOAL = f"{ROOT}.goal.*.*"
WORK = f"{ROOT}.work"
"""Where accepted goals wait for an agent."""
ANY_POOL_WORK = f"{WORK}.*"
ANY_RESULT = f"{ROOT}.result.*.*"
ANY_SAY = f"{ROOT}.comm.*.say.*"
ANY_SAY_TO = f"{ANY_SAY}.*"
ANY_LOG = f"{ROOT}.comm.*.log"
ANY_TIMER = f"{ROOT}.comm.*.timer"
ANY_TIMER_SCHEDULE = f"{ROOT}.comm.*.timer.*"
ANY_PROGRESS = f"{ROOT}.comm.*.progress"
ANY_DEAD = f"{ROOT}.dead.*"
ANY_HOOK = f"{ROOT}.hook.*"
ANY_OUTCOME = f"{ROOT}.outcome.*"
ANY_INBOX = f"{ROOT}.inbox.*.*"
ANY_AUDIT = f"{ROOT}.audit.*"
ANY_READ = f"{ROOT}.read.*"

ANY_REGISTER = f"{ROOT}.registry.register.*.*"
ANY_RENEW = f"{ROOT}.registry.renew.*.*"
ANY_RENEW_AT_ALL = f"{ROOT}.registry.renew_at_all.*.*"
ANY_DEREGISTER = f"{ROOT}.registry.deregister.*"
GET_AGENTS = f"{ROOT}.registry.get"
"""Where cards are asked for by id."""
LIST_AGENTS = f"{ROOT}.registry.list"
"""Where cards are listed, by pages."""
REMOVE_AGENT = f"{ROOT}.registry.remove"
"""Where an agent is forgotten that is not coming back."""
ANY_SEARCH = f"{ROOT}.discovery.search.*"
INDEX_STATUS = f"{ROOT}.discovery.status"
"""Where it is asked how discovery's index stands."""
ANY_REPORT = f"{ROOT}.discovery.report.*"
CALLOUT_STATUS = f"{ROOT}.authcallout.status"
"""Where it is asked whom the auth callout lets in, and whom not."""
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
"""Where it is asked whose files fill the store."""
GET_GROUP = f"{ROOT}.groups.get"
"""Where it is asked how a group stands."""
GROUP_STATUS = f"{ROOT}.groups.status"
"""Where it is asked how far a group is, which tells nothing that anybody said."""
ANY_STANDING = f"{ROOT}.groups.standing.*"
ANY_CANCEL = f"{ROOT}.groups.cancel.*"
ANY_PUT_TEAM = f"{ROOT}.groups.put_team.*"
ANY_GET_TEAM = f"{ROOT}.groups.team.*"
ANY_LIST_TEAMS = f"{ROOT}.groups.teams.*"
ANY_ANSWER = f"{ROOT}.groups.answer.*"
BY_ADMIN = "_admin"
"""What the subject of a request ends with that an admin makes for a user, so that it is known for no deed of that user's; no id can
be this."""
ANY_CANCEL_BY_ADMIN, ANY_ANSWER_BY_ADMIN = f"{ANY_CANCEL}.{BY_ADMIN}", f"{ANY_ANSWER}.{BY_ADMIN}"
PRUNE = f"{ROOT}.groups.prune"
"""Where goals are removed that ended long ago."""


def goal_of(user: UserId) -> str:
    """Where a user, and nobody else, publishes a goal that any agent may take."""
    return f"{ROOT}.goal.{user}"


def goal_to(user: UserId, addressee: AgentId | PoolId) -> str:
    """Where a user, and nobody else, publishes a goal for one agent or pool."""
    return f"{goal_of(user)}.{addressee}"


def cancel(user: UserId) -> str:
    """Where a user, and nobody else, cancels a goal of his, with every team that works for it."""
    return f"{ROOT}.groups.cancel.{user}"


def answer(user: UserId) -> str:
    """Where a user, and nobody else, answers what a group asks that works for a goal of his, or what a task in it asks."""
    return f"{ROOT}.groups.answer.{user}"


def cancel_for(user: UserId) -> str:
    """Where an admin cancels a goal of a user's; the audit log tells it of no user."""
    return f"{cancel(user)}.{BY_ADMIN}"


def answer_for(user: UserId) -> str:
    """Where an admin answers what a group asks that works for a goal of a user's; the audit log tells it of no user."""
    return f"{answer(user)}.{BY_ADMIN}"


def work_of(pool: PoolId | None) -> str:
    """Where an accepted goal waits for an agent of `pool`, or for any agent."""
    return f"{WORK}.{pool}" if pool else WORK


def result_of(goal: GoalName) -> str:
    """Where the one terminal result of a goal appears."""
    return f"{ROOT}.result.{goal.user}.{goal.goal_id}"


def register(pool: PoolId, agent_id: AgentId) -> str:
    """Where an agent of a pool, and nobody else, stores its card."""
    return f"{ROOT}.registry.register.{pool}.{agent_id}"


def renew(pool: PoolId, agent_id: AgentId) -> str:
    """Where an agent of a pool, and nobody else, keeps its lease."""
    return f"{ROOT}.registry.renew.{pool}.{agent_id}"


def renew_at_all(pool: PoolId, agent_id: AgentId) -> str:
    """Where an agent keeps its lease with every registry at once, when one of them has not answered; the first answer is enough."""
    return f"{ROOT}.registry.renew_at_all.{pool}.{agent_id}"


def deregister(agent_id: AgentId) -> str:
    """Where an agent, and nobody else, gives its lease back."""
    return f"{ROOT}.registry.deregister.{agent_id}"


def search(caller: str) -> str:
    """Where it is asked which agents fit a need, by an agent, or by `_` and the name of who is none."""
    return f"{ROOT}.discovery.search.{caller}"


def search_of(user: UserId) -> str:
    """Where a user, and nobody else, asks which agents fit a need."""
    return search(user if user == "*" else f"{OF_USER}{user}")


def standing_of(user: UserId | None) -> str:
    """Where a user, or with None whoever only observes, asks how JetStream stands. All observers ask as one."""
    return f"{ROOT}.groups.standing.{_looking(user)}"


def _looking(user: UserId | None) -> str:
    return OBSERVERS if user is None else user if user == "*" else f"{OF_USER}{user}"


def report(agent_id: AgentId) -> str:
    """Where an agent tells how the tasks of a group that it owned went."""
    return f"{ROOT}.discovery.report.{agent_id}"


def read(stream: str) -> str:
    """Where group setup is asked for what a stream holds."""
    return f"{ROOT}.read.{stream}"


def parse_read(subject: str) -> str:
    """Return the stream that is asked for on a subject."""
    return subject.rpartition(".")[2]


def outcome(pool: PoolId) -> str:
    """Where it is kept how the tasks of a pool's agents went."""
    return f"{ROOT}.outcome.{pool}"


def launch(agent_id: AgentId) -> str:
    """Where an agent opens groups that it owns."""
    return f"{ROOT}.groups.launch.{agent_id}"


def invite(agent_id: AgentId) -> str:
    """Where an agent has others join a group in which it has the floor."""
    return f"{ROOT}.groups.invite.{agent_id}"


def abandon(agent_id: AgentId) -> str:
    """Where an agent ends a goal for which it found nobody."""
    return f"{ROOT}.groups.abandon.{agent_id}"


def sync(agent_id: AgentId) -> str:
    """Where an agent fetches what it missed of its groups."""
    return f"{ROOT}.groups.sync.{agent_id}"


def get_file(agent_id: AgentId) -> str:
    """Where an agent reads a file that it was told of, piece by piece."""
    return f"{ROOT}.groups.file.{agent_id}"


def put_file(agent_id: AgentId) -> str:
    """Where an agent puts a file into a group that it is in, piece by piece."""
    return f"{ROOT}.groups.put.{agent_id}"


def get_upload(user: UserId) -> str:
    """Where a user reads the files of a goal, piece by piece."""
    return f"{ROOT}.uploads.get.{user}"


def put_upload(user: UserId) -> str:
    """Where a user puts a file that goes with a goal, piece by piece."""
    return f"{ROOT}.uploads.put.{user}"


def put_team(user: UserId) -> str:
    """Where a user, and nobody else, puts a team under its name."""
    return f"{ROOT}.groups.put_team.{user}"


def get_team(user: UserId) -> str:
    """Where a user reads a team by its name."""
    return f"{ROOT}.groups.team.{user}"


def list_teams(user: UserId) -> str:
    """Where a user asks which teams have a name."""
    return f"{ROOT}.groups.teams.{user}"


def memberships(agent_id: AgentId) -> str:
    """Where an agent asks which open groups it was put into."""
    return f"{ROOT}.groups.memberships.{agent_id}"


def progress(comm_id: CommId) -> str:
    """Where routers tell live, on core NATS, what assignees report of their tasks between the first report and the result."""
    return f"{ROOT}.comm.{comm_id}.progress"


def say(comm_id: CommId, agent_id: AgentId) -> str:
    """Where an agent, and nobody else, speaks in a group, to any router."""
    return f"{ROOT}.comm.{comm_id}.say.{agent_id}"


def say_to(router: str, comm_id: CommId, agent_id: AgentId) -> str:
    """Where an agent speaks in a group to the one router that is named."""
    return f"{say(comm_id, agent_id)}.{check_token(router)}"


def any_say_to(router: str) -> str:
    """Where one router is spoken to by name."""
    return f"{ANY_SAY}.{check_token(router)}"


def log(comm_id: CommId) -> str:
    """Where the group's total order is kept."""
    return f"{ROOT}.comm.{comm_id}.log"


def timer(comm_id: CommId) -> str:
    """Where the group's deadlines come back to the routers."""
    return f"{ROOT}.comm.{comm_id}.timer"


def timer_schedule(comm_id: CommId, at_ms: int) -> str:
    """Where a deadline, in ms since the epoch, waits inside JetStream. One per instant, so arming it twice arms it once."""
    return f"{ROOT}.comm.{comm_id}.timer.{at_ms}"


def inbox(agent_id: AgentId, nonce: str) -> str:
    """Where an agent sees its groups live. The nonce is told to it alone, so that nobody else can have anything sent there."""
    return f"{ROOT}.inbox.{agent_id}.{nonce}"


def inbox_prefix_of(owner: str) -> str:
    """Where the answers to one connection's requests come: each credential has a place of its own, which no other may read."""
    return f"_INBOX.{owner}"


def set_aside(agent_id: AgentId) -> str:
    """Where an agent has a message of a queue set aside that it was given and cannot read."""
    return f"{ROOT}.groups.set_aside.{agent_id}"


def dead(reason: str) -> str:
    """Where what could not be processed is kept, by reason."""
    return f"{ROOT}.dead.{check_token(reason)}"


def hook(webhook_id: str) -> str:
    """Where waits what a webhook is to tell."""
    return f"{ROOT}.hook.{check_token(webhook_id)}"


def audit(deed: str) -> str:
    """Where it is noted who did what, or was refused it, by what it was. Nothing of what anybody said."""
    return f"{ROOT}.audit.{check_token(deed)}"


def caller_of(subject: str) -> str:
    """Read who asks off a request's subject, or nothing where it does not say."""
    tokens = subject.split(".")
    return tokens[-1] if len(tokens) > len(ROOT.split(".")) + 2 else ""


def parse_say(subject: str) -> tuple[CommId, AgentId]:
    """Read group and sender off a `say` subject, to any router or to one by name.

    Raises:
        InvalidInputError: The subject is not one.
    """
    match subject.split("."):
        case ["ioa", "v1", "comm", comm_id, "say", agent_id] | ["ioa", "v1", "comm", comm_id, "say", agent_id, _]:
            return CommId(_token(comm_id)), AgentId(_token(agent_id))
        case _:
            raise InvalidInputError(f"{subject!r} is not a subject of the form {ANY_SAY}.")


def group_of_say(subject: str) -> str:
    """Return the group that a `say` subject names, unchecked: by it the routers tell one group's load from another's."""
    return subject.split(".", 4)[3]


def parse_caller(subject: str) -> AgentId:
    """Read the agent off the subject of a request that only it may make, `ioa.v1.<service>.<request>.<agent_id>`.

    Raises:
        InvalidInputError: The subject is not one.
    """
    match subject.split("."):
        case ["ioa", "v1", _, _, agent_id]:
            return AgentId(_token(agent_id))
        case _:
            raise InvalidInputError(f"{subject!r} does not name who asks.")


def parse_served(subject: str) -> UserId:
    """Read for which user an admin asks off the subject of a request, see `cancel_for`.

    Raises:
        InvalidInputError: The subject is not one.
    """
    asked, _, by = subject.rpartition(".")
    if by != BY_ADMIN:
        raise InvalidInputError(f"{subject!r} is no request of an admin for a user.")
    return UserId(parse_caller(asked))


def parse_member(subject: str) -> tuple[PoolId, AgentId]:
    """Read pool and agent off the subject of a request that only it may make, `ioa.v1.registry.<request>.<pool>.<agent_id>`.

    Raises:
        InvalidInputError: The subject is not one.
    """
    match subject.split("."):
        case ["ioa", "v1", "registry", _, pool, agent_id]:
            return PoolId(_token(pool)), AgentId(_token(agent_id))
        case _:
            raise InvalidInputError(f"{subject!r} does not name who asks, and of which pool.")


def parse_comm(subject: str) -> CommId:
    """Read the group off any `ioa.v1.comm.<comm_id>.…` subject.

    Raises:
        InvalidInputError: The subject is not one.
    """
    match subject.split("."):
        case ["ioa", "v1", "comm", comm_id, *_]:
            return CommId(_token(comm_id))
        case _:
            raise InvalidInputError(f"{subject!r} does not belong to a group.")


def parse_goal_subject(subject: str) -> tuple[UserId, str | None]:
    """Read the user off a goal's subject, and the agent or pool that it addresses; None when any agent may take it.

    Raises:
        InvalidInputError: The subject is not one.
    """
    match subject.split("."):
        case ["ioa", "v1", "goal", user]:
            return UserId(_token(user)), None
        case ["ioa", "v1", "goal", user, addressee]:
            return UserId(_token(user)), addressee
        case _:
            raise InvalidInputError(f"{subject!r} does not name whose goal it is.")


def kind_of(subject: str) -> str:
    """Name the kind of a request's subject without the ids in it, such as `groups.launch` or `comm.say`."""
    tokens = subject.removeprefix(f"{ROOT}.").split(".")
    if tokens[0] in ("registry", "discovery", "groups", "uploads", "read"):
        return ".".join(tokens[:2])
    return "comm.say" if "say" in tokens else "other"


def _token(value: str) -> str:
    """Check a token of a subject that came from outside: a server lets clients publish on `…say.*` as if it were a name."""
    try:
        return check_token(value)
    except ValueError as error:
        raise InvalidInputError(str(error)) from None
