-- oldest code: 150
comment on column subscription.charge_digits is
    'the decimals that a charge of it may have, as acquirers take them; known where there is a balance';
