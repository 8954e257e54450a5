"""Running code of strangers: confined by what it can do harm to, and honest about what this machine can confine.

The parent decides (`process`: the plan, the limits, the watch; `landlock` and `seccomp`: what the kernel is told, both pure), a
launcher confines itself and becomes the command, and a level is used only where its self-test has passed (`levels`, `self_test`).
Every level shares the kernel with whoever runs it: it stops what code does, not what an exploit of the kernel does.
"""

from __future__ import annotations

from ioa.sandbox.box_folder import lay
from ioa.sandbox.confined_process import run
from ioa.sandbox.levels import AUTO, SETTING, Level, level_here
from ioa.sandbox.limits import SandboxLimits

__all__ = ["AUTO", "SETTING", "Level", "SandboxLimits", "lay", "level_here", "run"]
