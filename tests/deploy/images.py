"""Images out of nothing but Debian's packages, from wherever this machine's own apt gets them:
no registry is asked.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.deploy.podman import Podman

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent

PYTHON = ("python3", "python3-venv", "ca-certificates")
SERVERS = ("postgresql", "haproxy")
USERS = {"postgres": 999, "haproxy": 99}
"""The users of the official images, which deploy/make-secrets.sh writes files for."""


def build_all(podman: Podman, folder: Path) -> dict[str, str]:
    """Build Paydesk's image and what stands in for the official ones;
    returns the variables of compose.yaml.
    """
    folder.mkdir()
    with ThreadPoolExecutor(2) as both:
        for each in [both.submit(_stand_ins, podman, folder), both.submit(_paydesk, podman, folder)]:
            each.result()
    return {
        "PAYDESK_IMAGE": "localhost/paydesk-test",
        "PAYDESK_POSTGRES_IMAGE": "localhost/paydesk-test-postgres",
        "PAYDESK_HAPROXY_IMAGE": "localhost/paydesk-test-haproxy",
    }


def _stand_ins(podman: Podman, folder: Path) -> None:
    """The images of PostgreSQL and HAProxy."""
    tar = _debian(folder / "servers.tar", SERVERS, USERS)
    podman.run("import", str(tar), "localhost/paydesk-test-servers")
    tar.unlink()
    for name in USERS:
        _build(podman, HERE / "stand_ins", f"Containerfile.{name}", f"localhost/paydesk-test-{name}")


def _paydesk(podman: Podman, folder: Path) -> None:
    """Paydesk's own image, as deploy/Containerfile says."""
    tar = _debian(folder / "base.tar", PYTHON, {})
    podman.run("import", str(tar), "localhost/paydesk-test-base")
    tar.unlink()
    base, settings = "--build-arg=BASE=localhost/paydesk-test-base", _registry_settings(folder)
    _build(podman, ROOT, "deploy/Containerfile", "localhost/paydesk-test", base, *settings)


def _build(podman: Podman, context: Path, file: str, tag: str, *options: str) -> None:
    podman.run("build", "--format=docker", f"--file={context / file}", f"--tag={tag}", *options, str(context))


def _debian(tar: Path, packages: tuple[str, ...], users: dict[str, int]) -> Path:
    """A small Debian with some packages as an archive;
    `users` get the ids that the packages would else choose.
    """
    codename = _ask(["sh", "-c", '. /etc/os-release; echo "$VERSION_CODENAME"'])
    # Nobody needs the cluster that PostgreSQL's package else makes.
    folder = '"$1/etc/postgresql-common"'
    hooks = [f"--essential-hook=mkdir {folder}; echo create_main_cluster=false > {folder}/createcluster.conf"]
    for name, uid in users.items():
        hooks += [
            f'--customize-hook=chroot "$1" groupmod --gid={uid} {name}',
            f'--customize-hook=chroot "$1" usermod --uid={uid} --gid={uid} {name}',
        ]
    subprocess.run(
        [
            "mmdebstrap",
            "--quiet",
            "--mode=root",
            "--variant=minbase",
            f"--include={','.join(packages)}",
            *(f"--aptopt={option}" for option in _apt_options()),
            *hooks,
            codename,
            str(tar),
            "-",
        ],
        input=_sources(codename),
        text=True,
        check=True,
        timeout=300,
    )
    return tar


def _sources(codename: str) -> str:
    """This machine's own sources of this release of Debian, as lines for apt."""
    form = "$(SITE)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)|$(CODENAME)"
    lines = set()
    for target in _ask(["apt-get", "indextargets", "--format", form, "Created-By: Packages"]).splitlines():
        site, release, component, origin, of = target.split("|")
        if origin == "Debian" and of.split("-")[0] == codename:
            lines.add(f"deb {site} {release} {component}")
    return "\n".join(sorted(lines)) + "\n"


def _apt_options() -> list[str]:
    """How this machine's apt reaches its sources, where that is not the usual way."""
    wanted = ("Acquire::http::", "Acquire::https::")
    return [
        line for line in _ask(["apt-config", "dump"]).splitlines() if line.startswith(wanted) and ' "";' not in line
    ]


def _registry_settings(folder: Path) -> list[str]:
    """How this machine's pip and npm reach their registries, and whom they trust,
    as secrets of the build.
    """
    (folder / "pip.conf").write_text(_pip_conf())
    files = {
        "ca.pem": Path(os.environ.get("PIP_CERT") or "/etc/ssl/certs/ca-certificates.crt"),
        "npmrc": Path(os.environ.get("NPM_CONFIG_USERCONFIG") or Path.home() / ".npmrc"),
        "pip.conf": folder / "pip.conf",
    }
    return [f"--secret=id={name},src={file}" for name, file in files.items() if file.is_file()]


def _pip_conf() -> str:
    """The indexes of this machine's pip; places on its own disk mean nothing inside a build."""
    lines = ["[global]"]
    for line in _ask([sys.executable, "-m", "pip", "config", "list"]).splitlines():
        name, _, value = line.partition("=")
        asked = name.rpartition(".")[2]
        named = value.strip("'").replace("\\n", " ").split()
        remote = [each for each in named if asked == "trusted-host" or each.startswith(("http:", "https:"))]
        if remote and asked in ("index-url", "extra-index-url", "proxy", "trusted-host"):
            lines.append(f"{asked} = {' '.join(remote)}")
    return "\n".join(lines) + "\n"


def _ask(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
