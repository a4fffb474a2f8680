-- oldest code: 150
-- A merchant's time zone by whose name the database knows none keeps what is paid of subscriptions from being written
-- down; and four names are a fixed offset to it, being abbreviations, too: those become the zones that they are links to.
-- (The names are read once: that takes long.)
update merchant m
   set time_zone = case m.time_zone
                   when 'CET' then 'Europe/Brussels'
                   when 'MET' then 'Europe/Brussels'
                   when 'EET' then 'Europe/Athens'
                   when 'WET' then 'Europe/Lisbon'
                   else 'UTC' end
 where (m.time_zone in ('CET', 'MET', 'EET', 'WET')
        or m.time_zone <> all (array(select name from pg_timezone_names)))
   and not exists (select from merchant_fence f where f.merchant_id = m.id);
