"""A problem that is reported to the client as it is."""


class RequestError(Exception):
    """A request that cannot be executed: says what was expected, what came, and the HTTP status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status
