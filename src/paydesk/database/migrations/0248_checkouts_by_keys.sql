-- oldest code: 150
-- locks: checkout, merchant_key
-- The key that a form was signed with has just been read, and none is ever deleted: no checkout locks its row.
alter table checkout drop constraint checkout_merchant_id_key_id_fkey;
