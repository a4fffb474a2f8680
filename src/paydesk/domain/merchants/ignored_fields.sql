-- name: note(merchant_id, live, sent_with, names, now, most)!
-- One row per name; a name that comes again is only seen again. Of more than :most names the others are left out.
insert into ignored_field (merchant_id, live, sent_with, name, first_at, last_at)
select :merchant_id, :live, :sent_with, sent.name, :now, :now
  from unnest(:names::text[]) as sent (name)
 where exists (select from ignored_field i
                where i.merchant_id = :merchant_id and i.live = :live and i.sent_with = :sent_with
                  and i.name = sent.name)
    or (select count(*) from ignored_field i
         where i.merchant_id = :merchant_id and i.live = :live and i.sent_with = :sent_with)
       < :most
 order by sent.name
    on conflict (merchant_id, live, sent_with, name) do update set last_at = excluded.last_at;

-- name: of_side(merchant_id, live)
select sent_with, name, first_at, last_at
  from ignored_field
 where merchant_id = :merchant_id and live = :live
 order by last_at desc, sent_with, name;
