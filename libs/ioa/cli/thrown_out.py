"""Ending what somebody launched who is let in no more."""

from __future__ import annotations

from ioa.adapters.nats.connection import open_connection
from ioa.adapters.nats.orders import drop_orders
from ioa.adapters.nats.system_client import open_system
from ioa.cli.reach import reach
from ioa.errors import ForbiddenError
from ioa.group.requests import CancelGroup
from ioa.hosting.place import PATIENCE
from ioa.ports.goal_client import GoalFilter
from ioa.ports.system_client import SystemClient
from ioa.protocol.ids import ADMIN, LOCAL, GoalName, UserId

_PAGE = 200


async def end_goals_of(url: str | None, user: UserId, ended: list[GoalName]) -> None:
    """Drop a user's orders that were not taken in, and cancel his open goals; `ended` gets each as soon as it is cancelled.

    An order that was being taken in meanwhile is a goal a moment later, so it goes on until a look finds none.

    Raises:
        ForbiddenError: Who asks is no admin.
        UnavailableError: The system does not answer.
    """
    settings, _ = await reach(url)
    async with open_connection(settings, patience=PATIENCE) as client, open_system(settings, patience=PATIENCE) as system:
        if (me := await system.user()) not in (ADMIN, LOCAL):
            raise ForbiddenError(f"This credential is {me}'s.", hint="An admin ends goals of others.")
        found = True
        while found:
            await drop_orders(client.jetstream(), user)
            found = await _cancel_open(system, user, ended)


async def _cancel_open(system: SystemClient, user: UserId, ended: list[GoalName]) -> bool:
    """Cancel a user's goals that are open now; whether there were any."""
    before: int | None = None
    known = len(ended)
    while True:
        page = await system.goals(limit=_PAGE, before=before, only=GoalFilter(open_only=True))
        for name in (one.record.goal.name for one in page.goals):
            if name.owner == user and name not in ended:
                await system.cancel(CancelGroup(goal_id=name.goal_id, why=f"{user} was thrown out."), user)
                ended.append(name)
        before = page.before
        if before is None:
            return len(ended) > known
