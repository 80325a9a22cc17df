"""The evaluator against the real sh: what it claims to know is what sh leaves in the variable."""

import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from railwright.resolve.assignments import UNKNOWN, Environment, evaluate, words_of

NAMES = ("GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT", "OTHER")


def evaluated(*files: str) -> Environment:
    environment = Environment(empty=("GRUB_CMDLINE_LINUX",))
    for number, content in enumerate(files):
        evaluate(content, f"/f{number}", environment)
    return environment


def from_sh(content: str) -> dict[str, str] | None:
    """What sh leaves in the variables; None where it refuses the file."""
    ends = 'printf "\\0"\n' + "".join(f'printf "%s\\0" "${name}"\n' for name in NAMES)
    script = f"unset {' '.join(NAMES)}\n{content}\n{ends}"
    done = subprocess.run(["sh"], input=script.encode(), capture_output=True, check=False)
    parts = done.stdout.split(b"\0")[1:-1]
    if done.returncode or len(parts) != len(NAMES):
        return None
    return dict(zip(NAMES, (part.decode("utf-8", "replace") for part in parts), strict=True))


PIECES = st.sampled_from(
    [
        "quiet", "iommu=pt", " ", "  ", "\t", "\\\n", "\\", "'", '"', "#", "$", "${", "}", "~", "*",
        "$GRUB_CMDLINE_LINUX", "${GRUB_CMDLINE_LINUX_DEFAULT}", "\\$x", "\\\"", "$(echo a)",
        "`echo b`", "=", "(", ")",
        "${OTHER:-none}", "${OTHER:+some }", "${GRUB_CMDLINE_LINUX:+$GRUB_CMDLINE_LINUX }",
        "${OTHER-x}", "$1", "$((1+1))", "é",
    ]
)  # fmt: skip
VALUES = st.lists(PIECES, max_size=6).map("".join)
SAFE = st.lists(
    st.sampled_from(
        ["quiet", " ", "  ", "iommu=pt", "\\$x", '\\"', "\\\\", "\\a", " \\\n", "'", "#", "~", "*",
         "$ ", "é",
         "$GRUB_CMDLINE_LINUX", "${GRUB_CMDLINE_LINUX_DEFAULT}", "${OTHER:-none}", "${OTHER:+a }",
         "${GRUB_CMDLINE_LINUX:+$GRUB_CMDLINE_LINUX }"]
    ),
    max_size=6,
).map("".join)  # fmt: skip
QUOTED = st.one_of(
    SAFE.map(lambda v: f'"{v}"'),
    SAFE.map(lambda v: f'"{v}"'),
    SAFE.map(lambda v: f'"{v}"tail'),
    SAFE.map(lambda v: "'" + v.replace("'", "") + "'"),
    st.sampled_from(["quiet", "a\\ b", "a\\\nb", "$OTHER", "x$OTHER.y", "\"a\"'b'", ""]),
)
NAMED = st.sampled_from(NAMES)
SIMPLE = st.builds("{}={}".format, NAMED, QUOTED)
ASSIGNMENTS = st.one_of(SIMPLE, SIMPLE.map("export {}".format), SIMPLE.map("  {}".format))
WILD = st.builds("{}{}{}".format, NAMED, st.sampled_from(["=", "+="]), VALUES)
PLAIN = st.one_of(
    ASSIGNMENTS,
    ASSIGNMENTS.map(lambda a: f"{a} # note"),
    st.builds("{}; {}".format, ASSIGNMENTS, ASSIGNMENTS),
    st.sampled_from(["# comment", "", "unset OTHER", "export OTHER", ":", "echo hi"]),
)
HARD = st.one_of(
    WILD,
    st.builds("[ -e / ] && {}".format, ASSIGNMENTS),
    st.builds("false ||\n {}".format, ASSIGNMENTS),
    st.builds("if false; then\n {}\nfi".format, ASSIGNMENTS),
    st.builds("for x in 1 2; do {}; done".format, ASSIGNMENTS),
    st.builds("f() {{ {}; }}; f".format, ASSIGNMENTS),
    st.builds("( {} )".format, ASSIGNMENTS),
    st.builds("case x in y) {};; esac".format, ASSIGNMENTS),
    st.builds("eval '{}'".format, st.sampled_from(["OTHER=evil", "GRUB_CMDLINE_LINUX=evil"])),
    st.sampled_from(["OTHER=1 :", "OTHER=$(echo a b)", "OTHER=`echo a`", "! false"]),
)
CONTENT = st.one_of(
    st.lists(PLAIN, max_size=6).map("\n".join),
    st.tuples(st.lists(PLAIN, max_size=3), HARD, st.lists(PLAIN, max_size=3)).map(
        lambda parts: "\n".join([*parts[0], parts[1], *parts[2]])
    ),
)


@given(CONTENT)
@settings(max_examples=200, deadline=None)
@example('OTHER="a\\\nb" # c\nGRUB_CMDLINE_LINUX=$OTHER\'d e\'"f"')
@example('OTHER="a"\nGRUB_CMDLINE_LINUX="${OTHER:+$OTHER }\\$tuned_params"')
@example('OTHER=$(case x in x) echo ")";; esac)\nGRUB_CMDLINE_LINUX=b')
def test_what_is_known_is_what_sh_says(content: str) -> None:
    found = from_sh(content)
    if found is None:
        return
    environment = evaluated(content)
    for name in NAMES:
        value = environment.get(name)
        if UNKNOWN not in value.text:
            assert value.text == found[name]


@given(st.lists(PLAIN, max_size=6).map("\n".join))
@settings(max_examples=100, deadline=None)
def test_plain_assignments_are_known(content: str) -> None:
    found = from_sh(f"OTHER=\n{content}")
    assert found is not None
    environment = evaluated(f"OTHER=\n{content}")
    assert {name: environment.get(name).text for name in NAMES} == found


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('GRUB_CMDLINE_LINUX="quiet splash"', ["quiet", "splash"]),
        ("GRUB_CMDLINE_LINUX=quiet\nexport GRUB_CMDLINE_LINUX", ["quiet"]),
        ('GRUB_CMDLINE_LINUX="a"\nGRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX b"', ["a", "b"]),
        ("OTHER=`lsb_release -i -s 2> /dev/null || echo Debian`\nGRUB_CMDLINE_LINUX=a", ["a"]),
        ('OTHER="$(sed \'s, release .*$,,g\' /etc/system-release)"\nGRUB_CMDLINE_LINUX=a', ["a"]),
        ("OTHER=`( . /x; echo ${NAME:-U} ) 2>/dev/null || :`\nGRUB_CMDLINE_LINUX=a", ["a"]),
        ("unset GRUB_CMDLINE_LINUX", []),
        ('GRUB_CMDLINE_LINUX="a \\\n b"', ["a", "b"]),
        ("if [ -e /x ]; then OTHER=1; fi\nGRUB_CMDLINE_LINUX=a", ["a"]),
    ],
)  # fmt: skip
def test_words(content: str, expected: list[str]) -> None:
    assert [word for word, _ in words_of(evaluated(content).get("GRUB_CMDLINE_LINUX"))] == expected
    sh = from_sh(content)
    assert sh is not None
    assert sh["GRUB_CMDLINE_LINUX"].split() == expected


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("X=1\nGRUB_CMDLINE_LINUX=$(cat /x)", "/f0:2: command substitution"),
        ("if true; then\nGRUB_CMDLINE_LINUX=a\nfi", "/f0:2: assigned under a condition"),
        ("GRUB_CMDLINE_LINUX=a\n. /etc/other", "/f0:2: runs ."),
        ("GRUB_CMDLINE_LINUX=a\nGRUB_CMDLINE_LINUX+=' b'", "/f0:2: += is not sh"),
        ("GRUB_CMDLINE_LINUX=a\nf() {\nX=1\n}", "/f0:2: a function"),
        ("GRUB_CMDLINE_LINUX='a\n", "/f0:1: a quote that does not end"),
        ("[ -d /x ] &&\nGRUB_CMDLINE_LINUX=a", "/f0:2: assigned under a condition"),
    ],
)
def test_what_cannot_be_known_says_where(content: str, place: str) -> None:
    value = evaluated(content).get("GRUB_CMDLINE_LINUX")
    assert value.text == UNKNOWN
    assert value.chars[0][1].startswith(place)


def test_each_word_knows_its_line_through_several_files() -> None:
    environment = evaluated(
        'GRUB_CMDLINE_LINUX="a b"\n', 'X=1\nGRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX c"\n'
    )
    found = list(words_of(environment.get("GRUB_CMDLINE_LINUX")))
    assert found == [("a", "/f0:1"), ("b", "/f0:1"), ("c", "/f1:2")]


def test_a_dropped_word_is_remembered_with_what_dropped_it() -> None:
    environment = evaluated('GRUB_CMDLINE_LINUX="a b"', 'GRUB_CMDLINE_LINUX="b"')
    (lost,) = environment.lost
    assert (lost.word, lost.origin, lost.dropped_by) == ("a", "/f0:1", "/f1:1")


def test_an_unknown_part_leaves_the_words_after_it_known() -> None:
    environment = evaluated('GRUB_CMDLINE_LINUX="$UNSET iommu=pt"')
    words = list(words_of(environment.get("GRUB_CMDLINE_LINUX")))
    assert words[0] == (UNKNOWN, "$UNSET is not set by these files")
    assert words[1] == ("iommu=pt", "/f0:1")
