-- oldest code: 150
-- locks: ledger_posting, payment, payment_attempt, pingback, subscription
-- A renewal writes five rows in these tables, four of them twice, so that in a billing day each table is analyzed over and
-- over for a tenth more: all five for what 4,000 renewals cost, and each time every session plans its statements anew. What
-- they are planned by (how many rows a merchant has, what is rare) is the same then, so it is looked at once as many rows
-- were written as there are; a young table the workers see to. (Neither readers nor writers wait for this, nor it for them.)
alter table payment set (autovacuum_analyze_scale_factor = 1);
alter table payment_attempt set (autovacuum_analyze_scale_factor = 1);
alter table ledger_posting set (autovacuum_analyze_scale_factor = 1);
alter table pingback set (autovacuum_analyze_scale_factor = 1);
alter table subscription set (autovacuum_analyze_scale_factor = 1);
