"""deploy/compose.yaml as commands of podman, so that the file itself is tried
where no `compose` is to be had.

It knows the part of the compose specification that the file uses, and refuses every key that it
doesn't know.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from tests.deploy.podman import Podman

PATIENCE = 240.0
"""Seconds that a service may take to become what another one waits for."""

_VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")

_PLACES = {"name", "services", "networks", "volumes", "secrets"}
_CONDITIONS = {"service_healthy", "service_completed_successfully"}


def read(file: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """The file with its variables replaced and its merges done. Raises: ValueError for what this
    reader, or the specification, doesn't know."""
    written = "\n".join(line for line in file.read_text().splitlines() if not line.lstrip().startswith("#"))
    found: dict[str, Any] = yaml.safe_load(_VARIABLE.sub(lambda match: _value(match, environment), written))
    _know(found, {*_PLACES, *(name for name in found if name.startswith("x-"))}, file.name)
    for name, service in found["services"].items():
        _know(service, {"image", "command", "depends_on", "profiles", "restart", *_FLAGS}, name)
        for other, how in service.get("depends_on", {}).items():
            if other not in found["services"] or how.keys() != {"condition"} or how["condition"] not in _CONDITIONS:
                raise ValueError(f"{name} waits for {other}: {how}")
        for key in service.keys() & _FLAGS.keys():
            _FLAGS[key](service[key])
        for place in ("networks", "secrets"):
            _know(service.get(place, ()), found[place], f"{place} of {name}")
        named = [mount.partition(":")[0] for mount in service.get("volumes", ())]
        _know([source for source in named if not source.startswith(".")], found["volumes"], f"volumes of {name}")
    return found


def _value(match: re.Match[str], environment: Mapping[str, str]) -> str:
    name, how, rest = match.groups()
    value = environment.get(name, "")
    if not value and how == "?":
        raise ValueError(f"{name}: {rest}")
    return value or (rest if how == "-" else "")


def _know(found: Iterable[str], known: Iterable[str], where: str) -> None:
    if unknown := sorted(set(found) - set(known)):
        raise ValueError(f"{where}: {', '.join(unknown)}")


def _seconds(text: str) -> int:
    number, unit = int(text[:-1]), text[-1]
    return number * {"s": 1, "m": 60}[unit]


def _health(check: dict[str, Any]) -> list[str]:
    _know(check, ("test", "interval", "timeout", "retries", "start_period", "disable"), "healthcheck")
    if check.get("disable"):
        return ["--no-healthcheck"]
    rest = [f"--health-{name.replace('_', '-')}={value}" for name, value in check.items() if name != "test"]
    how, *command = check["test"]
    if how != "CMD":
        raise ValueError(f"healthcheck: {how}")
    return [f"--health-cmd={json.dumps(command)}", *rest]


def _logging(asked: dict[str, Any]) -> list[str]:
    _know(asked, ("options",), "logging")
    return [f"--log-opt={name}={value}" for name, value in asked["options"].items()]


_FLAGS: dict[str, Callable[[Any], list[str]]] = {
    "cap_drop": lambda dropped: [f"--cap-drop={each}" for each in dropped],
    "environment": lambda given: [f"--env={name}={value}" for name, value in given.items()],
    "healthcheck": _health,
    "init": lambda wanted: [f"--init={str(wanted).lower()}"],
    "logging": _logging,
    "network_mode": lambda mode: [f"--network={mode}"],
    "networks": lambda names: [],
    "ports": lambda published: [f"--publish={each}" for each in published],
    "read_only": lambda wanted: [f"--read-only={str(wanted).lower()}", "--read-only-tmpfs=false"],
    "secrets": lambda names: [],
    "security_opt": lambda options: [f"--security-opt={each}" for each in options],
    "shm_size": lambda size: [f"--shm-size={size}"],
    "stop_grace_period": lambda text: [f"--stop-timeout={_seconds(text)}"],
    "tmpfs": lambda places: [f"--tmpfs={place}" for place in places],
    "ulimits": lambda limits: [f"--ulimit={name}={most}:{most}" for name, most in limits.items()],
    "user": lambda name: [f"--user={name}"],
    "volumes": lambda mounts: [],
}


class Composition:
    """The services of the file as containers, named `project-service`."""

    def __init__(self, podman: Podman, file: Path, environment: Mapping[str, str], project: str = "") -> None:
        self._podman = podman
        self._folder = file.parent
        self._file = read(file, environment)
        self.project = project or str(self._file["name"])
        self.services: dict[str, dict[str, Any]] = {
            name: service for name, service in self._file["services"].items() if "profiles" not in service
        }

    def container(self, service: str) -> str:
        """The name of a service's container."""
        return f"{self.project}-{service}"

    def make_networks(self) -> None:
        """Make the networks of the file, before anything is started."""
        for name, network in self._file["networks"].items():
            (ipam,) = network["ipam"]["config"]
            self._podman.run("network", "create", f"--subnet={ipam['subnet']}", f"{self.project}_{name}")

    def up(self) -> None:
        """Start everything in the order that the file asks for."""
        started: set[str] = set()
        while waiting := [name for name in self.services if name not in started]:
            ready = [name for name in waiting if self.services[name].get("depends_on", {}).keys() <= started]
            if not ready:
                raise ValueError(f"these wait for one another: {waiting}")
            for name in ready:
                self.start(name)
            started.update(ready)

    def start(self, service: str) -> None:
        """Start a service once what it depends on has come so far."""
        for other, how in self.services[service].get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                self.wait_until(other, healthy=True)
            else:
                status = self._podman.tell("wait", self.container(other)).strip()
                assert status == "0", f"{other} ended with {status}: {self.logs(other)}"
        name = self.container(service)
        restart = f"--restart={self._file['services'][service]['restart']}"
        self._podman.run("run", "--detach", restart, f"--name={name}", *self._how(service), *self._what(service))

    def command(self, *arguments: str, stdin: bytes = b"", entrypoint: str = "") -> bytes:
        """What `compose run --rm paydesk …` says on its standard output."""
        how = [*self._how("paydesk"), *([f"--entrypoint={entrypoint}"] if entrypoint else [])]
        image = self._file["services"]["paydesk"]["image"]
        return self._podman.run("run", "--rm", "--interactive", *how, image, *arguments, stdin=stdin).stdout

    def is_healthy(self, service: str) -> bool:
        """What the service's own health check says now."""
        return self._podman.run("healthcheck", "run", self.container(service), fails=True).returncode == 0

    def wait_until(self, service: str, *, healthy: bool) -> None:
        """Ask the health check until it says so."""
        patience = time.monotonic() + PATIENCE
        while self.is_healthy(service) != healthy:
            assert time.monotonic() < patience, f"{service} never became so: {self.logs(service)}"
            time.sleep(0.5)

    def logs(self, service: str) -> str:
        """All that a service wrote."""
        ran = self._podman.run("logs", self.container(service), fails=True)
        return (ran.stdout + ran.stderr).decode(errors="replace")

    def _what(self, service: str) -> list[str]:
        asked = self._file["services"][service]
        return [asked["image"], *asked.get("command", ())]

    def _how(self, service: str) -> list[str]:
        """The options of `podman run`."""
        asked = self._file["services"][service]
        options = [flag for key, said in asked.items() if key in _FLAGS for flag in _FLAGS[key](said)]
        options += [f"--network={self.project}_{name}:alias={service}" for name in asked.get("networks", ())]
        options += [f"--volume={self._mount(text)}" for text in asked.get("volumes", ())]
        for secret in asked.get("secrets", ()):
            file = (self._folder / self._file["secrets"][secret]["file"]).resolve()
            options.append(f"--volume={file}:/run/secrets/{secret}:ro")
        return options

    def _mount(self, text: str) -> str:
        """A volume of the file by a name of the project's own, a path from the file's folder."""
        source, _, rest = text.partition(":")
        if source.startswith("."):
            return f"{(self._folder / source).resolve()}:{rest}"
        return f"{self.project}_{source}:{rest}"
