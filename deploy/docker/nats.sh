#!/bin/sh
# nats-server with the options that are given, and beside it its gate, which is started anew whenever it ends: the server goes on
# with what it read last meanwhile. Needs something that takes in orphans and passes signals on (`docker run --init`).
set -eu
# By MPTCP a connection has second paths, which the server, and so its gate, does not know.
export GODEBUG=multipathtcp=0
python3 -m ioa.hosting.gate --once
while :; do
  python3 -m ioa.hosting.gate || true
  sleep 1
done &
exec nats-server "$@"
