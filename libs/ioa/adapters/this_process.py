"""The session of an agent in this process."""

from __future__ import annotations

import os
import socket

from ioa.ports.clock import Clock, IdSource
from ioa.protocol.ids import SessionId
from ioa.protocol.registry import Session


def new_session(clock: Clock, ids: IdSource) -> Session:
    """Create a session with the host and the id of this process."""
    return Session(session=SessionId(ids.new("s")), host=socket.gethostname()[:255], pid=os.getpid(), since=clock.now())
