-- name: waiting(merchant_id, live, real_now, most)^
-- What waits for somebody of the team: orders to be sent, disputes that may still be answered, and renewals that fail;
-- none is counted beyond `most`.
select o.parcels, o.ship_by, d.disputes, d.respond_by, r.renewals
  from (select count(*) as parcels, min(ship_by) as ship_by
          from (select ship_by
                  from payment
                 where merchant_id = :merchant_id and live = :live and state = 'authorized' and ship_by is not null
                 order by ship_by, id
                 limit :most) one) o
 cross join (select count(*) as disputes, min(respond_by) as respond_by
               from (select respond_by
                       from chargeback
                      where merchant_id = :merchant_id and live = :live and state in ('inquiry', 'open')
                        and (respond_by is null or respond_by > :real_now)
                        and evidence_state <> 'sent' and not (evidence_state = '' and evidence_at is not null)
                      limit :most) one) d
 cross join (select count(*) as renewals
               from (select
                       from subscription
                      where merchant_id = :merchant_id and live = :live and failures > 0
                        and state in ('Trial', 'Active')
                      limit :most) one) r;
