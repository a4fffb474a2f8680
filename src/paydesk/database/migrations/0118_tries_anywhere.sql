-- The guard against card testing counts some things over all merchants, too: rows of merchant 0, which is nobody. And
-- what is counted elsewhere (attempts of a checkout, declines that are on record) is judged here, so that a try which no
-- bank is asked about is never counted as one. The function of before stays for processes that still call it.
create function count_card_try(
    of_merchant bigint, of_live boolean, kinds text[], subjects text[], anywhere boolean[], mosts bigint[],
    factors bigint[], spans interval[], elsewhere_kinds text[], elsewhere bigint[], elsewhere_mosts bigint[],
    shop_now timestamptz, real_now timestamptz,
    out refused text[], out authenticate boolean, out paused boolean
) language plpgsql as $$
#variable_conflict use_column
declare
    own jsonb;
begin
    select g.limits, g.always_authenticate or coalesce(g.authenticate_until > real_now, false),
           coalesce(g.paused_until > real_now, false)
      into own, authenticate, paused
      from card_guard g
     where g.merchant_id = of_merchant and g.live = of_live;
    authenticate := coalesce(authenticate, false);
    paused := coalesce(paused, false);
    select coalesce(array_agg(e.kind), '{}')
      into refused
      from unnest(elsewhere_kinds, elsewhere, elsewhere_mosts) as e (kind, tries, most)
     where e.tries >= least(e.most, (own ->> e.kind)::bigint);
    if not paused and refused = '{}' then
        insert into card_try (merchant_id, live, subject, tries, until)
        select case when a.anywhere then 0 else of_merchant end, of_live, a.subject, 0, shop_now + a.span
          from unnest(subjects, anywhere, spans) as a (subject, anywhere, span)
         order by 1, a.subject
            on conflict do nothing;
        with held as materialized (
            select t.subject, t.tries, t.until
              from card_try t
              join unnest(subjects, anywhere) as a (subject, anywhere)
                on t.merchant_id = case when a.anywhere then 0 else of_merchant end and t.subject = a.subject
             where t.live = of_live
             order by t.merchant_id, t.subject
               for update of t
        )
        select coalesce(array_agg(distinct a.kind), '{}')
          into refused
          from unnest(kinds, subjects, mosts, factors, spans) as a (kind, subject, most, factor, span)
          join held on held.subject = a.subject
         where held.tries >= least(a.most, (own ->> a.kind)::bigint) * a.factor
           and held.until > shop_now and held.until <= shop_now + a.span + interval '10 minutes';
        if refused = '{}' then
            update card_try t
               set tries = case when t.until > shop_now and t.until <= shop_now + a.span + interval '10 minutes'
                                then t.tries
                                else 0
                           end + 1,
                   until = case when t.until > shop_now and t.until <= shop_now + a.span + interval '10 minutes'
                                then t.until
                                else shop_now + a.span
                           end
              from unnest(subjects, anywhere, spans) as a (subject, anywhere, span)
             where t.merchant_id = case when a.anywhere then 0 else of_merchant end and t.live = of_live
               and t.subject = a.subject;
        end if;
    end if;
    insert into card_guard_minute as m (merchant_id, live, minute, tries, declines, refused)
    values (of_merchant, of_live, date_trunc('minute', real_now),
            (not paused and count_card_try.refused = '{}')::integer, 0,
            (paused or count_card_try.refused <> '{}')::integer)
        on conflict (merchant_id, live, minute) do update
       set tries = m.tries + excluded.tries, refused = m.refused + excluded.refused;
end
$$;
