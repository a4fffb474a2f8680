"""The files of the embedded PostgreSQL: where they lie, whose they are, and who may touch them.

Everything is below the data directory, whose parents are never touched::

    postgres/         the cluster, 0700
    socket/           the directory of the only door, a Unix socket, 0700
    postgres.lock     locked by the process that runs the server
    postgres.log      what the server says
    postgres.socket   where the socket is, if the data directory's path is too long for one
"""

import errno
import os
import pwd
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from paydesk.core.errors import SetupError

MAJOR_VERSION = "18"
PORT = 5432  # only a part of the socket's name
LONGEST_SOCKET_PATH = 100  # bytes; macOS takes 103, Linux 107
LARGEST_LOG = 10 * 2**20  # bytes; a longer one is put aside at the next start


class EmbeddedServerError(SetupError):
    """The embedded server can't be used; the message is one line that says why and what to do."""


@dataclass(frozen=True, slots=True)
class ServerUser:
    """Whom PostgreSQL runs as: ourselves, or `nobody` if we are root, since it refuses to run
    as root.
    """

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths below one data directory."""

    data_dir: Path

    @property
    def cluster(self) -> Path:
        """The cluster itself (PGDATA)."""
        return self.data_dir / "postgres"

    @property
    def lock(self) -> Path:
        """Locked by the owner of the server for as long as it lives."""
        return self.data_dir / "postgres.lock"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.data_dir / "postgres.log"

    @property
    def socket_note(self) -> Path:
        """Names the socket's directory when that isn't `socket/`."""
        return self.data_dir / "postgres.socket"


def server_user() -> ServerUser:
    """Return whom PostgreSQL runs as.

    Raises: EmbeddedServerError if this machine has no such user.
    """
    try:
        found = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    except KeyError:
        who = "user nobody" if os.geteuid() == 0 else f"name for user id {os.geteuid()}"
        raise EmbeddedServerError(
            f"PostgreSQL cannot run: this machine has no {who}; "
            "add one, or set PAYDESK_DATABASE_URL to a server of your own"
        ) from None
    return ServerUser(found.pw_uid, found.pw_gid)


def prepare_data_dir(data_dir: Path) -> Layout:
    """Make sure that the data directory exists, is ours, and that nobody else may change it.

    Root's is made searchable by others (0711), so that the unprivileged server reaches its own 0700
    directory below.

    Raises: EmbeddedServerError if it can't be used.
    """
    try:
        data_dir.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)
        mode = data_dir.stat()
        if mode.st_uid != os.geteuid():
            raise EmbeddedServerError(
                f"data directory {data_dir} belongs to {user_name(mode.st_uid)}, not to {user_name(os.geteuid())}: "
                "run as its owner, or set PAYDESK_DATA_DIR to another directory"
            )
        if mode.st_mode & 0o022:
            data_dir.chmod(stat.S_IMODE(mode.st_mode) & ~0o022)
        if not os.access(data_dir, os.W_OK | os.X_OK):
            raise PermissionError(None, "Permission denied")
    except OSError as error:
        raise unusable(data_dir, error) from error
    return Layout(data_dir.resolve())


def unusable(path: Path, error: OSError) -> EmbeddedServerError:
    """Return the error for a path that the system doesn't let us use."""
    reason = (error.strerror or str(error)).lower()
    # In another directory would be another database, which knows nothing of this one's payments.
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    step = "make room" if full else "set PAYDESK_DATA_DIR to a directory that you can write to"
    return EmbeddedServerError(f"cannot use data directory {path}: {reason}; {step}")


def user_name(uid: int) -> str:
    """Return a user's name, or its number if it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user id {uid}"


def restrict(directory: Path, user: ServerUser) -> None:
    """Make sure that a directory exists and that this user, and nobody else, may enter it (0700).

    Raises: EmbeddedServerError if it is somebody else's, or not a directory.
    """
    try:
        try:
            directory.mkdir(mode=0o700)
            os.chown(directory, user.uid, user.gid, follow_symlinks=False)
        except FileExistsError:
            pass
        opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            owner = os.fstat(opened).st_uid
            if owner == user.uid:
                os.fchmod(opened, 0o700)
        finally:
            os.close(opened)
    except OSError as error:
        raise unusable(directory, error) from error
    if owner != user.uid:
        raise EmbeddedServerError(
            f"{directory} belongs to {user_name(owner)} but PostgreSQL runs as {user_name(user.uid)}: "
            f"give it back (chown -R {user_name(user.uid)} {directory}), or set PAYDESK_DATA_DIR to another directory"
        )


def socket_directory(layout: Layout) -> Path:
    """Return the directory of the socket as a running server's owner chose it."""
    try:
        return Path(layout.socket_note.read_text().strip())
    except FileNotFoundError:
        return layout.data_dir / "socket"


def prepare_socket_directory(layout: Layout, user: ServerUser) -> Path:
    """Choose and restrict the directory of the socket, and clear it of what a killed server left.

    Call it only when no server of this data directory runs. A data directory with too long a path
    gets one below the system's temporary directory, under a name that nobody could guess and
    make first.
    """
    directory = layout.data_dir / "socket"
    # A comma separates directories, for PostgreSQL as for asyncpg.
    if len(os.fsencode(directory / f".s.PGSQL.{PORT}")) > LONGEST_SOCKET_PATH or "," in str(directory):
        directory = remembered_directory(layout, user) or remember(layout, user)
    else:
        layout.socket_note.unlink(missing_ok=True)
    restrict(directory, user)
    for left in (f".s.PGSQL.{PORT}", f".s.PGSQL.{PORT}.lock"):
        (directory / left).unlink(missing_ok=True)
    return directory


def remembered_directory(layout: Layout, user: ServerUser) -> Path | None:
    """Return the temporary directory of an earlier start if it is still there and still ours."""
    directory = socket_directory(layout)
    return directory if directory != layout.data_dir / "socket" and is_private(directory, user) else None


def is_private(directory: Path, user: ServerUser) -> bool:
    """Tell whether this is a directory that only this user may enter
    (a stranger's could pose as our server).
    """
    try:
        found = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == user.uid and not found.st_mode & 0o077


def remember(layout: Layout, user: ServerUser) -> Path:
    """Make a private temporary directory and note it in the data directory."""
    directory = Path(tempfile.mkdtemp(prefix="paydesk-"))
    os.chown(directory, user.uid, user.gid)
    replace_file(layout.socket_note, f"{directory}\n")
    return directory


def forget_socket_directory(layout: Layout) -> None:
    """Remove the temporary directory, if there is one, after the server has stopped."""
    directory = socket_directory(layout)
    if directory != layout.data_dir / "socket":
        shutil.rmtree(directory, ignore_errors=True)
        layout.socket_note.unlink(missing_ok=True)


def replace_file(path: Path, text: str, owner: ServerUser | None = None) -> None:
    """Write a file (0600) whole or not at all, without following a link that somebody put
    in its place.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            if owner:
                os.fchown(file.fileno(), owner.uid, owner.gid)
        Path(name).replace(path)
    except OSError:
        # On a full disk this is tried every second.
        Path(name).unlink(missing_ok=True)
        raise


def read_plainly(path: Path) -> str:
    """Return what a small file of the cluster says, or nothing if it isn't there.

    Links are refused: root reads here what another user may write, and must not be led elsewhere.
    """
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return ""
    with os.fdopen(opened, errors="replace") as file:
        return file.read(4096)


def pid_file(layout: Layout) -> list[str]:
    """Return the lines of the server's pid file (first the pid, eighth its state);
    none if it isn't there.
    """
    return read_plainly(layout.cluster / "postmaster.pid").splitlines()


def disown_pid_file(layout: Layout, user: ServerUser) -> None:
    """Make the pid file of a dead server harmless, though its pid may be another program's by now.

    PostgreSQL would refuse to start then. Under our own pid, its parent's, it ignores the pid but
    still looks whether the dead server's children use its shared memory; so the file isn't
    simply deleted.
    """
    _, *rest = pid_file(layout)
    replace_file(layout.cluster / "postmaster.pid", "\n".join([str(os.getpid()), *rest, ""]), user)


def open_log(layout: Layout) -> int:
    """Open the server's log for appending and return its file descriptor;
    a very long one is put aside first.
    """
    if layout.log.exists() and layout.log.stat().st_size > LARGEST_LOG:
        layout.log.replace(layout.log.with_suffix(".log.1"))
    return os.open(layout.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)


def check_version(layout: Layout) -> None:
    """Refuse a cluster that another major version of PostgreSQL made.

    Raises: EmbeddedServerError
    """
    version = read_plainly(layout.cluster / "PG_VERSION").strip()
    if not version:
        raise EmbeddedServerError(
            f"{layout.cluster} holds no database: move it away, or set PAYDESK_DATA_DIR to another directory"
        )
    if version != MAJOR_VERSION:
        raise EmbeddedServerError(
            f"{layout.cluster} was made by PostgreSQL {version}, this is {MAJOR_VERSION}: dump it with the version "
            "that made it and restore it here, or set PAYDESK_DATA_DIR to another directory"
        )


def clear_unfinished(layout: Layout) -> Path:
    """Return the path where a new cluster is made, cleared of an attempt that was killed."""
    unfinished = layout.data_dir / "postgres.new"
    shutil.rmtree(unfinished, ignore_errors=True)
    return unfinished


def publish(unfinished: Path, layout: Layout) -> None:
    """Give a finished cluster its real name, durably; a killed attempt never has that name."""
    unfinished.rename(layout.cluster)
    opened = os.open(layout.data_dir, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def write_access_rules(layout: Layout, user: ServerUser) -> None:
    """Let in nobody but the operating system's user who owns the data directory,
    as `paydesk` or `postgres`.
    """
    owner = pwd.getpwuid(os.geteuid()).pw_name
    replace_file(layout.cluster / "pg_hba.conf", "local all all peer map=owner\n", user)
    rules = "".join(f'owner "{owner}" {role}\n' for role in ("paydesk", "postgres"))
    replace_file(layout.cluster / "pg_ident.conf", rules, user)
