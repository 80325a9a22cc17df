"""The sections of systemd's and NetworkManager's files, in which a section may stand repeatedly."""

from pydantic import Field

from railwright.model import Model


class IniSection(Model):
    """One section: each key with its values, in order; ``line`` is that of its header."""

    name: str
    line: int
    values: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    def last(self, key: str) -> str | None:
        """The value that counts of a key that is set more than once."""
        values = self.values.get(key)
        return values[-1] if values else None


def ini_sections(text: str) -> list[IniSection]:
    """Read ``text``; what stands outside of a section, or is no assignment, is passed over.

    An empty value drops the ones before it (systemd.syntax(7)).
    """
    found: list[IniSection] = []
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("[") and line.endswith("]"):
            found.append(IniSection(name=line[1:-1], line=number))
            continue
        key, sets, value = (part.strip() for part in line.partition("="))
        if not found or not sets:
            continue
        section = found[-1]
        values = (*section.values.get(key, ()), value) if value else ()
        found[-1] = section.model_copy(update={"values": {**section.values, key: values}})
    return found


def section_of(sections: list[IniSection], name: str) -> IniSection:
    """The section ``name``, with the keys of all that have that name."""
    values: dict[str, tuple[str, ...]] = {}
    line = 0
    for section in sections:
        if section.name == name:
            line = line or section.line
            for key, more in section.values.items():
                values[key] = (*values.get(key, ()), *more)
    return IniSection(name=name, line=line, values=values)
