"""Users, rules and limits in a file: what is refused, where, and that rules know their lines."""

from __future__ import annotations

import pytest

from tieline.conf.access_rules import WrittenRule
from tieline.conf.effective import effective
from tieline.conf.error import ConfError
from tieline.conf.load import loads

RULE = '[[rule]]\nallow = "all"\nfilter = "a"\n'


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('[auth]\npassword_file = ""', 2, "auth.password_file is empty"),
        ('[auth]\nanonymous = "yes"', 2, 'it takes "everywhere", "loopback" or "nowhere"'),
        ("[auth]\nfailures = 0", 2, "auth.failures = 0 is refused"),
        ('[groups]\na = ["b"]\nc = 3', 3, "groups.c = 3 is refused"),
        ('[groups]\na = [""]', 2, "neither a group nor a user has an empty name"),
        ('[[rule]]\nfilter = "a"', 1, "rule[1] says nothing certain: write either allow or deny"),
        (f'{RULE}deny = "all"', 1, "write either allow or deny"),
        ('[[rule]]\nfilter = "a"\nallow = []', 1, "rule[1] is about no action"),
        ('[[rule]]\nfilter = "a"\nallow = ["fly"]', 3, 'rule[1].allow[1] = "fly" is refused'),
        ('[[rule]]\nallow = "all"', 1, 'rule[1] lacks "filter"'),
        (f'{RULE}[[rule]]\ndeny = "all"\nfilter = "a/%u#"', 6, '"a/%u#" is no topic filter'),
        ('[[rule]]\nallow = "all"\nfilter = "$share/g/a"', 3, "would never match"),
        ('[[rule]]\nallow = "all"\nfilter = "$dev-%u/a"', 3, "a first level that begins with $"),
        (f'{RULE}groups = ["staff"]', 4, 'the group "staff"; known: none is declared'),
        (f"{RULE}users = []", 1, "rule[1] is about nobody"),
        (f"{RULE}groups = []", 1, "rule[1] is about nobody"),
        (f'{RULE}users = [""]', 4, "rule[1].users has an empty name"),
        ('[[limit]]\nuser = ""', 2, "limit[1].user is empty"),
        ('[[limit]]\nuser = "a"\n[[limit]]\nuser = "a"', 3, "limit[2] would never apply"),
        ('[[limit]]\nuser = "*"\n[[limit]]\nuser = "a"', 3, "limit[1] comes first"),
        ('[[limit]]\nuser = "a"\nmessages_per_s = 0', 3, "limit[1].messages_per_s = 0 is refused"),
        ('[[listener]]\nurl = "tcp://127.0.0.1"\nuser_from = "cn"', 3, "only with client_ca"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(ConfError) as refused:
        loads(text, "broker.toml")
    assert refused.value.line == line
    assert said in refused.value.text


def test_rules_know_where_they_are_written() -> None:
    settings = loads(f"# first\n{RULE}\n\n{RULE}", "broker.toml")
    assert all(isinstance(rule, WrittenRule) for rule in settings.rule)
    assert [(rule.file, rule.line) for rule in settings.rule if isinstance(rule, WrittenRule)] == [
        ("broker.toml", 2),
        ("broker.toml", 7),
    ]


def test_check_shows_rules_and_limits_in_words() -> None:
    text = (
        '[groups]\nstaff = ["ann"]\n[[rule]]\ndeny = ["write"]\nfilter = "a/#"\n'
        'users = ["-", "bob"]\ngroups = ["staff"]\n'
        f'{RULE}[[limit]]\nuser = "*"\nconnections = 3\n'
    )
    shown = effective(loads(text))
    assert "denies write: clients without a user name, bob, group staff" in shown
    assert "allows everything: everybody" in shown
    assert "each user, connections 3" in shown
