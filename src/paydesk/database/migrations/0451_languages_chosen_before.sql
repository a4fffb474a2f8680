-- oldest code: 150
-- in batches of 2000: person (id)
-- Whoever's mails are not in the language that everybody began with has chosen theirs.
update person p set language_chosen = true from batch b where p.id = b.id and p.language <> 'en' and not p.language_chosen;
