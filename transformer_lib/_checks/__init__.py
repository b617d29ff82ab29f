"""The guard at the door: what the library's public functions ask of their arguments.

One module a part, with the part's name; ``common`` has what several ask for. A guard bears the
name of the function or class it stands before, which calls it once, in its first line. It returns
nothing: either the arguments fit, or an error names the argument, what came and what was
expected, before the first number is computed. TypeError is for what is no such thing (kind,
dtype, device, layout), ValueError for sizes and numbers out of range. Values of tensors are
looked at in eager mode only, and not on the meta device.

A guard compares first and looks for words only where something does not fit: that is quicker, and
while torch.compile traces dynamic lengths there are no numbers that could be put into words.
"""
