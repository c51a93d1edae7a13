"""The arithmetic of floors: pure functions of ints in the numba subset.

Source: the runtime floors of tangle-network/agent-runtime; an ask that equals its floor passes there too.
"""


def below(asked: int, floor: int) -> bool:
    """Whether an ask is refused; one that equals the floor is not, and `-1`, an unmeasured floor, refuses nothing."""
    return floor >= 0 and asked < floor


def shortfall(asked: int, floor: int) -> int:
    """How much is missing to the floor, 0 when nothing is."""
    return floor - asked if below(asked, floor) else 0
