"""The most that a kernel can do here: bounds of its performance from what a machine can do at most.

the least work of a kernel · the machine's ceilings  →  no less than so many seconds, because …
"""
