-- oldest code: 150
-- A checkout is written once more when its customer is led back: room on its page spares the indexes a second entry each.
alter table checkout set (fillfactor = 85);
