"""A class graded in bulk: a folder of submissions and a class's folder -> points, feedback, and files for the school.

`classroom` holds who is in the class and by when, `handed_in` what came and whose it is, `items` what is to be judged.
`judging` judges, in processes of their own that `judge_process` starts, here or on a cluster (`pool`); `kept` holds
each verdict from then on. `scores` makes points of them; the pages, `exports` and `similar` make them readable; `grade`
calls these in turn.
"""
