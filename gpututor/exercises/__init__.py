"""Exercises: what is asked, what is handed to the reader, and how an answer is judged.

Each lesson has a module here (`ex02`). A reader's code runs in a process of its own and hands back
numbers only; judging them happens here, which never imports it. Solutions and wrong answers lie in
tests/exercises, where the page can't reach them.
"""
