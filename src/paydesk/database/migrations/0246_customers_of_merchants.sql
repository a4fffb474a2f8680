-- oldest code: 150
-- locks: customer, merchant
-- A payment's customer names its merchant by no foreign key: no merchant is ever deleted, and each payment locked its
-- merchant's row for it, all of them the same one. `paydesk check` names customers of no merchant.
alter table customer drop constraint customer_merchant_id_fkey;
