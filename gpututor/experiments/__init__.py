"""What the lessons run in the lab: functions `f(progress, …)` that hand back data and files.

What runs them: `sweeps` (variants on the virtual clock), `calm` and `fed` (on the paced clock, where the host's time is
real), `own_device` (on this computer's GPU or processor), `stopwatch` and `per_op` (what a tape says of lines and of
operators), `measured` (lessons 1 and 2 on a GPU).
Lessons: 01 gauge, 02 seq2seq, 03 batches, 04 one_after_another, 05 wider_or_deeper, 06 feeding with feeds and
feeding_here, 07 data_in_memory with loader_loops, 08 preparing, 09 answers, 10 tiny_kernels with ways.
"""
