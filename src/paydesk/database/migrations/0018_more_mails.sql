-- Mails about refunds, shipments and chargebacks: each row says whether it was told, since none of them is made in the
-- order of its id.

alter table movement add column mailed boolean not null default false;
alter table delivery add column mailed boolean not null default false;
alter table chargeback add column mailed boolean not null default false;
comment on column movement.mailed is 'a refund was told to the customer, or needs no mail';

-- What happened before there were mails is not told.
update movement set mailed = true;
update delivery set mailed = true;
update chargeback set mailed = true;

-- Serve the claims of what is still to be told.
create index movement_to_tell on movement (merchant_id, id) where kind = 'refund' and state = 'done' and not mailed;
create index delivery_to_tell on delivery (merchant_id, id) where status = 'order_shipped' and not mailed;
create index chargeback_to_tell on chargeback (merchant_id, id) where not mailed;
