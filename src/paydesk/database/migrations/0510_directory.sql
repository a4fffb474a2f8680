-- oldest code: 150
-- Cells of one deployment know of each other, and where each merchant is. The home cell writes both tables, the others have
-- copies that PostgreSQL's logical replication brings: no key, trigger or check here may refuse what home has.
create table cell (
    number smallint primary key,
    address text not null,
    inside text not null,
    database_id text not null,
    added_at timestamptz not null
);
comment on table cell is 'the cells of this deployment, home among them; none: it stands alone. A copy of home''s';
comment on column cell.address is 'its public base address';
comment on column cell.inside is 'where the other cells reach its web server';
comment on column cell.database_id is 'deployment.tag there, by which its database is known again';

create table directory (
    kind text not null,
    name text not null,
    cell smallint not null,
    merchant_id bigint,
    changed_at timestamptz not null,
    primary key (kind, name)
);
comment on table directory is 'which cell a merchant, a key or an address is in. A copy of home''s';
comment on column directory.kind is 'merchant, public_key, private_key or email; later code may know more';
comment on column directory.name is 'a merchant''s id; of all others a fingerprint, in hex: what is not sealed is not here';
comment on column directory.merchant_id is 'whose it is; null for an address, whose person may belong to several';
comment on column directory.changed_at is 'when it was entered, or went to another cell; UTC';

-- A merchant moves with all that is entered of it.
create index directory_by_merchant on directory (merchant_id) where merchant_id is not null;

alter table deployment add column home_cell smallint;
comment on column deployment.home_cell is
    'the cell whose directory is written, which may be this one; null: there are no cells. Written by paydesk cell add';
