-- oldest code: 150
-- A subscription whose charge failed at every try may be paused, too, until its customer pays.
alter table merchant drop constraint merchant_dunning_end_check,
    add constraint merchant_dunning_end_check check (dunning_end in ('cancel', 'keep_open', 'pause'));
comment on column merchant.dunning_end is
    'what becomes of a subscription after the last try of a charge that failed: cancel, keep_open, or pause';
