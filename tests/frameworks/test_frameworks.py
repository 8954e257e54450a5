"""Adapters of real frameworks, each framework in the version that the documentation names and in its own environment.

A fake model answers. Each framework passes the conformance cases and debates in a team on a nats-server. All of them together need
1.3 GB and some minutes of a package index.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FRAMEWORKS = {
    "langgraph": ["langgraph==1.2.22"],
    "pydantic_ai": ["pydantic-ai-slim==2.68.0"],
    "smolagents": ["smolagents==1.26.0"],
    "autogen": ["autogen-agentchat==0.7.5", "autogen-ext==0.7.5"],
    "agent_framework": ["agent-framework-core==1.23.0"],
    "openai_agents": ["openai-agents==0.24.0"],
    "adk": ["google-adk==2.13.0"],
    "llama_index": ["llama-index-core==0.14.25"],
    "crewai": ["crewai==1.15.30"],
    "agno": ["agno==3.1.10"],
}


@pytest.mark.frameworks
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_adapter_with_the_real_framework_passes_the_conformance_cases(name: str, tmp_path: Path) -> None:
    """`tests.frameworks.conform` exits with 0 in an environment with the framework and without pytest."""
    requirements = [f"--with={requirement}" for requirement in (f"{ROOT}[server]", *FRAMEWORKS[name])]
    uv = [str(Path(sys.executable).with_name("uv")), "run", "--quiet", "--no-project", "--python", sys.executable]
    # no telemetry, and no files in the home directory of the user
    quiet = {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    cache = subprocess.run([uv[0], "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
    done = subprocess.run(
        [*uv, "--isolated", f"--cache-dir={cache}", *requirements, "python", "-m", "tests.frameworks.conform", name],
        env={**os.environ, **quiet},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
