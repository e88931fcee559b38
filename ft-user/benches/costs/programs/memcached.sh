#!/bin/sh
# memcached with two threads under memcslap: requests a second.
set -eu
memcached -u "$(id -un)" -s "$1/memcached.sock" -t 2 &
server=$!
trap 'kill $server; wait $server || true; rm -f "$1/memcached.sock"' EXIT
until [ -S "$1/memcached.sock" ]; do sleep 0.02; done
memcslap -s "$1/memcached.sock" --concurrency=4 --execute-number=20000 --test=set |
    awk '$3 == "set" { print "figure rate", $4 / $9 }'
