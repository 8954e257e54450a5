"""The contract of the store of webhooks."""

from __future__ import annotations

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.stores.webhook_store import NatsWebhooks
from ioa.adapters.nats.streams.topology import HOOKS
from ioa.protocol.ids import LOCAL, GoalId
from ioa.protocol.operation.api_keys import KeyId
from ioa.protocol.operation.webhooks import HookEvent, Notice, Webhook, WebhookId, written_secret
from ioa.testing.manual_clock import NEW_YEAR


@pytest.fixture
def store(client: Client) -> NatsWebhooks:
    """A store without content."""
    return NatsWebhooks(client)


def _hook(webhook_id: str, url: str = "https://example.com/hook") -> Webhook:
    return Webhook(
        webhook_id=WebhookId(webhook_id),
        user=LOCAL,
        key_id=KeyId("web"),
        url=url,
        events=("ended",),
        secret=written_secret(b"secret"),
        created_at=NEW_YEAR,
        after=0,
    )


def _notice(webhook_id: str, number: int) -> Notice:
    return Notice(
        webhook_id=WebhookId(webhook_id),
        message_id=f"goal-{number}-ended",
        event=HookEvent.ENDED,
        at=NEW_YEAR,
        user=LOCAL,
        goal_id=GoalId(f"goal-{number}"),
    )


async def test_webhooks_are_kept_until_they_are_removed(store: NatsWebhooks) -> None:
    """A webhook is there as it was put, the last one of an id counts, and one that was removed is gone, also twice."""
    for hook in (_hook("one"), _hook("two"), _hook("two", "https://example.com/other")):
        await store.put(hook.webhook_id, hook)
    for _ in range(2):
        await store.erase(WebhookId("one"))
    two = _hook("two", "https://example.com/other")
    kept = [one async for one in store.all()]
    assert (kept, await store.find(WebhookId("one")), await store.find(WebhookId("two"))) == ([two], None, two)


async def test_notice_is_queued_once(store: NatsWebhooks, client: Client) -> None:
    """Nothing has ended at first; whoever queues the same thing again is told that it waits."""
    assert await store.last_result() == 0
    assert [await store.queue(_notice("one", 1)) for _ in range(2)] == [True, True]
    assert (await client.jetstream().stream_info(HOOKS)).state.messages == 1


@pytest.mark.parametrize("bound", ["max_msgs", "max_msgs_per_subject"])
async def test_a_queue_that_is_full_says_so(client: Client, bound: str) -> None:
    """For one webhook or for all: whoever queues goes on with the others."""
    config = (await client.jetstream().stream_info(HOOKS)).config
    await client.jetstream().update_stream(config.evolve(**{bound: 2}))
    store = NatsWebhooks(client)
    assert [await store.queue(_notice("one", number)) for number in range(3)] == [True, True, False]
    assert await store.queue(_notice("two", 1)) == (bound == "max_msgs_per_subject")
