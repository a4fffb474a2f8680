#!/bin/sh
# What the official image does on an empty volume: a cluster, then the scripts, over a server that has only its socket.
set -eu
export PATH="$(dirname /usr/lib/postgresql/*/bin/initdb):$PATH" PGDATA=/var/lib/postgresql/data
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    # shellcheck disable=SC2086 # several options
    initdb --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" $POSTGRES_INITDB_ARGS
    shift
    PGPASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
    export PGPASSWORD
    pg_ctl --wait --options="$* -c listen_addresses=''" start
    for script in /docker-entrypoint-initdb.d/*.sh; do "$script"; done
    pg_ctl --wait --mode=fast stop
    unset PGPASSWORD
    set -- postgres "$@"
fi
exec "$@"
