-- name: hold_answer(merchant_id, live, id)^
-- While a file is added or removed nobody begins to hand the answer over. Only what no bank can have may be changed.
select id
  from chargeback
 where merchant_id = :merchant_id and live = :live and id = :id and state in ('inquiry', 'open')
   and (respond_by is null or respond_by > now())
   and (evidence_state = 'refused' or evidence_state = '' and evidence_at is null)
   for update;

-- name: add_file(merchant_id, live, chargeback_id, kind, name, media_type, size, pages, content, upload_key, now)$
-- One of each kind: nothing comes back if there is one.
insert into evidence_file (merchant_id, live, chargeback_id, kind, name, media_type, size, pages, content, upload_key,
                           created_at)
values (:merchant_id, :live, :chargeback_id, :kind, :name, :media_type, :size, :pages, :content, :upload_key, :now)
    on conflict (merchant_id, live, chargeback_id, kind) do nothing
returning id;

-- name: remove_file(merchant_id, live, chargeback_id, id)$
delete from evidence_file
 where merchant_id = :merchant_id and live = :live and chargeback_id = :chargeback_id and id = :id
returning id;

-- name: list_files(merchant_id, live, chargeback_id)
select id, kind, name, media_type, size, pages, acquirer_name <> '' as is_uploaded, content is null as is_erased,
       created_at
  from evidence_file
 where merchant_id = :merchant_id and live = :live and chargeback_id = :chargeback_id
 order by id;

-- name: find_content(merchant_id, live, chargeback_id, id)^
select kind, name, media_type, content
  from evidence_file
 where merchant_id = :merchant_id and live = :live and chargeback_id = :chargeback_id and id = :id
   and content is not null;

-- name: files_to_hand_over(merchant_id, live, chargeback_id)
-- What the acquirer calls a file is enough, once it has it.
select id, kind, media_type, case when acquirer_name = '' then content end as content, upload_key, acquirer_name
  from evidence_file
 where merchant_id = :merchant_id and live = :live and chargeback_id = :chargeback_id and content is not null
 order by id;

-- name: file_uploaded(merchant_id, live, id, acquirer_name)!
update evidence_file set acquirer_name = :acquirer_name where merchant_id = :merchant_id and live = :live and id = :id;

-- name: erase_past_files(kept_for, now, most)!
-- Once a dispute has been over for so long that no bank takes it up again, by its shop's time, nobody needs what is in its
-- files.
update evidence_file f
   set content = null, name = ''
  from (select h.merchant_id, h.id
          from evidence_file h
          join chargeback c on c.merchant_id = h.merchant_id and c.id = h.chargeback_id
          join merchant m on m.id = c.merchant_id
         where h.content is not null
           and c.closed_at < :now::timestamptz + side_clock(c.live, m.test_clock) - :kept_for::interval
         limit :most) past
 where f.merchant_id = past.merchant_id and f.id = past.id;
