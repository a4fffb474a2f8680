-- Counts one try under all its subjects, or under none if one of them is at its limit, as before, but each subject's row
-- is locked, looked at and counted in one step instead of three, in one order, and the newest counts are seen. What was
-- counted beside a subject that is at its limit is taken back while its rows are still held: nobody else ever sees it.
create or replace function count_card_try(
    of_merchant bigint, of_live boolean, kinds text[], subjects text[], anywhere boolean[], mosts bigint[],
    factors bigint[], spans interval[], elsewhere_kinds text[], elsewhere bigint[], elsewhere_mosts bigint[],
    shop_now timestamptz, real_now timestamptz,
    out refused text[], out authenticate boolean, out paused boolean
) language plpgsql as $$
#variable_conflict use_column
declare
    own jsonb;
    counted text[];
    lost integer;
begin
    select g.limits, g.always_authenticate or coalesce(g.authenticate_until > real_now, false),
           coalesce(g.paused_until > real_now, false)
      into own, authenticate, paused
      from card_guard g
     where g.merchant_id = of_merchant and g.live = of_live;
    authenticate := coalesce(authenticate, false);
    paused := coalesce(paused, false);
    refused := array(
        select e.kind
          from unnest(elsewhere_kinds, elsewhere, elsewhere_mosts) as e (kind, tries, most)
         where e.tries >= least(e.most, (own ->> e.kind)::bigint));
    mosts := array(
        select least(a.most, (own ->> a.kind)::bigint) * a.factor
          from unnest(kinds, mosts, factors) with ordinality as a (kind, most, factor, place)
         order by a.place);
    if not paused and refused = '{}' then
        with tried as (
            insert into card_try as t (merchant_id, live, subject, tries, until)
            select case when a.anywhere then 0 else of_merchant end, of_live, a.subject, 1, shop_now + a.span
              from unnest(subjects, anywhere, mosts, spans) as a (subject, anywhere, most, span)
             where a.most > 0
             order by 1, a.subject
                on conflict (merchant_id, live, subject) do update
               set tries = case when t.until > shop_now and t.until <= excluded.until + interval '10 minutes'
                                then t.tries
                                else 0
                           end + 1,
                   until = case when t.until > shop_now and t.until <= excluded.until + interval '10 minutes'
                                then t.until
                                else excluded.until
                           end
             where t.until <= shop_now or t.until > excluded.until + interval '10 minutes'
                or t.tries < mosts[array_position(subjects, excluded.subject)]
         returning t.subject
        )
        select coalesce(array_agg(subject), '{}') into counted from tried;
        if cardinality(counted) < cardinality(subjects) then
            refused := array(
                select distinct a.kind from unnest(kinds, subjects) as a (kind, subject) where a.subject <> all(counted));
            update card_try t
               set tries = t.tries - 1
              from unnest(subjects, anywhere) as a (subject, anywhere)
             where t.merchant_id = case when a.anywhere then 0 else of_merchant end and t.live = of_live
               and t.subject = a.subject and a.subject = any(counted);
        end if;
    end if;
    lost := (paused or count_card_try.refused <> '{}')::integer;
    insert into card_guard_minute as m (merchant_id, live, minute, tries, declines, refused)
    values (of_merchant, of_live, date_trunc('minute', real_now), 1 - lost, 0, lost)
        on conflict (merchant_id, live, minute) do update
       set tries = m.tries + excluded.tries, refused = m.refused + excluded.refused;
end
$$;
