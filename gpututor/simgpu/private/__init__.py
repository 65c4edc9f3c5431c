"""Every inner name of torch that we use, each once, with what it is for and what breaks without it.

A name with a leading underscore may change with any release of torch. So all of them stand in this package and nowhere
else; other modules import them from here (tests/simgpu/test_private.py walks the code and refuses any other use).
A torch that lacks one is refused by that name when its part is imported, instead of by an AttributeError later.

The parts, by ground: `tensors` (the tensor class and the dispatcher), `device` (registration and autograd's engine),
`modules` (layers, optimizers, loaders, nested arguments), `functions` (torch's tables of its own functions), `files`,
`ranks` (torch.distributed), `operators` (of aten), `asked` (names that torch looks for on what is ours), `fake` (what
`gpututor bench` compares with). How a name is looked up and refused: `needing`.
"""
