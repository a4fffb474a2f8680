"""The wheel holds the typed package alone, and needs nothing but the standard library."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.lengths import long

SOURCE = Path(__file__).parents[2] / "src" / "paydesk_client"

TRY_IT = """
import sys
sys.path.insert(0, sys.argv[1])
import paydesk_client
gateway = paydesk_client.Gateway("public", "private")
assert 'name="hash"' in gateway.payment_form().build_form({"amount": "5.00"})
assert not any(name.partition(".")[0] == "paydesk" for name in sys.modules)
print(paydesk_client.__file__)
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that `pip install ./src/paydesk_client` would install, unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-build-isolation", "--no-deps"]
    subprocess.run([*build, "--wheel-dir", str(folder), str(SOURCE)], check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


@long
def test_the_wheel_holds_the_typed_package_and_nothing_else(unpacked: Path) -> None:
    packages = {path.name for path in unpacked.iterdir() if not path.name.endswith(".dist-info")}
    assert packages == {"paydesk_client"}
    shipped = {path.name for path in (unpacked / "paydesk_client").iterdir()}
    assert shipped == {path.name for path in SOURCE.glob("*.py")} | {"py.typed"}


def test_it_works_with_nothing_but_the_standard_library(unpacked: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", TRY_IT, str(unpacked)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(str(unpacked))


def test_it_depends_on_nothing(unpacked: Path) -> None:
    (metadata,) = unpacked.glob("*.dist-info/METADATA")
    assert "Requires-Dist" not in metadata.read_text()
