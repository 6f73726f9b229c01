"""Policies by name, with settings."""

from __future__ import annotations

import pytest

from miriam.coordinator.policies import get, names
from miriam.errors import UnknownNameError, UsageError


def test_every_policy_has_its_name() -> None:
    assert [get(name).name for name in names()] == list(names())


def test_a_setting_is_part_of_the_name() -> None:
    policy = get("vacate:share=0.5")
    assert (policy.name, policy.share) == ("vacate:share=0.5", 0.5)  # type: ignore[attr-defined]
    assert get("vacate").share == 0.75  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("vacat", UnknownNameError, "policy: unknown name, got 'vacat'; did you mean 'vacate'?"),
        ("vacate:shar=1", UnknownNameError, "setting of policy vacate: unknown name, got 'shar'"),
        ("gate:share=1", UnknownNameError, "setting of policy gate: unknown name, got 'share'"),
        ("vacate:share=half", UsageError, "policy vacate share: a number, got 'half'"),
        ("vacate:share", UsageError, "policy vacate share: a number, got ''"),
        ("miriam:budget=-1", UsageError, "policy miriam budget: a finite share, not negative"),
    ],
)
def test_what_is_no_policy(name: str, error: type[UsageError], text: str) -> None:
    with pytest.raises(error) as found:
        get(name)
    assert str(found.value).startswith(text)


@pytest.mark.parametrize("policy", ["gate", "miriam-measured"])
def test_a_yield_share_is_one(policy: str) -> None:
    assert get(f"{policy}:yield_share=1").yield_share == 1  # type: ignore[attr-defined]
    for share in ("1.5", "-0.1", "nan"):
        with pytest.raises(UsageError) as found:
            get(f"{policy}:yield_share={share}")
        assert str(found.value) == f"policy {policy} yield_share: a share, 0 to 1, got {share}"
