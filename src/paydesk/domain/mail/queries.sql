-- name: queue_mail(merchant_id, live, kind, recipient, language, facts, once, now)!
-- One mail per event: whoever queues it a second time changes nothing. An empty recipient is nobody, who gets none.
insert into mail (merchant_id, live, kind, recipient, language, facts, once, due_at, created_at)
select :merchant_id, :live, :kind, :recipient, :language, :facts, :once, :now, :now
 where :recipient::text <> ''
    on conflict (merchant_id, once) do nothing;
