"""Steps of the schema do nothing to a big table that would have customers wait;
CONTRIBUTING.md says what instead.
"""

from __future__ import annotations

import re

import pytest

from paydesk.database.baseline import baseline_sql
from paydesk.database.migrating import Migration, known_migrations
from paydesk.database.piecemeal import statements_in

BIG = {
    *("audit_entry", "card", "card_try", "chargeback", "checkout", "customer", "delivery", "ledger_entry_before"),
    *("ledger_posting", "mail", "movement", "payment", "payment_attempt", "pingback", "pingback_attempt"),
    *("rejected_form", "subscription"),
}
"""Tables that grow with what is sold."""

_BODY = re.compile(r"\$(\w*)\$.*?\$\1\$", re.DOTALL)
_INDEX = re.compile(r"create (?:unique )?index (?!concurrently)(?:.*?)\bon (?:only )?(\w+)", re.DOTALL)
_NEW = re.compile(r"create table (\w+)")
_TABLE = re.compile(r"alter table (?:if exists |only )*(\w+)\s+(.*)", re.DOTALL)
_WRITTEN = re.compile(r"(?:update|delete from)\s+(?:only )?(\w+)")
_READS_OR_WRITES_ALL = {
    r"add (?:constraint \w+ )?(?:check|foreign key)(?!.*not valid)": "is asked of all rows: not valid, validated later",
    r"add (?:constraint \w+ )?(?:unique|primary key|exclude)(?!.*using index)": "builds an index: using index",
    r"add column .*\b(?:nextval|random|gen_random_uuid|clock_timestamp|generated)\b": "writes all rows: in batches",
    r"alter column \w+ (?:set data )?type": "writes all rows: a new column",
}


def harm(sql: str) -> list[str]:
    """What a step does to big tables while it holds their locks, and what to do instead."""
    step, found = Migration(0, "", sql), []
    statements = statements_in(_BODY.sub("''", sql))
    big = BIG.difference(_NEW.findall(sql))  # what the step makes itself is empty
    for statement in statements:
        if (index := _INDEX.match(statement)) and index[1] in big:
            found.append(f"{index[1]}: an index that is not built concurrently")
        if (written := _WRITTEN.match(statement)) and written[1] in big and not step.batches:
            found.append(f"{written[1]}: rows are written at once: in batches")
        if (table := _TABLE.match(statement)) and table[1] in big:
            bad = (words for bad, words in _READS_OR_WRITES_ALL.items() if re.search(bad, table[2], re.DOTALL))
            found.extend(f"{table[1]}: {words}" for words in bad)
            if "validate constraint" in table[2] and len(statements) > 1:
                found.append(f"{table[1]}: a constraint is validated in a step of its own")
    return found


def test_no_step_has_customers_wait_while_it_reads_or_writes_all_of_a_table() -> None:
    steps = [step for step in known_migrations() if not step.is_baseline]
    assert steps
    assert {step.name: harm(step.sql) for step in steps if harm(step.sql)} == {}


def test_only_a_new_database_gets_what_would() -> None:
    assert harm(baseline_sql())


@pytest.mark.parametrize(
    ("sql", "table"),
    [
        ("create index payment_by_note on payment (note)", "payment"),
        ("create unique index if not exists one\n    on pingback_attempt (id)", "pingback_attempt"),
        ("-- Fills.\nupdate payment set note = ''", "payment"),
        ("delete from pingback where id = 1", "pingback"),
        ("alter table payment add constraint short check (length(note) < 9)", "payment"),
        ("alter table payment add foreign key (merchant_id) references merchant (id)", "payment"),
        ("alter table mail add constraint once unique (id)", "mail"),
        ("alter table payment add column seed uuid not null default gen_random_uuid()", "payment"),
        ("alter table payment alter column note type varchar(9)", "payment"),
        ("alter table card validate constraint short;\nalter table card drop column note", "card"),
    ],
)
def test_what_would_have_customers_wait_is_seen(sql: str, table: str) -> None:
    assert [found.partition(":")[0] for found in harm(sql)] == [table]


@pytest.mark.parametrize(
    "sql",
    [
        "-- outside a transaction\ncreate index concurrently if not exists by_note on payment (note)",
        "-- in batches of 2000: payment (merchant_id, id)\nupdate payment p set note = '' from batch b",
        "alter table payment add column note text not null default ''",
        "alter table payment add constraint short check (length(note) < 9) not valid",
        "alter table payment validate constraint short",
        "create table pot (id integer);\ncreate index pot_by_id on pot (id);\nupdate pot set id = 1",
        "create function f() returns integer language plpgsql as $$ begin\nupdate payment set note = '';\nend $$",
    ],
)
def test_what_has_nobody_wait_is_left_alone(sql: str) -> None:
    assert harm(sql) == []
