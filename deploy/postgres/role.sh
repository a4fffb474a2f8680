#!/bin/sh
# PostgreSQL's image runs this once, on an empty volume: Paydesk gets a role that owns its database and is no superuser.
set -eu
psql --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname=postgres --no-password --quiet <<'SQL'
\set password `cat /run/secrets/database_password`
create role paydesk login password :'password';
grant pg_read_all_stats to paydesk;
create database paydesk owner paydesk template template0 encoding 'UTF8';
SQL
