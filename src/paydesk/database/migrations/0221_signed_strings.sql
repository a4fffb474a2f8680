-- oldest code: 150
-- What was signed of a form whose hash is wrong, and what is suspected, for the merchant's programmer.
alter table rejected_form add column hashed text;
alter table rejected_form add column suspect text;
comment on column rejected_form.hashed is
    'the string that was hashed, without the private key; only where all fields are kept as they were posted';
comment on column rejected_form.suspect is 'what is most likely wrong with the hash, in English';
