"""Which process this is, as others are told."""

from __future__ import annotations

import os
import socket

from ioa.ports.clock import Clock, IdSource
from ioa.protocol.ids import SessionId
from ioa.protocol.registry import Session


def new_session(clock: Clock, ids: IdSource) -> Session:
    """Draw a session for an agent that this process is about to run."""
    return Session(session=SessionId(ids.new("s")), host=socket.gethostname()[:255], pid=os.getpid(), since=clock.now())
