"""Who may use the server: whoever sends its key or, if it has none, programs of this machine.

Any web page can make a browser send requests to this machine, by `localhost` or by a name of the page's own that
leads here. The browser says which name was asked for (Host) and whose page asks (Origin). No page knows the key, so with
a key the server may have any name, as behind a proxy. Our other servers have the same rule: packages/core/src/http/http-access.ts.
"""
from __future__ import annotations

import hmac
import ipaddress
import re
from typing import Mapping, Optional

from .errors import RequestError

LOOPBACK_HOST = re.compile(r"(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)


def is_loopback(host: str) -> bool:
    """Whether an address to listen on can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_access(headers: Mapping[str, str], key: Optional[str], keyless: bool = False) -> None:
    """Refuses a request; `keyless` is for what is told without the key, such as the server's health."""
    if key is None:
        _refuse_pages(headers.get("Host", ""), headers.get("Origin"))
    elif not keyless:
        given = headers.get("X-API-Key") or headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), key.encode()):
            raise RequestError("the key is missing or wrong; set PAWL_API_KEY to the server's", 401)


def _refuse_pages(host: str, origin: Optional[str]) -> None:
    if not LOOPBACK_HOST.fullmatch(host):
        raise RequestError(f"without a key, only requests to localhost are answered, not to {host[:100]!r}", 403)
    # Some clients that are no browsers name the server itself.
    if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
        raise RequestError(f"without a key, web pages are not answered, such as those of {origin[:100]!r}", 403)
