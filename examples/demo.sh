#!/usr/bin/env bash
# The whole system on this machine, one goal on one file: `make demo` runs this. Everything it starts has ended when it ends.
set -euo pipefail
cd "$(dirname "$0")/.."

ioa run "Compute the total revenue per region in sales.csv, make a bar chart of it and write a report of both" \
  --input examples/data/sales.csv --pool examples/pool.toml --out out
