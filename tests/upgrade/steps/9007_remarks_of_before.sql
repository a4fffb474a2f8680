-- oldest code: 150
-- in batches of 2000: payment (merchant_id, id)
update payment p
   set remark = p.note
  from batch b
 where p.merchant_id = b.merchant_id and p.id = b.id and p.remark is null;
