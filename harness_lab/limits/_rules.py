"""The arithmetic of tree limits: pure functions of ints in the numba subset; ``-1`` is "no limit", 0 is a real one.

Source: subagent limits of TanStack AI: depth, starts, children at once, in this order.
"""


def too_deep(depth: int, max_depth: int) -> bool:
    """Whether a child at `depth` (the root is 0) lies below the deepest level allowed."""
    return 0 <= max_depth < depth


def used_up(used: int, maximum: int) -> bool:
    """Whether a counter that may reach `maximum` has reached it."""
    return 0 <= maximum <= used


def broken(depth: int, max_depth: int, starts: int, max_calls: int, active: int, max_concurrent: int) -> int:
    """Return which limits a start at `depth` would break, as bits: 1 depth, 2 starts, 4 children at once."""
    return (
        (1 if 0 <= max_depth < depth else 0)
        + (2 if 0 <= max_calls <= starts else 0)
        + (4 if 0 <= max_concurrent <= active else 0)
    )


def earlier(a: int, b: int) -> int:
    """Return the earlier of two instants, where ``-1`` is "never"."""
    if a < 0:
        return b
    if b < 0:
        return a
    return min(a, b)
