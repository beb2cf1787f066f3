"""Files of devices: what is read from them, and which line is named when it cannot be."""

import json

import pytest

from aggregator.answers.fleet.lists import devices_answer, devices_text
from aggregator.commands.member_files import read_members, write_members
from aggregator.counting.members import Listed, Standing, Wish, decided, named_wishes
from aggregator.errors import MemberError
from tests.tables import each

A = Listed("a", "", "online", 100, 50, None, None)
B = Listed("b", "north", "unknown", 100, None, 60, 70)


@pytest.mark.parametrize("form", ["csv", "json"])
def test_what_is_written_is_read_back(form: str) -> None:
    wishes = read_members(write_members([A, B], form), form, "f")
    assert [(one.device, one.group, one.revoked, one.enrols) for one in wishes] == [
        ("a", "", False, True),
        ("b", "north", True, True),
    ]


def test_columns_that_are_not_given_are_left_as_they_are() -> None:
    (wish,) = read_members("device\nhome-1\n", "csv", "f")
    assert wish == Wish("home-1", "f line 2", enrols=True)
    (wish,) = read_members('{"devices": [{"device": "home-1", "revoked": true}]}', "json", "f")
    assert (wish.group, wish.revoked, wish.held) == (None, True, None)
    crlf = "\ufeffdevice,revoked,group\r\nhome-1,yes,\r\n"  # as a spreadsheet writes it
    (wish,) = read_members(crlf, "csv", "f")
    assert (wish.group, wish.revoked) == ("", True)


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        ("", "f line 1", "columns ''"),
        ("name\na\n", "f line 1", "expected device"),
        ("device,device\na,a\n", "f line 1", "expected device"),
        ("device,colour\na,red\n", "f line 1", "'device,colour'"),
        ("device\n", "f", "no device is in it"),
        ("device,group\na\n", "f line 2", "1 fields; 2"),
        ("device\nA b\n", "f line 2", "'A b' is no device's name"),
        ("device\na\n=cmd()\n", "f line 3", "'=cmd()' is no device's name"),
        ("device\na/b\n", "f line 2", "1 to 63 of a-z"),
        ("device,group\na,<b>\n", "f line 2", "'<b>' is no group's name"),
        ("device,revoked\na,maybe\n", "f line 2", "yes or no"),
        ("device\na\nb\na\n", "f line 4", "stands there before"),
        ('device\n"a\n', "f line 2", "no CSV"),
        ("device\n" + "x" * 70 + "\n", "f line 2", "1 to 63"),
    ],
)
def test_a_line_that_cannot_be_is_named_REP_14(text: str, where: str, said: str) -> None:
    with pytest.raises(MemberError) as caught:
        read_members(text, "csv", "f")
    assert caught.value.where == where
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("where", "given"),
    each(
        ("f", "[]", "{", "[" * 100_000, {"devices": {}}, {"devices": []}),
        ("f devices[0]", {"devices": ["a"]}, {"devices": [{"device": 5}]}),
        ("f devices[0]", {"devices": [{"device": "a", "group": 5}]}),
        ("f devices[0]", {"devices": [{"device": "a", "group": 0}]}),
        ("f devices[0]", {"devices": [{"device": "a", "revoked": "x"}]}),
        ("f devices[0]", {"devices": [{"device": "a", "revoked": 1}]}),
        ("f devices[1]", {"devices": [{"device": "a"}, {"group": "x"}]}),
    ),
)
def test_an_object_that_cannot_be_is_named_REP_14(given: object, where: str) -> None:
    text = given if isinstance(given, str) else json.dumps(given)
    with pytest.raises(MemberError) as caught:
        read_members(text, "json", "f")
    assert caught.value.where == where


def test_names_in_a_command_are_checked() -> None:
    assert named_wishes(["a"], held=True) == [Wish("a", "device a", held=True)]
    with pytest.raises(MemberError, match="no device's name"):
        named_wishes(["a", "a b"])
    with pytest.raises(MemberError, match="no group's name"):
        named_wishes(["a"], group="A")
    assert named_wishes(["a"], group="")[0].group == ""


def test_who_is_not_enrolled_is_only_enrolled_by_wishes_that_enrol_and_is_of_no_group() -> None:
    with pytest.raises(MemberError, match="is not enrolled"):
        decided(named_wishes(["a"], held=True), {}, {"": 0}, 1)
    found = decided(named_wishes(["a"], enrols=True, group=""), {}, {"": 0}, 1)
    assert (found.enrolled, found.changes, Standing().group) == (["a"], {}, 0)


def test_devices_are_shown_with_what_was_decided() -> None:
    view = devices_answer("demo", [A, B], total=2, now_s=1000, old_s=0, least=1)
    assert view.devices[1].held_s == 70
    lines = devices_text(view).splitlines()
    assert lines[1].split()[:3] == ["a", "-", "online"]
    assert lines[2].split()[:5] == ["b", "north", "unknown", "-", "-"]  # it never sent a status
    assert lines[2].split()[-3:] == ["1970-01-01", "00:01", "-"]
