-- name: queue_mail(merchant_id, live, kind, recipient, language, facts, once, now)!
-- One mail per event: whoever queues it a second time changes nothing.
insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
values (:merchant_id, :live, :kind, :recipient, :language, :facts, :once, :now, :now)
    on conflict (merchant_id, once) do nothing;
