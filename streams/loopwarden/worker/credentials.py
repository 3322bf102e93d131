"""The client settings as Faust takes them."""

from __future__ import annotations

from faust.auth import Credentials, SASLCredentials, SSLCredentials

from loopwarden.client import Security


def credentials(security: Security) -> Credentials | None:
    """Return Faust's credentials; None for a cluster that asks for nothing.

    Raises:
        WrongSetting: certificates or a key cannot be read.
    """
    context = security.ssl_context() if security.uses_tls else None
    if security.uses_sasl:
        return SASLCredentials(
            username=security.username,
            password=security.password,
            ssl_context=context,
            mechanism=security.mechanism,
        )
    return None if context is None else SSLCredentials(context)
