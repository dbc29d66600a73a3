"""From what is typed to what is stored: the runs of a plan, each exactly once, whatever is killed.

`command` is the command line that studies share, `running` leads a call through, `conduct` keeps
workers at the runs, a `worker` claims, does and writes them.
"""
