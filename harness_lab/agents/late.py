"""Usage that comes later than its answer, or more than once: a step settles once, when its usage comes."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from harness_lab.errors import AlreadySettled
from harness_lab.outcome import CHANNELS
from harness_lab.policies.protocol import Use

if TYPE_CHECKING:
    from harness_lab.agents.loop import Harness
    from harness_lab.agents.ports import LateReply
    from harness_lab.agents.record import NodeRecord
    from harness_lab.policies.protocol import Ticket

_UNKNOWN = (1,) + (None,) * (len(CHANNELS) - 1)


async def settle_late(harness: Harness, step: Ticket, use: Use, reply: LateReply, record: NodeRecord) -> None:
    """Leave a step open until its usage comes; what comes after its node's end, or a second time, moves nothing."""
    record.expect(reply)
    waiting = record.late = [] if record.late is None else record.late
    waiting.append(step)

    async def arrive() -> None:
        if reply.late_ns:
            await harness.runtime.sleep(reply.late_ns)
        if step in waiting:
            waiting.remove(step)
            record.arrived(reply, use.spent)
            await _settle(harness, step, use)
        for _ in range(reply.copies - 1):
            with suppress(AlreadySettled):
                await _settle(harness, step, use)

    if reply.late_ns:
        harness.runtime.start(arrive())
    else:
        await arrive()


async def give_up(harness: Harness, record: NodeRecord) -> None:
    """Settle as unknown, when their node ends, the steps whose usage has not come."""
    waiting, record.late = record.late or [], []
    if waiting:
        record.usage_known = record.cost_known = False
    for step in list(waiting):
        waiting.remove(step)
        await _settle(harness, step, Use(_UNKNOWN))


async def _settle(harness: Harness, step: Ticket, use: Use) -> None:
    runtime, policy = harness.runtime, harness.policy
    if policy.blocking:
        await runtime.tell(policy, step, use)
    else:
        policy.settle(step, use, runtime.now())
        runtime.drain(policy)
