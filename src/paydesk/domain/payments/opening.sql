-- name: is_what_was_asked(merchant_id, live, id, parameters, line_items)$
-- Whether a checkout that a key leads to was asked for by the same request; which pictures could be had is left aside.
select c.parameters = :parameters::jsonb
       and coalesce((select jsonb_agg(i.item - 'picture' order by i.place)
                       from jsonb_array_elements(c.line_items -> 'items') with ordinality as i (item, place)), '[]')
         = coalesce((select jsonb_agg(i.item - 'picture' order by i.place)
                       from jsonb_array_elements(:line_items::jsonb -> 'items') with ordinality as i (item, place)), '[]')
  from checkout c
 where c.merchant_id = :merchant_id and c.live = :live and c.id = :id;
