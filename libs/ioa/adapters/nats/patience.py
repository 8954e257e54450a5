"""How long an answer is waited for, by what is asked: the one place for clients, and for nats-server.

It keeps each request that crosses accounts, with its reply subject, until that is answered or nobody waits for it any more
(`kept_for`), and looks through all of an account's whenever anybody there ends a subscription with a wildcard. So what is waited
for without need makes everybody slow: nobody asks for longer than is said here.
"""

from __future__ import annotations

from datetime import timedelta

from ioa.adapters.nats.permissions import is_pulled
from ioa.adapters.nats.reply_headers import USUAL_PATIENCE

READ_PATIENCE = timedelta(seconds=10)
"""How long what a stream holds is waited for."""
_RENEW_PATIENCE = timedelta(seconds=2)
"""Two of them, and the time between two renewals, are well below a lease."""
_SAY_PATIENCE = timedelta(seconds=2)
"""Short, since a message may be said again at any time, and the group waits while a router that was killed does not answer."""
_SEARCH_PATIENCE = timedelta(seconds=15)
_FILE_PATIENCE = timedelta(seconds=15)
"""How long a piece of a file is waited for: those of others are served in between, and of all together fewer wait than are served
meanwhile."""
_WAITED = {
    "registry.renew": _RENEW_PATIENCE,
    "registry.renew_at_all": _RENEW_PATIENCE,
    "discovery.search": _SEARCH_PATIENCE,
    "groups.file": _FILE_PATIENCE,
    "groups.put": _FILE_PATIENCE,
    "uploads.get": _FILE_PATIENCE,
    "uploads.put": _FILE_PATIENCE,
    "comm": _SAY_PATIENCE,
    "read": READ_PATIENCE,
    "DIRECT.GET": READ_PATIENCE,
}
"""By the third and fourth part of a subject, or the third alone. All else, what JetStream answers too, is waited for as usual."""
PULLED_WITHIN = timedelta(seconds=8)
"""For how long the server keeps a pull that is not answered: a client of ours waits for five."""
_ON_ITS_WAY = timedelta(seconds=1)
"""How much longer the server keeps it: an answer is on its way."""


def waited_for(subject: str) -> timedelta:
    """Return how long an answer is waited for on a subject, or on one that crosses over as it."""
    area, *rest = subject.split(".")[2:4] or [""]
    return _WAITED.get(".".join((area, *rest))) or _WAITED.get(area, USUAL_PATIENCE)


def kept_for(subject: str) -> timedelta:
    """Return for how long the server keeps a request on a subject that is not answered.

    It looks as seldom, so that some stay for twice as long. What may be answered often it keeps from the last answer.
    """
    if is_pulled(subject):
        return PULLED_WITHIN
    return waited_for(subject) + _ON_ITS_WAY
