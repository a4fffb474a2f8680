-- name: find(merchant_id)^
select accent, logo is not null as has_logo, dark_logo is not null as has_dark_logo, changed_at
  from branding
 where merchant_id = :merchant_id;

-- name: find_logo(merchant_id, dark)^
-- The one for dark pages, if it is asked for and there is one.
select case when :dark and dark_logo is not null then dark_logo else logo end as content,
       case when :dark and dark_logo is not null then dark_logo_type else logo_type end as media_type
  from branding
 where merchant_id = :merchant_id and (logo is not null or (:dark and dark_logo is not null));

-- name: save(merchant_id, accent, logo, logo_type, keep_logo, dark_logo, dark_logo_type, keep_dark_logo, now)!
insert into branding as b (merchant_id, accent, logo, logo_type, dark_logo, dark_logo_type, changed_at)
values (:merchant_id, :accent, :logo, :logo_type, :dark_logo, :dark_logo_type, :now)
    on conflict (merchant_id) do update
   set accent = excluded.accent,
       logo = case when :keep_logo then b.logo else excluded.logo end,
       logo_type = case when :keep_logo then b.logo_type else excluded.logo_type end,
       dark_logo = case when :keep_dark_logo then b.dark_logo else excluded.dark_logo end,
       dark_logo_type = case when :keep_dark_logo then b.dark_logo_type else excluded.dark_logo_type end,
       changed_at = excluded.changed_at;
