#!/bin/sh
# PostgreSQL under pgbench, which only reads: transactions a second. The server refuses to be root.
set -eu
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
as() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }
pg_ctl() { as "$bin/pg_ctl" -D "$1/pg/data" -l "$1/pg/log" -w "$2" -o "-c listen_addresses= -c fsync=off -c unix_socket_directories=$1/pg" >&2; }
if [ ! -d "$1/pg" ]; then
    mkdir "$1/pg"
    [ "$(id -u)" != 0 ] || chown postgres "$1" "$1/pg"
    as "$bin/initdb" -D "$1/pg/data" -A trust -N >&2
    fill=yes
fi
pg_ctl "$1" start
trap 'as "$bin/pg_ctl" -D "$1/pg/data" -w -m fast stop >&2' EXIT
[ -z "${fill-}" ] || as pgbench -h "$1/pg" -i -q postgres >&2
as pgbench -h "$1/pg" -n -S -c 4 -j 2 -T 2 postgres | awk '$1 == "tps" { print "figure rate", $3 }'
