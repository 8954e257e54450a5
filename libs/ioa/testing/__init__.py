"""Test doubles for authors of agents. The names below are public; other modules are for the tests of this project.

`ioa_testkit` runs whole systems in tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioa.lazy_names import lazy_names

if TYPE_CHECKING:
    from ioa.testing.chat_model_contract import ChatModelContract
    from ioa.testing.recording_context import RecordingContext, found, input_file, upstream
    from ioa.testing.scripted_brain import ScriptedBrain
    from ioa.testing.scripted_model import ScriptedModel, wants

__all__ = ["ChatModelContract", "RecordingContext", "ScriptedBrain", "ScriptedModel", "found", "input_file", "upstream", "wants"]

_HOMES = {
    "ChatModelContract": "ioa.testing.chat_model_contract",
    "RecordingContext": "ioa.testing.recording_context",
    "ScriptedBrain": "ioa.testing.scripted_brain",
    "ScriptedModel": "ioa.testing.scripted_model",
    "found": "ioa.testing.recording_context",
    "input_file": "ioa.testing.recording_context",
    "upstream": "ioa.testing.recording_context",
    "wants": "ioa.testing.scripted_model",
}
"""Where each name is defined."""

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
