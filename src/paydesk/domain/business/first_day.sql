-- name: find(merchant_id, required, reported)^
-- All that the list of a first day says, read from what is true. `said` counts what of a profile is filled in; `reported`
-- are the states of payments that a customer has made, whatever became of them.
select m.first_day_over_at is not null as put_away,
       exists (select from checkout c where c.merchant_id = m.id and not c.live) as tried,
       exists (select from branding b where b.merchant_id = m.id and (b.accent <> '' or b.logo is not null)) as branded,
       unseen_first_key(m.id) is null as has_keys,
       exists (select from payment t where t.merchant_id = m.id and not t.live
                  and t.state = any(:reported)) as paid,
       exists (select from payment r where r.merchant_id = m.id and r.live
                  and r.state = any(:reported)) as paid_live,
       exists (select from pingback p where p.merchant_id = m.id and p.state = 'acknowledged') as answered,
       coalesce(b.status, 'draft') as profile,
       (select count(*) from unnest(:required::text[]) name where coalesce(to_jsonb(b) ->> name, '') <> '')::int as said,
       m.went_live_at is not null as may_go_live, m.test_mode
  from merchant m
  left join business_profile b on b.merchant_id = m.id
 where m.id = :merchant_id;

-- name: put_away(merchant_id, now)$
-- Once: who comes second gets no row.
update merchant set first_day_over_at = :now where id = :merchant_id and first_day_over_at is null returning id;
