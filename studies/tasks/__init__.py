"""Tasks: synthetic sequence problems with exact answers, one file a task.

`tasks` lists them without importing torch; a task class is imported when it is asked for.
"""

from typing import TYPE_CHECKING

from registry.registry import Registry
from variants.faces import face

if TYPE_CHECKING:
    from studies.tasks.task import Batch, Certificate, Floors, Task

__all__ = ["Batch", "Certificate", "Floors", "Task", "tasks"]

tasks = Registry(
    kind="task",
    plural="tasks",
    contract="studies.tasks.task:Task",
    package="studies.tasks",
    about="A problem on token sequences: it draws inputs, knows the answers and its own floors.",
)

__getattr__, __dir__ = face(__name__, {"task": ["Batch", "Certificate", "Floors", "Task"]})
