"""Secrets in files of their own: `PAYDESK_SECRET_KEY_FILE=/run/secrets/key` instead of the key
in the environment.

An environment is inherited by every child and shown by `systemctl show` and `podman inspect`; a
file has an owner.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Mapping
from pathlib import Path

from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource, PydanticBaseSettingsSource

from paydesk.core.errors import SetupError

SUFFIX = "_FILE"

_MOST = 64 * 1024
"""Bytes of the longest file that can be meant; what is longer is no secret but another file."""


class WithSecretFiles(PydanticBaseSettingsSource):
    """The settings that a source gives, with what stands in the files that it names in the place
    of secrets.
    """

    def __init__(self, source: EnvSettingsSource, secrets: Collection[str]) -> None:
        super().__init__(source.settings_cls)
        self._source = source
        self._secrets = secrets

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[object, str, bool]:
        """One field of the source itself; files are read for all fields together."""
        return self._source.get_field_value(field, field_name)

    def __call__(self) -> dict[str, object]:
        """All that the source gives.

        Raises: SetupError if a secret is given twice or its file can't be used.
        """
        given = self._source()
        prefix = str(self.config["env_prefix"])
        for name, path in paths_of(self._source.env_vars, prefix, self._secrets).items():
            setting = prefix + name.upper()
            if given.get(name):
                raise SetupError(f"{setting} and {setting}{SUFFIX} are both set; keep one of them")
            given[name] = read_secret(setting + SUFFIX, path)
        return given


def paths_of(variables: Mapping[str, str | None], prefix: str, secrets: Collection[str]) -> dict[str, Path]:
    """The files that variables name, by the fields whose values stand there."""
    named = {key.upper(): value for key, value in variables.items()}
    found = {name: named.get(f"{prefix}{name}{SUFFIX}".upper()) for name in secrets}
    return {name: Path(path) for name, path in found.items() if path}


def read_secret(setting: str, path: Path) -> str:
    """The one line that a file holds, without the end of the line; no error shows any of it.

    Raises: SetupError, naming the setting, the file and what to do.
    """
    try:
        # A pipe could be read once only, and settings are read by every process.
        if not stat.S_ISREG(path.stat().st_mode):
            raise SetupError(f"{setting}: {path} is no regular file; name one that holds the value and nothing else")
        with path.open("rb") as file:
            content = file.read(_MOST + 1)
    except OSError as error:
        raise SetupError(
            f"{setting}: cannot read {path}: {error.strerror}; name a file that holds the value and nothing else, "
            "and that the user may read who runs Paydesk"
        ) from error
    return _line(setting, path, content)


def _line(setting: str, path: Path, content: bytes) -> str:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        # The error itself would show what it could not read.
        raise SetupError(f"{setting}: {path} is not text in UTF-8; write the value into it and nothing else") from None
    line = text.removesuffix("\n").removesuffix("\r")
    if not line.strip():
        raise SetupError(f"{setting}: {path} is empty; write the value into it, or leave {setting} out")
    if len(content) > _MOST:
        raise SetupError(
            f"{setting}: {path} is longer than {_MOST // 1024} KiB; write the value into it and nothing else"
        )
    if "\n" in line or "\0" in line:
        raise SetupError(f"{setting}: {path} holds more than one line; write the value into it and nothing else")
    return line


def is_open_to_all(path: Path) -> bool:
    """Whether any user of this machine may read a file:
    by its mode, and those of the directories above it.
    """
    try:
        whole = path.resolve()
        passable = all(directory.stat().st_mode & stat.S_IXOTH for directory in whole.parents)
        return passable and bool(whole.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False
