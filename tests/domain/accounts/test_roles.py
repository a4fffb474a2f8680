from __future__ import annotations

import pytest

from paydesk.domain.accounts.roles import ALLOWED, Permission, Role, allows


def test_every_role_is_in_the_table_and_sees_something() -> None:
    assert set(ALLOWED) == set(Role)
    assert all(allows(role, Permission.view) for role in Role)


def test_an_owner_may_do_everything_and_who_has_no_role_nothing() -> None:
    assert all(allows(Role.owner, permission) for permission in Permission)
    assert not any(allows(None, permission) for permission in Permission)


@pytest.mark.parametrize(
    "permission",
    [Permission.manage_team, Permission.go_live, Permission.manage_settings],
)
def test_what_only_owners_may_do(permission: Permission) -> None:
    assert [role for role in Role if allows(role, permission)] == [Role.owner]


def test_a_developer_has_the_keys_but_moves_no_money() -> None:
    assert allows(Role.developer, Permission.manage_keys)
    assert allows(Role.developer, Permission.toggle_test_mode)
    assert not allows(Role.developer, Permission.refund)


def test_support_refunds_and_cancels_but_has_no_keys() -> None:
    assert allows(Role.support, Permission.refund)
    assert allows(Role.support, Permission.cancel_subscription)
    assert not allows(Role.support, Permission.manage_keys)
    assert not allows(Role.support, Permission.toggle_test_mode)


def test_a_viewer_changes_nothing() -> None:
    assert ALLOWED[Role.viewer] == {Permission.view, Permission.payouts_view}


def test_the_table_cannot_be_changed_while_running() -> None:
    with pytest.raises(TypeError):
        ALLOWED[Role.viewer] = frozenset(Permission)  # type: ignore[index]
