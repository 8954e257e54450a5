#!/usr/bin/env bash
# Builds the images of deploy/docker/Dockerfile without a Docker engine, and one with nats-server, as archives that `ctr images import` and
# `docker load` read. usage: IMAGE_TOOL=PATH deploy/cluster/build-images.sh FOLDER [TAG]
#
# IMAGE_TOOL is a program that puts a Debian and some files into an image:
#   IMAGE_TOOL NAME:TAG OUT.tar --user UID [--debian PKG,PKG] [--add SRC:DST]... [--env K=V]... [--workdir DIR] [--port N]... -- ENTRYPOINT...
# .venv must have Python 3.11 (`make PYTHON=python3.11 setup`), as Debian 12 has it.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${IMAGE_TOOL:?name the program that builds images}"
out=$(mkdir -p "${1:?usage: build-images.sh FOLDER [TAG]}" && cd "$1" && pwd)
tag=${2:-$(.venv/bin/python -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["project"]["version"])')}
.venv/bin/python -c 'import sys; sys.exit(".venv must have Python 3.11, as Debian 12 has it" if sys.version_info[:2] != (3, 11) else 0)'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
uv=(.venv/bin/uv --quiet)

"${uv[@]}" build --wheel --out-dir "$work/dist"

# usage: image NAME "EXTRA..." OPTION_OF_IMAGE_TOOL...
image() {
  local name=$1 extra options=()
  for extra in speed nkeys $2; do options+=(--extra "$extra"); done
  shift 2
  "${uv[@]}" export --frozen --no-dev --no-emit-project "${options[@]}" --output-file "$work/$name.txt"
  "${uv[@]}" pip install --compile-bytecode --link-mode copy --require-hashes --target "$work/$name" --requirement "$work/$name.txt"
  "${uv[@]}" pip install --compile-bytecode --link-mode copy --no-deps --target "$work/$name" "$work"/dist/*.whl
  "$IMAGE_TOOL" "localhost/ioa/$name:$tag" "$out/$name.tar" --user 65532:65532 --debian python3,ca-certificates,libstdc++6 \
    --add "$work/$name:/app/site" --add deploy/docker/healthcheck.py:/app/healthcheck.py \
    --env PYTHONPATH=/app/site --env PYTHONDONTWRITEBYTECODE=1 --env PYTHONUNBUFFERED=1 --env HOME=/tmp --env IOA_METRICS_PORT=9464 \
    --workdir /app --port 9464 "$@" -- python3 -m
  rm -rf "${work:?}/$name"
}

image service "authcallout gateway a2a mcp"
image discovery discovery
cp -r examples/agents "$work/agents"
find "$work/agents" -name __pycache__ -prune -exec rm -rf {} +
image agent sandbox --add "$work/agents:/app/examples/agents" --env IOA_AGENT_DATA=/data

# nats-server is one static binary; the wheel that `ioa up` uses holds it. The chart probes it by wget, which NATS's image on Alpine has.
nats=$(.venv/bin/python -c 'from ioa.adapters.nats.wire.embedded_server import find_nats_server; print(find_nats_server())')
"$IMAGE_TOOL" "localhost/ioa/nats:$tag" "$out/nats.tar" --user 65532:65532 --debian wget --add "$nats:/usr/local/bin/nats-server" \
  --port 4222 -- /usr/local/bin/nats-server
