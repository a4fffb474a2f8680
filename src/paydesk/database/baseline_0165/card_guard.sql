-- The guard against card testing counts tries before a bank is asked.

-- Losing the counts in a crash costs nothing, so they write no log; what a card is counted by is a fingerprint under a
-- vault key, which stands nowhere else. Some things are counted over all merchants: rows of merchant 0, which is
-- nobody.
create unlogged table card_try (
    merchant_id bigint not null,
    live boolean not null,
    subject text not null,
    tries integer not null,
    until timestamptz not null,
    primary key (merchant_id, live, subject)
) with (fillfactor = 50);
comment on table card_try is 'tries with cards, by who or what tried; forgotten when their time is over';
create index card_try_over on card_try (until);

-- What the account shows, and what a merchant's share of declines is reckoned from.
create unlogged table card_guard_minute (
    merchant_id bigint not null,
    live boolean not null,
    minute timestamptz not null,
    tries integer not null,
    declines integer not null,
    refused integer not null,
    primary key (merchant_id, live, minute)
) with (fillfactor = 50);
create index card_guard_minute_over on card_guard_minute (minute);

create table card_guard (
    merchant_id bigint not null references merchant (id),
    live boolean not null,
    limits jsonb not null default '{}',
    always_authenticate boolean not null default false,
    authenticate_since timestamptz,
    authenticate_until timestamptz,
    paused_until timestamptz,
    primary key (merchant_id, live)
);
comment on column card_guard.limits is
    'the merchant''s own limits by kind; the lower of these and the operator''s counts';

-- Counts one try under all its subjects, or under none if one of them is at its limit: what is refused is not counted,
-- so that nobody uses up what others share with them. Each subject's row is locked, looked at and counted in one step,
-- in one order, and the newest counts are seen. What was counted beside a subject that is at its limit is taken back
-- while its rows are still held: nobody else ever sees it. What is counted elsewhere (attempts of a checkout, declines
-- that are on record) is judged here, so that a try which no bank is asked about is never counted as one. A count that
-- ends far later than a new one would was made by a test clock that ran ahead, and starts anew.
create function count_card_try(
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

-- The same in the form that older processes call: it knows nothing that is counted over all merchants or elsewhere.
create function count_card_try(
    of_merchant bigint, of_live boolean, kinds text[], subjects text[], mosts bigint[], factors bigint[],
    spans interval[], shop_now timestamptz, real_now timestamptz,
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
    refused := '{}';
    if not paused then
        insert into card_try (merchant_id, live, subject, tries, until)
        select of_merchant, of_live, a.subject, 0, shop_now + a.span
          from unnest(subjects, spans) as a (subject, span)
         order by a.subject
            on conflict do nothing;
        with held as materialized (
            select t.subject, t.tries, t.until
              from card_try t
             where t.merchant_id = of_merchant and t.live = of_live and t.subject = any(subjects)
             order by t.subject
               for update
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
              from unnest(subjects, spans) as a (subject, span)
             where t.merchant_id = of_merchant and t.live = of_live and t.subject = a.subject;
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
