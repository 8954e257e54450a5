#!/usr/bin/env bash
# The whole system on this machine, two goals on one file, and an agent that is killed; `make demo` and `ioa demo` run this. What it
# produces lies in `out`, below the folder where it was started. Nothing of it is left running.
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
export IOA_DATA="$data" # where it runs, and what it lets in, stands there

# Three needs, each of which feeds the next: three agents, found by what they say of themselves.
ioa run "Compute the total revenue per region in sales.csv, make a bar chart of it and write a report of both" \
  --input "$examples/data/sales.csv" --out out

# Who is killed in the third act joins meanwhile.
count_slowly() {
  IOA_AGENT_DATA="$data/agents" IOA_LOG_LEVEL=error ioa agent run "$examples/slow_counter.py:agent" &
  counter=$!
}
count_slowly

# The agent that fits this one has no skill but editing, so it opens a team of its own for the task. The report writer only leads.
echo
ioa run "Prepare a full briefing on sales.csv: total units per month and a line chart of it" \
  --input "$examples/data/sales.csv" --agent report-writer --out out

# A task is under way when its agent is killed. The group's log and the agent's memory are all there is to go on with.
echo
: >"$data/seen"
(ioa run "Count slowly to three" --agent slow-counter --out out 2>&1 | tee "$data/seen") &
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
ioa group replay "$group"
cat <<'END'

What just happened: an agent died in the middle of a task; started again, it found the task in its memory and in the group's log and ran
it anew, and the replay of that log shows that every entry is there, once and in order.
END
