-- name: every(most)
select id, merchant_id, live, kind, recipient, language, state, attempts, created_at, due_at, sent_at, last_error
  from mail
 order by id desc
 limit :most;

-- name: sent(most)
-- The usual state: the newest of all are mostly of it.
select id, merchant_id, live, kind, recipient, language, state, attempts, created_at, due_at, sent_at, last_error
  from mail
 where state = 'sent'
 order by id desc
 limit :most;

-- name: failed(most)
select id, merchant_id, live, kind, recipient, language, state, attempts, created_at, due_at, sent_at, last_error
  from mail
 where state = 'failed'
 order by id desc
 limit :most;

-- name: due(most)
select id, merchant_id, live, kind, recipient, language, state, attempts, created_at, due_at, sent_at, last_error
  from mail
 where state = 'due'
 order by due_at
 limit :most;

-- name: lock(id)^
select merchant_id, kind, state from mail where id = :id for update;

-- name: queue_again(merchant_id, id, now)!
update mail
   set state = 'due', attempts = 0, due_at = :now, created_at = :now, leased_until = null, last_error = ''
 where merchant_id = :merchant_id and id = :id and state = 'failed';
