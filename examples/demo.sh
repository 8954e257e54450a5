#!/usr/bin/env bash
# Run the whole system on this machine, two goals on one file, and a goal whose agent is killed; `make demo` and `ioa demo` run this.
# Results are written to `out`, in the current folder. All processes are stopped at the end.
set -euo pipefail
examples=$(cd "$(dirname "$0")" && pwd)

data=$(mktemp -d)
: >"$data/ready"
ioa up --data "$data" --port 0 --pool "$examples/pool.toml" >"$data/ready" &
system=$!
stop() {
  kill ${counter:-} "$system" 2>/dev/null || true
  wait "$system" || true
  rm -rf "$data"
}
trap stop EXIT

until grep -q '^ready' "$data/ready"; do
  kill -0 "$system" 2>/dev/null || { echo "The system did not start." >&2; exit 1; }
  sleep 0.1
done
export IOA_DATA="$data" # the folder with the system's address and password

# A list of three tasks, of which #1 and #2 use earlier results: three agents, found by their cards.
ioa run "1. sum of revenue by region in sales.csv
2. bar chart of #1
3. report of #1 and #2" --input "$examples/data/sales.csv" --out out

# The agent that the third goal kills joins now.
count_slowly() {
  IOA_AGENT_DATA="$data/agents" IOA_LOG_LEVEL=error ioa agent run "$examples/slow_counter.py:agent" &
  counter=$!
}
count_slowly

# This goal is one task for the agent that coordinates briefings: it opens a nested group for the list.
echo
ioa run "briefing:
- sum of units by month
- line chart of #1" --input "$examples/data/sales.csv" --agent report-writer --out out

# The agent is killed during its task. The task continues from the group's log and the agent's memory.
echo
: >"$data/seen"
(ioa run "count slowly to three" --agent slow-counter --out out 2>&1 | tee "$data/seen") &
running=$!
until grep -q '% one' "$data/seen"; do
  kill -0 "$running" 2>/dev/null || { echo "The goal ended before its agent could be killed." >&2; exit 1; }
  sleep 0.1
done
kill -9 "$counter"
wait "$counter" 2>/dev/null || true
echo "         >>> slow-counter was killed (kill -9) in the middle of its task; it is started again."
count_slowly
wait "$running"
group=$(ioa groups --limit 1 --json | sed -n 's/.*"comm_id": "\([^"]*\)".*/\1/p' | head -n 1)
ioa groups "$group" --replay
cat <<'END'

An agent was killed during a task. After its restart it found the task in its memory and in the group's log, and ran it again. The
replay of the log shows that each entry is there once, in order.
END
