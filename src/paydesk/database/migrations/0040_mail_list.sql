-- Serve the operator's list of mails, newest first: of all, and of the few that were given up.
create unique index mail_by_id on mail (id);
create index mail_given_up on mail (id) where state = 'failed';
