"""Stands in for NATS's command line in the README's test, where it is not installed: a real client, of the real server.

False in that it knows only `pub SUBJECT PAYLOAD` and `sub --count N SUBJECT`, and prints payloads bare.
"""

from __future__ import annotations

import asyncio
import os
import sys

import nats


async def main(arguments: list[str]) -> None:
    """Publish one message, or print the next messages of a subject."""
    async with await nats.connect(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"), allow_reconnect=False) as client:
        match arguments:
            case ["pub", subject, payload]:
                await client.publish(subject, payload.encode("utf-8"))
                await client.flush()
            case ["sub", "--count", count, subject]:
                subscription = await client.subscribe(subject, max_msgs=int(count))
                async for message in subscription.messages:
                    print(message.data.decode("utf-8"))
            case _:
                sys.exit(f"the stand-in for nats does not know: {' '.join(arguments)}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
