-- oldest code: 150
-- locks: forgotten_attempt, merchant
-- A merchant that has moved to another cell is forgotten here, but for the keys that acquirers were asked by from here.
alter table forgotten_attempt drop constraint forgotten_attempt_merchant_id_fkey;
