-- name: newest_step()$
select max(number) from schema_migration;
