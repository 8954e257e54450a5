#!/usr/bin/env bash
# The whole system on this machine and two goals on one file; `make demo` runs this. Nothing of it is left running.
set -euo pipefail
cd "$(dirname "$0")/.."

data=$(mktemp -d)
: >"$data/ready"
ioa up --data "$data" --port 0 --pool examples/pool.toml >"$data/ready" &
system=$!
stop() {
  kill "$system" 2>/dev/null || true
  wait "$system" || true
  rm -rf "$data"
}
trap stop EXIT

until grep -q '^ready' "$data/ready"; do
  kill -0 "$system" 2>/dev/null || { echo "The system did not start." >&2; exit 1; }
  sleep 0.1
done
IOA_NATS_URL=$(cut -d ' ' -f 2 "$data/ready")
export IOA_NATS_URL

# Three needs, each of which feeds the next: three agents, found by what they say of themselves.
ioa run "Compute the total revenue per region in sales.csv, make a bar chart of it and write a report of both" \
  --input examples/data/sales.csv --out out

# The agent that fits this one has no skill but editing, so it opens a team of its own for the task. The report writer only leads.
echo
ioa run "Prepare a full briefing on sales.csv: average units per product and a pie chart of it" \
  --input examples/data/sales.csv --agent report-writer --out out/briefing
