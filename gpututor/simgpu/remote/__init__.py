"""A simulated card in another process than the program that uses it, so that the program can't touch its books.

A session is private only by custom: code in the same process can replace `Session.account`, write a tape by
hand, or set the clock. So where somebody else's code is judged, the card lives in a process that never imports it. The
program's process has handles: tensors with device, size, dtype and strides, and no values. Each op, copy, wait and
value goes through a socket to the card, which computes, accounts, and keeps the tape.

* `wire`: frames, and what may stand in them. No pickle; every field is looked at on the card's side.
* `session`, `forwarding`, `whole`, `proxies`: the program's side. Whatever it does to itself, it only fools itself.
* `card`, `ops`, `calls`: the card's side, and the card as a process.

What a program could lie about, because only its own process knows: the phase of an op, calls of modules, pinned memory
and TF32. `wire.py` says what each lie would bring.
"""
