-- Whoever asks for a refund without a key of their own, and never hears of it, may ask once more: it is taken for the same.
alter table movement add column unanswered_since timestamptz;
comment on column movement.unanswered_since is
    'database time: begun without a key of the caller''s, who has not been told of it yet as far as we know';
