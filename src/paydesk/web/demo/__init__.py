"""The sample shop: a merchant like any other, which talks to Paydesk only through
its public interface.
"""

from paydesk.web.demo.routes import create_shop

__all__ = ["create_shop"]
