"""Replacing and revoking the keys of a folder while the system runs: `ioa credentials rotate`, `revoke` and `expire`.

A key is replaced in three steps, each of which can be done again: its public key is noted as retiring, the new seed takes its
place, and the authorization lets in both. Who runs reads its seed anew whenever its connection ends, and goes on under the new key;
nothing of it is restarted. nats-server closes, when it reloads, each connection whose key it lets in no more.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from ioa.adapters.nats.audit import NatsAuditTrail
from ioa.adapters.nats.authorization import agent_of, names_in, names_of, user_of
from ioa.adapters.nats.connection import open_connection
from ioa.adapters.nats.permissions import Permissions, Service
from ioa.adapters.nats.whoami import ask_tenant
from ioa.adapters.nkey_seeds import public_key_of
from ioa.cancellation import fail_after
from ioa.cli.credentials import AUTHORIZATION, CALLOUT, TENANTS, FolderSecrets, KeptSeed, in_folder, read_known, write_known
from ioa.cli.keys import end_keys_of
from ioa.cli.reach import open_reached_system, reach
from ioa.cli.revocations import Revocation, note_revocation, noted_revocation
from ioa.cli.shut_out import TRIED, Door, try_door
from ioa.cli.terminal import Terminal
from ioa.cli.thrown_out import end_goals_of
from ioa.errors import ForbiddenError, InvalidInputError, IoaError, NotFoundError, UnavailableError
from ioa.hosting.cluster_credentials import AUTHORIZATION as CONFIGURATION
from ioa.hosting.cluster_credentials import RETIRING, REVOKED, Retiring, key_in, noted, replaced, retiring_in
from ioa.hosting.place import PATIENCE
from ioa.protocol.api_keys import KNOWN_FOR, KeyId
from ioa.protocol.audit import CAME_AS_AGENT, CAME_AS_USER, Deed, in_a_line
from ioa.protocol.ids import AgentId, GoalName, TenantId, UserId, is_token
from ioa.protocol.registry import RemoveAgent
from ioa.retry import until_available
from ioa.runtime.watched_file import is_line

_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
_RELOAD = "nats-server --signal reload"
_GIVEN_AGAIN = " Then give this command again: it has more to do."
_PATIENCE = timedelta(seconds=30)
GATEWAYS_LOOK_WITHIN = KNOWN_FOR + timedelta(seconds=2)
"""How long a gateway may still launch goals by a key that is gone: it looks each few seconds, and what is on its way takes time."""


@dataclass(frozen=True)
class KeyFolder:
    """Where keys are, and how the server that lets them in is told of a change.

    Attributes:
        folder: What `ioa credentials create` made.
        pid_file: Where nats-server notes its process id (`pid_file` in its configuration); None if it is told by hand.
        tenant: Whose keys are meant.
    """

    folder: Path
    pid_file: Path | None
    tenant: TenantId | None = None

    @property
    def included(self) -> Path:
        """What nats-server includes."""
        return self.folder / AUTHORIZATION / CONFIGURATION

    def reload(self, then: str = "") -> bool:
        """Have the server read who is let in, if it is known how; returns whether it was told.

        Args:
            then: What to do once it was told by hand, where more is to be done.

        Raises:
            UnavailableError: No server runs by the pid file, or it is another user's.
        """
        if self.pid_file is None:
            return False
        try:
            os.kill(int(self.pid_file.read_text(encoding="ascii")), signal.SIGHUP)
        except (OSError, ValueError) as error:
            raise UnavailableError(
                f"The nats-server of {self.pid_file} was not told: {getattr(error, 'strerror', None) or error}.",
                hint=f"What it includes is written; tell it with `{_RELOAD}`.{then}",
            ) from None
        return True


def rotate(keys: KeyFolder, name: str | None, grace: timedelta, now: datetime, terminal: Terminal) -> None:
    """Replace the keys that bear a name: those of a pool, service or user, or of one agent. The old ones are let in for a while.

    The grace that is given last holds: where a rotation was interrupted, for the keys that it was to replace, whichever it had been
    given; keys of earlier rotations are let in no longer than that. What is let in no more is not let in again. Without a name the
    keys are all those of the tenant.

    Raises:
        InvalidInputError: Nobody of this name is let in, or the folder is open to others.
        UnavailableError: The server could not be told; all is written.
    """
    kept = FolderSecrets(keys.folder)
    until = now + grace
    with kept.alone():
        known = read_known(kept, keys.folder)
        found = _named(kept, keys.tenant, name)
        changed = [(seed, may) for seed in found if (may := _rights(seed, known)) is not None]
        if not changed:
            who = name or keys.tenant
            raise InvalidInputError(f"{who} is not let in as it is.", hint="Run `ioa credentials create`, and name everybody.")
        for seed, may in changed:
            new = replaced(seed.secret, seed.key, _retiring_until(until, seed, known), until, _BEFORE_ALL)
            kept.extend(seed.secret, new)
            known[public_key_of(key_in(seed.secret, seed.key, new).seed)] = replace(may, inbox_of=seed.held.inbox_owner)
        over = _end_graces(kept, known, now)
        write_known(kept, known)
        told = keys.reload()
        over.forget(kept)
    _tell_unread(over, terminal)
    files = [str(keys.folder / seed.secret / seed.key) for seed, _ in changed]
    left_out = sorted({seed.name for seed in found} - {seed.name for seed, _ in changed})
    if terminal.as_json:
        terminal.document(
            {
                "seeds": files,
                "old_let_in_until": until.isoformat(),
                "reloaded": told,
                "authorization": str(keys.included),
                "left_out": left_out,
            }
        )
        return
    terminal.note(f"{len(files)} keys are replaced: who runs goes on, and shows the new one when it connects again")
    if left_out:
        terminal.note(f"not let in before, and left as they are: {', '.join(left_out)}")
    if grace:
        terminal.note(f"the old ones are let in until {until:%Y-%m-%d %H:%M:%S} UTC; then run `ioa credentials expire`")
    _tell_reload(keys, told, terminal)


def expire(keys: KeyFolder, now: datetime, terminal: Terminal) -> None:
    """Let in no more the old keys whose time is over.

    Raises:
        InvalidInputError: There are no credentials, or the folder is open to others.
        UnavailableError: The server could not be told; all is written.
    """
    kept = FolderSecrets(keys.folder)
    with kept.alone():
        known = read_known(kept, keys.folder)
        over = _end_graces(kept, known, now)
        changed = write_known(kept, known)
        told = bool(changed or over.left) and keys.reload()
        over.forget(kept)
    _tell_unread(over, terminal)
    ended, waiting = over.ended, over.waiting
    if terminal.as_json:
        soonest = min(waiting).isoformat() if waiting else None
        terminal.document({"ended": ended, "next": soonest, "reloaded": told, "authorization": str(keys.included)})
        return
    rest = f"; of {len(waiting)} the first one on {min(waiting):%Y-%m-%d at %H:%M:%S} UTC" if waiting else ""
    terminal.note(f"{ended} old keys are let in no more{rest}")
    if ended:
        _tell_reload(keys, told, terminal)


async def revoke(
    keys: KeyFolder, name: str | None, url: str | None, now: datetime, terminal: Terminal, *, keep_goals: bool = False
) -> None:
    """Let in no more whoever bears a name, by any key, those of HTTP included, and have the registry forget who is an agent.

    The goals of who is a user are cancelled unless `keep_goals`, those that wait included.

    Without a name the tenant itself goes, with its accounts; what it has stored stays on the server's disk.

    Raises:
        InvalidInputError: There is nobody of this name, or the folder is open to others.
        UnavailableError: The server could not be told; all is written.
        IoaError: The server was told, and lets in the key all the same; all else is done.
    """
    out, told, over = await asyncio.to_thread(_take_out, keys, name, now, keep_goals=keep_goals)
    _tell_unread(over, terminal)
    door = await _try_door(url, out.seed) if told and out.seed is not None else Door.UNTRIED
    forgotten, why = await _forget([*out.cards], keys.tenant, url) if told else ([], "")
    ended, why_keys = await _end_keys(out.http_keys, keys.tenant, url)
    cancelled, why_goals = await _end_goals(out.goals, keys.tenant, url)
    is_out = told and door is not Door.OPEN  # who is not comes back, and launches more
    left = out.after(
        server=is_out,
        cards=forgotten if is_out else (),
        http_keys=() if why_keys else out.http_keys,
        goals=out.goals if is_out and not why_goals else (),
    )
    await asyncio.to_thread(_settle, keys, out, left)
    if terminal.as_json:
        done = {"revoked": name or keys.tenant, "forgotten": forgotten, "reloaded": told, "authorization": str(keys.included)}
        terminal.document(
            {
                **done,
                "api_keys": ended,
                "goals": [str(goal) for goal in cancelled],
                "door": door.value,
                "to_be_told": left.model_dump(mode="json", include={"server", "cards", "http_keys", "goals"}),
            }
        )
        _check_door(keys, name, door)
        return
    terminal.note(f"{name or keys.tenant} is taken out of {keys.included}")
    _tell_reload(keys, told, terminal)
    _tell_door(name or f"{keys.tenant}", door, told, terminal)
    _tell_cards(forgotten, {*out.cards} - {*forgotten}, why, terminal)
    _tell_keys(left.http_keys, ended, why_keys, terminal)
    _tell_goals(cancelled, why_goals, terminal)
    if not left.is_done:
        terminal.note("what is still to be told is noted: this command can be given again until it was")
    _check_door(keys, name, door)


async def revoke_subject(keys: KeyFolder, subject: str, url: str | None, terminal: Terminal, *, keep_goals: bool = False) -> None:
    """Take tokens of a subject no more, have the registry forget its agents, and end its users' keys of HTTP and their goals.

    At a reload the server ends each connection that was made by a token, and judges it anew. As whom the subject came the audit log
    tells: nothing else holds both names.

    Raises:
        InvalidInputError: Nobody is let in by tokens, the subject is empty or of several lines, or the folder is open to others.
        UnavailableError: The server could not be told; all is written.
    """
    told = await asyncio.to_thread(_refuse, keys, subject)
    guests, why_guests = await _guests_of(subject, _names_of_keys(keys), url)
    agents, users = [AgentId(one) for one in guests[CAME_AS_AGENT]], [UserId(one) for one in guests[CAME_AS_USER]]
    forgotten, why = await _forget(agents, keys.tenant, url) if told else ([], "")
    ended, why_keys = await _end_keys(users, keys.tenant, url)
    cancelled, why_goals = await _end_goals([] if keep_goals else users, keys.tenant, url)
    if terminal.as_json:
        done = {"revoked": subject, "reloaded": told, "file": str(keys.folder / CALLOUT / REVOKED)}
        terminal.document(
            {**done, "guests": guests, "forgotten": forgotten, "api_keys": ended, "goals": [str(goal) for goal in cancelled]}
        )
        return
    terminal.note(f"tokens of {subject} are taken no more" + ("; its connections are closed" if told else ""))
    if not told:
        terminal.note(f"to close its connections: {_RELOAD}, or give --pid-file the next time")
    terminal.note(f"to let it in again, take its line out of {keys.folder / CALLOUT / REVOKED}")
    _tell_cards(forgotten, {*agents} - {*forgotten}, why, terminal)
    _tell_keys(users, ended, why_keys, terminal)
    _tell_goals(cancelled, why_goals, terminal)
    if not (agents or users):
        terminal.note(
            f"{why_guests}if it was an agent or a user here, run, as an admin of its tenant: ioa agents remove AGENT --force,"
            " ioa keys list, and ioa keys revoke for each key of the user"
        )


def _names_of_keys(keys: KeyFolder) -> frozenset[str]:
    return names_in(keys.included.read_text(encoding="utf-8"))


async def _guests_of(subject: str, with_keys: Collection[str], url: str | None) -> tuple[dict[str, list[str]], str]:
    """Return as which agents and users a subject came, each the last one under this name, and why that is not known.

    Those of a tenant with a name are its own admin's affair, and who has a key by now is none of them.
    """
    last: dict[tuple[str, str], str] = {}
    guests: dict[str, list[str]] = {CAME_AS_AGENT: [], CAME_AS_USER: []}
    try:
        settings, _ = await reach(url)
        async with (
            open_connection(replace(settings, asks_to_read=True), patience=PATIENCE) as client,
            fail_after(_PATIENCE.total_seconds()),
        ):
            async for line in NatsAuditTrail(client).lines_of(Deed.CONNECTED):
                if not line.refused:
                    last[line.why, line.who] = line.target
    except IoaError as error:
        return guests, f"as whom it came is not known ({error.message}); "
    except TimeoutError:
        return guests, "as whom it came is not known (the audit log does not answer); "
    for (role, name), target in last.items():
        if role in guests and target == in_a_line(subject) and is_token(name) and name not in with_keys:
            guests[role].append(name)
    return guests, "the audit log tells of nobody as whom it came last; "


async def _try_door(url: str | None, seed: str) -> Door:
    """Try whether a key still opens the server that is in reach."""
    try:
        settings, _ = await reach(url)
    except UnavailableError:
        return Door.UNTRIED
    return await try_door(settings, seed, TRIED)


async def _check_tenant(tenant: TenantId | None, url: str | None) -> None:
    """See that what is in reach is of the tenant whose keys are meant: another one's agents and users may be called alike.

    Raises:
        ForbiddenError: It is of another tenant.
        UnavailableError: Nothing is in reach.
    """
    settings, _ = await reach(url)
    async with open_connection(settings, patience=PATIENCE) as client:
        if await ask_tenant(client) != tenant:
            raise ForbiddenError("what IOA_NATS_SEED reaches is of another tenant", hint="Give the seed of an admin of this one.")


async def _forget(agents: list[AgentId], tenant: TenantId | None, url: str | None) -> tuple[list[AgentId], str]:
    """Have the registry forget agents, which takes an admin; returns whom it has forgotten, and why not the others."""
    forgotten: list[AgentId] = []
    if agents:
        try:
            await _check_tenant(tenant, url)
            async with open_reached_system(url) as system, fail_after(_PATIENCE.total_seconds()):
                for agent_id in agents:
                    removal = partial(system.remove_agent, RemoveAgent(agent_id=agent_id, force=True))
                    with suppress(NotFoundError):  # it has never registered
                        await until_available(removal, _try_again)
                    forgotten.append(agent_id)
        except IoaError as error:
            return forgotten, f"the card stays ({error.message}); "
        except TimeoutError:
            return forgotten, "the card stays (the registry does not answer); "
    return forgotten, ""


async def _end_keys(users: Collection[UserId], tenant: TenantId | None, url: str | None) -> tuple[list[KeyId], str]:
    """Forget the keys of HTTP that act for users, which takes an admin; returns which they were, and why not the others."""
    ended: list[KeyId] = []
    try:
        if users:
            await _check_tenant(tenant, url)
        async with fail_after(_PATIENCE.total_seconds()):
            for user in users:
                ended += await end_keys_of(url, user)
    except IoaError as error:
        return ended, f"keys of HTTP may still let in ({error.message}); "
    except TimeoutError:
        return ended, "keys of HTTP may still let in (the system does not answer); "
    return ended, ""


async def _end_goals(users: Collection[UserId], tenant: TenantId | None, url: str | None) -> tuple[list[GoalName], str]:
    """Cancel the goals of users, which takes an admin; returns which they were, and why others may go on.

    Who had keys of HTTP a moment ago is let in by gateways until they have read that he has none, whoever ended those, and nothing
    tells that he had: what he launches meanwhile is cancelled behind that.
    """
    cancelled: list[GoalName] = []
    if not users:
        return cancelled, ""
    loop = asyncio.get_running_loop()
    unknown_at = loop.time() + GATEWAYS_LOOK_WITHIN.total_seconds()
    try:
        await _check_tenant(tenant, url)
        for look_at in (loop.time(), unknown_at):
            await asyncio.sleep(look_at - loop.time())
            async with fail_after(_PATIENCE.total_seconds()):
                for user in users:
                    await end_goals_of(url, user, cancelled)
    except IoaError as error:
        return cancelled, f"goals may go on ({error.message}); "
    except TimeoutError:
        return cancelled, f"goals may go on (to end them took longer than {_PATIENCE.total_seconds():.0f} s); "
    return cancelled, ""


def _try_again(_error: UnavailableError) -> None:
    """Ask again: all connections of the system may be made anew just now."""


def _take_out(keys: KeyFolder, name: str | None, now: datetime, *, keep_goals: bool) -> tuple[Revocation, bool, _Graces]:
    """Let in no more whoever bears a name, by a key of which there is no seed either, and remove his seeds.

    Who he is, and that he is let in no more, is noted first: behind that nothing else names him. Returns what is to be told of him,
    whether the server was, and what became of keys that were replaced.
    """
    kept = FolderSecrets(keys.folder)
    with kept.alone():
        known = read_known(kept, keys.folder)
        before = noted_revocation(kept, keys.tenant, name)
        named = [key for key, may in known.items() if may.tenant == keys.tenant and (name is None or name in names_of(may))]
        seeds = _named(kept, keys.tenant, name, may_be_none=bool(named) or before is not None)
        out = _revocation(keys.tenant, name, seeds, named, known, before, keep_goals=keep_goals)
        note_revocation(kept, out)
        for key in out.public_keys:
            known.pop(key, None)
        over = _end_graces(kept, known, now, but_for=seeds)
        changed = write_known(kept, known, gone=keys.tenant if name is None else None)
        for seed in seeds:  # first what is noted of those before each, which would let them in when one is made anew
            kept.remove(seed.secret, f"{seed.key}{RETIRING}")
            kept.remove(seed.secret, seed.key)
        to_tell = before is None or before.server or changed or bool(seeds or over.left)
        told = not to_tell or keys.reload(_GIVEN_AGAIN)
        over.forget(kept)
    return out, told, over


def _revocation(
    tenant: TenantId | None,
    name: str | None,
    seeds: Sequence[KeptSeed],
    named: Sequence[str],
    known: Mapping[str, Permissions],
    before: Revocation | None,
    *,
    keep_goals: bool,
) -> Revocation:
    """Say who is thrown out: whom seeds and keys of a name stand for, and of whom not all was told `before`."""
    out = before or Revocation(name=name, tenant=tenant)
    keys = dict.fromkeys((*out.public_keys, *(key for seed in seeds for key in seed.keys(known)), *named))
    agents, users = [*out.cards], [*out.http_keys, *out.goals]
    for may in (known[key] for key in keys if key in known):
        agents += [agent] if (agent := agent_of(may.publish)) is not None else []
        users += [user] if (user := user_of(may.publish)) is not None else []
    for seed in seeds:
        # Whom nothing lets in any more may still have cards, goals and keys of HTTP.
        if not known.keys() & {*seed.keys(known)}:
            agents += [AgentId(seed.key)] if seed.is_of_pool else []
            users += [UserId(seed.name)] if not (seed.is_of_pool or seed.name in {*Service}) else []
    if name is None:  # all of the tenant goes with it
        agents, users = [], []
    return Revocation(
        name=name,
        tenant=tenant,
        public_keys=tuple(keys),
        seed=seeds[-1].held.seed if seeds else out.seed,
        cards=tuple(dict.fromkeys(agents)),
        http_keys=tuple(dict.fromkeys(users)),
        goals=() if keep_goals else tuple(dict.fromkeys(users)),
    )


def _settle(keys: KeyFolder, out: Revocation, left: Revocation) -> None:
    """Note what is left to be told, unless somebody threw the same one out again meanwhile, and notes it himself."""
    kept = FolderSecrets(keys.folder)
    with kept.alone():
        if noted_revocation(kept, out.tenant, out.name) == out:
            note_revocation(kept, left)


def _refuse(keys: KeyFolder, subject: str) -> bool:
    """Take tokens of a subject no more; returns whether the server was told."""
    kept = FolderSecrets(keys.folder)
    if kept.read(CALLOUT) is None:
        raise InvalidInputError("Nobody is let in by tokens here.", hint="`ioa credentials create --callout` makes what it takes.")
    if not is_line(subject):
        raise InvalidInputError(f"{subject!r} is no subject of a token.", hint="Give what its claim `sub` says.")
    with kept.alone():
        lines = (kept.read(CALLOUT) or {}).get(REVOKED, b"").decode("utf-8", "replace").splitlines()
        kept.extend(CALLOUT, {REVOKED: "".join(f"{line}\n" for line in dict.fromkeys([*lines, subject])).encode()})
    return keys.reload(_GIVEN_AGAIN)


def _rights(seed: KeptSeed, known: Mapping[str, Permissions]) -> Permissions | None:
    """Return what a seed's holder may do; None if he is not let in, by a key before it either.

    Where a rotation was interrupted the seed is there already, and let in is the one before.
    """
    return next((known[one] for one in seed.keys(known) if one in known), None)


def _retiring_until(until: datetime, seed: KeptSeed, known: Mapping[str, Permissions]) -> dict[str, bytes]:
    """Return what a Secret holds when those before a seed are let in until a time at most.

    All stay noted: what is not, nobody ends. Where a rotation was interrupted its holder goes by the last of them that is let in,
    which is what is being replaced.
    """
    in_use = next((one for one in seed.keys(known) if one in known), None)

    def end_of(one: Retiring) -> datetime:
        return until if one.until is None or one.public_key == in_use else min(one.until, until)

    before = [one for one in seed.retiring(known) if one.public_key != seed.public_key]
    retiring = [Retiring(public_key=one.public_key, until=end_of(one)) for one in before]
    return {**seed.there, f"{seed.key}{RETIRING}": noted(retiring)}


def _named(kept: FolderSecrets, tenant: TenantId | None, name: str | None, *, may_be_none: bool = False) -> Sequence[KeptSeed]:
    """Return the seeds that bear a name: all of the Secret that is called so, else that of the agent.

    Without a name: each seed of the tenant.
    """
    if name is None and tenant is None:
        raise InvalidInputError("It is not said whose keys are meant.", hint="Name a service, a pool, an agent or a user.")
    everybody = [*kept.seeds(in_folder(tenant, "*"))]
    of_folder = [one for one in everybody if name in (None, one.folder)]
    seeds = [*of_folder, *(one for one in everybody if one.name == name and one.folder != name)]
    if not seeds and not may_be_none:
        raise InvalidInputError(
            f"There is no key of {name or tenant!r}.",
            hint="Name a service, a pool, an agent or a user; those of a tenant with --tenant.",
        )
    return seeds


@dataclass(frozen=True)
class _Graces:
    """What becomes of the keys that were replaced.

    Attributes:
        ended: How many were let in, and are no more.
        waiting: When the time of the others is over.
        left: What stays noted beside a seed, by its Secret and file, where the time of some is over.
        unread: Why of others nothing is known.
    """

    ended: int
    waiting: Sequence[datetime]
    left: Mapping[tuple[str, str], Sequence[Retiring]]
    unread: Sequence[str]

    def forget(self, kept: FolderSecrets) -> None:
        """Note no more whose time is over: last, when the server was told, so that the command can be given again until then."""
        for (secret, file), rest in self.left.items():
            if rest:
                kept.extend(secret, {file: noted(rest)})
            else:
                kept.remove(secret, file)


def _end_graces(kept: FolderSecrets, known: dict[str, Permissions], now: datetime, but_for: Sequence[KeptSeed] = ()) -> _Graces:
    """Take the retiring keys whose time is over off those that are let in, but for those before some seeds, which go."""
    going = {(seed.secret, seed.key) for seed in but_for}
    ended, waiting, unread = 0, list[datetime](), list[str]()
    left: dict[tuple[str, str], Sequence[Retiring]] = {}
    for secret, file in (*kept.find("*", f"*{RETIRING}"), *kept.find(f"{TENANTS}/*/*", f"*{RETIRING}")):
        there, key = kept.read(secret) or {}, file.removesuffix(RETIRING)
        if (secret, key) in going:
            continue
        try:
            every = retiring_in(there, key)
            current = public_key_of(key_in(secret, key, there).seed) if key in there else ""
        except InvalidInputError as error:  # it keeps nobody else from being thrown out
            unread.append(f"{secret}: {error.message}")
            continue
        over = [one for one in every if one.until is not None and one.until <= now]
        # Where a rotation was interrupted the seed that is to be replaced is noted, and there still.
        ended += sum(known.pop(one.public_key, None) is not None for one in over if one.public_key != current)
        waiting += [one.until for one in every if one.until is not None and one.until > now]
        if over:
            left[secret, file] = [one for one in every if one not in over]
    return _Graces(ended, waiting, left, unread)


def _tell_unread(over: _Graces, terminal: Terminal) -> None:
    for why in over.unread:
        terminal.note(f"{why} Old keys may be let in for ever: `ioa credentials rotate` of their holder writes it anew")


def _tell_cards(forgotten: Sequence[AgentId], left: Collection[AgentId], why: str, terminal: Terminal) -> None:
    for agent_id in forgotten:
        terminal.note(
            f"the agent {agent_id} is forgotten; what it led alone ends within some minutes, and the rest goes on without it"
        )
    for agent_id in sorted(left):
        terminal.note(f"{why}then run, as an admin: ioa agents remove {agent_id} --force")


def _tell_keys(users: Collection[UserId], ended: Sequence[KeyId], why: str, terminal: Terminal) -> None:
    for key_id in ended:
        terminal.note(f"the key {key_id} lets nobody in by HTTP any more")
    if why:
        terminal.note(f"{why}then run, as an admin: ioa keys list, and ioa keys revoke for each key of {', '.join(users)}")


def _tell_goals(cancelled: Sequence[GoalName], why: str, terminal: Terminal) -> None:
    if cancelled:
        terminal.note(f"{len(cancelled)} open goals are cancelled, and what had not begun is dropped")
    if why:
        terminal.note(f"{why}then run, as an admin: ioa goals --open, and ioa goal cancel USER/ID for each goal of theirs")


def _tell_door(name: str, door: Door, told: bool, terminal: Terminal) -> None:
    if door is Door.CLOSED:
        terminal.note(f"{name} is let in no more, which was tried; its connections are closed")
    elif told and door is Door.UNTRIED:
        terminal.note(f"whether the server lets in {name} no more was not tried: --url or IOA_NATS_URL says where it is")


def _check_door(keys: KeyFolder, name: str | None, door: Door) -> None:
    if door is Door.OPEN:
        raise IoaError(
            f"nats-server was told to reload, and lets in {name or keys.tenant} all the same, {TRIED.total_seconds():.0f} s later.",
            hint=f"Its configuration does not include {keys.included}: change that, and reload it. Until then the key is accepted.",
        )


def _tell_reload(keys: KeyFolder, told: bool, terminal: Terminal) -> None:
    if told:
        terminal.note("nats-server was told to reload")
    else:
        terminal.note(f"now have nats-server read {keys.included}: {_RELOAD}, or give --pid-file the next time")
