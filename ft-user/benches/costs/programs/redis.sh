#!/bin/sh
# redis-server under its own benchmark: requests a second.
set -eu
redis-server --port 0 --unixsocket "$1/redis.sock" --save '' --appendonly no >"$1/redis.log" &
server=$!
trap 'kill $server; wait $server || true; rm -f "$1/redis.sock"' EXIT
until [ -S "$1/redis.sock" ]; do sleep 0.02; done
redis-benchmark -s "$1/redis.sock" -t set -n 150000 -c 20 --csv |
    awk -F'"' '$2 == "SET" { print "figure rate", $4 }'
