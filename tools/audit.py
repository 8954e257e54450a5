"""Look the locked dependencies up among known vulnerabilities, and say of which nothing is known.

    python -m tools.audit requirements/*.txt

pip-audit asks PyPI. A dependency that its source does not know it leaves out, and then ends with 0 as if it had found nothing,
such as behind a mirror that has packages and no advisories. Here that is not clean. Exits 0 if every dependency was looked up and
none is vulnerable, 1 if one is, 3 if none was found to be but not all were looked up.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CLEAN, VULNERABLE, NOT_SCANNED = 0, 1, 3
_SHOWN = 5


@dataclass(frozen=True)
class Audit:
    """What came of it: sentences about vulnerabilities, and why something was not scanned; empty if it was."""

    scanned: int
    vulnerable: tuple[str, ...]
    not_scanned: str

    @property
    def code(self) -> int:
        """The exit code."""
        if self.vulnerable:
            return VULNERABLE
        return NOT_SCANNED if self.not_scanned or not self.scanned else CLEAN


def judge(report: str, errors: str) -> Audit:
    """Judge by what pip-audit wrote: its JSON on standard output, or an error and nothing."""
    try:
        dependencies = json.loads(report)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = (errors.strip().splitlines() or ["pip-audit wrote nothing"])[-1]
        return Audit(0, (), f"no advisory source answered ({last})")
    skipped = [one["name"] for one in dependencies if "skip_reason" in one]
    vulnerable = tuple(
        f"{one['name']} {one['version']}: {found['id']}, mended in {', '.join(found['fix_versions']) or 'no version'}"
        for one in dependencies
        for found in one.get("vulns", ())
    )
    told = f"{', '.join(skipped[:_SHOWN])}{' …' if len(skipped) > _SHOWN else ''}"
    why = f"the advisory source does not know {len(skipped)} of {len(dependencies)} dependencies: {told}" if skipped else ""
    return Audit(len(dependencies) - len(skipped), vulnerable, why)


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit lock files and tell."""
    parser = argparse.ArgumentParser(description="Look the locked dependencies up among known vulnerabilities.")
    parser.add_argument("files", nargs="+", type=Path)
    files: Sequence[Path] = parser.parse_args(arguments).files
    hashed = [file for file in files if "--hash=" in file.read_text(encoding="utf-8")]
    codes = set()
    for group in (hashed, [file for file in files if file not in hashed]):  # pip-audit takes hashes of all or of none
        if group:
            codes.add(_audit(group))
    return next(code for code in (VULNERABLE, NOT_SCANNED, CLEAN) if code in codes)


def _audit(files: Sequence[Path]) -> int:
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--no-deps", "--progress-spinner", "off", "--format", "json"]
    named = [option for file in files for option in ("--requirement", str(file))]
    done = subprocess.run([*command, *named], capture_output=True, text=True, check=False)
    audit = judge(done.stdout, done.stderr)
    told = [f"vulnerable: {sentence}" for sentence in audit.vulnerable]
    if audit.not_scanned:
        told.append(f"not scanned: {audit.not_scanned}")
    names = ", ".join(file.name for file in files)
    told.append(f"{names}: {audit.scanned} looked up, {len(audit.vulnerable)} vulnerabilities known")
    sys.stdout.write("\n".join(told) + "\n")
    return audit.code


if __name__ == "__main__":
    sys.exit(main())
