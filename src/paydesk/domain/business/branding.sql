-- name: find(merchant_id)^
select accent, logo is not null as has_logo, changed_at from branding where merchant_id = :merchant_id;

-- name: find_logo(merchant_id)^
select logo as content, logo_type as media_type from branding where merchant_id = :merchant_id and logo is not null;

-- name: save(merchant_id, accent, logo, logo_type, keep_logo, now)!
insert into branding as b (merchant_id, accent, logo, logo_type, changed_at)
values (:merchant_id, :accent, :logo, :logo_type, :now)
    on conflict (merchant_id) do update
   set accent = excluded.accent,
       logo = case when :keep_logo then b.logo else excluded.logo end,
       logo_type = case when :keep_logo then b.logo_type else excluded.logo_type end,
       changed_at = excluded.changed_at;
