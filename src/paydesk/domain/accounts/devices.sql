-- name: is_known(person_id, fingerprint)$
select exists (select from person_device where person_id = :person_id and fingerprint = :fingerprint);

-- name: see_device(person_id, fingerprint, most, now)$
-- True: new, and the person has used others before. The oldest beyond the most are forgotten.
with known as materialized (
    select fingerprint, last_seen_at from person_device where person_id = :person_id
), seen as (
    insert into person_device (person_id, fingerprint, last_seen_at)
    values (:person_id, :fingerprint, :now)
        on conflict (person_id, fingerprint) do update set last_seen_at = :now
), forgotten as (
    delete from person_device d
     using (select fingerprint from known where fingerprint <> :fingerprint
             order by last_seen_at desc, fingerprint offset :most::integer - 1) older
     where d.person_id = :person_id and d.fingerprint = older.fingerprint
)
select count(*) > 0 and not coalesce(bool_or(fingerprint = :fingerprint), false) from known;

-- name: forget_devices(before)!
delete from person_device where last_seen_at < :before;
