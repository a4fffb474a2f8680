"""Two cells on servers of their own, which a module shares."""

from tests.cell_servers import home as home
from tests.cell_servers import other as other
