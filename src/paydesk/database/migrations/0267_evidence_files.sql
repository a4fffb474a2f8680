-- oldest code: 150
-- Files that belong to a merchant's answer to a dispute, written anew by us, one of each kind.
create table evidence_file (
    merchant_id bigint not null,
    live boolean not null,
    id bigint generated always as identity,
    chargeback_id bigint not null,
    kind text not null,
    name text not null,
    media_type text not null,
    size integer not null check (size > 0),
    pages integer not null check (pages > 0),
    content bytea,
    upload_key text not null,
    acquirer_name text not null default '',
    created_at timestamptz not null,
    primary key (merchant_id, id),
    foreign key (merchant_id, chargeback_id) references chargeback (merchant_id, id) on delete cascade
);
comment on column evidence_file.name is 'what the merchant calls it';
comment on column evidence_file.content is 'null: erased, since its customer is or the dispute is long over';
comment on column evidence_file.upload_key is 'under which it is handed to the acquirer, however often';
comment on column evidence_file.acquirer_name is 'what the acquirer calls it; empty: not known to be there';
comment on column evidence_file.created_at is 'in real time';
-- It is packed already.
alter table evidence_file alter column content set storage external;
-- Serves the list of an answer's files, and holds them to one of each kind.
create unique index evidence_file_of_kind on evidence_file (merchant_id, live, chargeback_id, kind);
-- Serves the erasing of files whose dispute is long over.
create index evidence_file_held on evidence_file (merchant_id, chargeback_id) where content is not null;
