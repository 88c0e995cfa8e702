"""What a block closes at its end, as a base for the classes that hold something open."""

from typing import Self


class Closing:
    """Its block ends with `close`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        raise NotImplementedError


class AsyncClosing:
    """Its block ends with `close`, which is awaited."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        raise NotImplementedError
