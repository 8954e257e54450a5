"""Check of the files that an order refers to."""

from __future__ import annotations

from ioa.errors import ForbiddenError
from ioa.protocol.api_keys import Scope
from ioa.protocol.goal_order import GoalOrder
from ioa_gateway.calls import ApiCall


def check_inputs(call: ApiCall, order: GoalOrder) -> None:
    """Check that a key that does not read all goals of its user names no object of the users' store.

    Such a name can be guessed. A reference cannot, so its holder may give the file to a goal.

    Raises:
        ForbiddenError: An input is the name of an object.
    """
    if Scope.GOALS_READ in call.caller.scopes and not call.caller.labels:
        return
    for one in order.inputs:
        if isinstance(one, str):
            raise ForbiddenError(
                f"This key cannot refer to the object {one[:80]!r} by its name.", hint="Upload the file by this key."
            )
