"""Corrections of the library for clients of A2A 0.3. They are in effect after the import."""

from __future__ import annotations

from base64 import b64encode
from contextvars import ContextVar

from a2a.compat.v0_3 import conversions
from a2a.compat.v0_3.a2a_v0_3_pb2 import FilePart
from a2a.compat.v0_3.proto_utils import FromProto
from a2a.compat.v0_3.types import FileWithBytes, FileWithUri, TaskState, TaskStatusUpdateEvent
from a2a.types import a2a_pb2

encodes_twice = ContextVar("encodes_twice", default=False)
"""Whether the client encodes files twice by HTTP+JSON, as the library does. The clients of other languages encode them once."""

_convert_update, _convert_file = conversions.to_compat_task_status_update_event, FromProto.file


def _to_old_update(core_event: a2a_pb2.TaskStatusUpdateEvent) -> TaskStatusUpdateEvent:
    """Convert an update. The library does not mark the last event of a stream that ends with a question."""
    update = _convert_update(core_event)
    return update.model_copy(update={"final": update.final or update.status.state is TaskState.input_required})


def _from_old_file(file: FilePart) -> FileWithUri | FileWithBytes:
    """Convert a file by HTTP+JSON."""
    if file.HasField("file_with_bytes") and not encodes_twice.get():
        file.file_with_bytes = b64encode(file.file_with_bytes)
    return _convert_file(file)


conversions.to_compat_task_status_update_event = _to_old_update
FromProto.file = _from_old_file  # type: ignore[method-assign]
