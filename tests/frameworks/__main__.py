"""Adopt agents of real frameworks, each in an environment of its own: `python -m tests.frameworks [NAME…]`.

Each framework is installed in the version that the documentation names, put to the ten cases with a model that is none, debates in
a team on a nats-server, and is deleted again. Together they take 1.3 GB and some minutes of a package index, so no test run does it
by itself.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

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


def try_framework(name: str) -> bool:
    """Say whether a framework's adapter keeps its promises with the real one."""
    with tempfile.TemporaryDirectory(prefix=f"ioa-{name}-") as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{ROOT}[server]", *FRAMEWORKS[name]]
        if subprocess.run(install, check=False).returncode != 0:
            print(f"{name}: cannot be installed here")
            return False
        # Without telemetry, and without files in the home of the user.
        quiet = {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "HOME": folder, "PYTHONPATH": str(ROOT)}
        conform = [python, "-m", "tests.frameworks.conform", name]
        return subprocess.run(conform, env={**os.environ, **quiet}, cwd=folder, check=False).returncode == 0


def main() -> int:
    """Try frameworks one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(FRAMEWORKS)}; all by default")
    names = parser.parse_args().names or list(FRAMEWORKS)
    if unknown := sorted(set(names) - FRAMEWORKS.keys()):
        parser.error(f"unknown: {', '.join(unknown)}")
    failed = [name for name in names if not try_framework(name)]
    print(f"kept by {', '.join(name for name in names if name not in failed) or 'none'}; failed: {', '.join(failed) or 'none'}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
