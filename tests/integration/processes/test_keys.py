"""What a process lets others see of its keys."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

_SEED = "SUAGRTQNBVPQKBEXHS6HEM2EEGCZK5CJ4H4XDZXR5UVLZYUMTTFLTBVCEY"
_PR_GET_DUMPABLE = 3
_MAIN = f"""
import ctypes, os, sys

from ioa.runtime.process import run_process
from ioa.runtime.settings import ProcessSettings

async def main(settings, stop):
    print(ctypes.CDLL(None).prctl({_PR_GET_DUMPABLE}), settings.nats_seed, os.environ.get("IOA_NATS_SEED"))
    one = ValueError(f"no server takes {{settings.nats_seed}}")
    raise {{"alone": one, "group": ExceptionGroup("all", [one, ValueError(settings.nats_seed.lower()[:-1])])}}[sys.argv[1]]

run_process(ProcessSettings, main)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux closes the memory of a process")
@pytest.mark.parametrize("raised", ["alone", "group"])
async def test_a_key_is_its_process_own(raised: str) -> None:
    """Others of the same user read neither its memory nor its environment, what it starts gets none, and no traceback shows it."""
    command = (sys.executable, "-W", "error", "-c", _MAIN, raised)
    pipe = asyncio.subprocess.PIPE
    env = {**os.environ, "IOA_NATS_SEED": _SEED}
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, env=env)
    told, errors = await process.communicate()
    assert (process.returncode, told.decode().split()) == (1, ["0", _SEED, "None"]), errors
    assert "ValueError: no server takes [hidden]" in errors.decode()
    assert _SEED[:-1].lower() not in errors.decode().lower()
