-- oldest code: 150
alter table payment_link validate constraint payment_link_sells;
