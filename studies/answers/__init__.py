"""What came out, in numbers and sentences: `answer` gathers, `verdicts` judge, `printing` shows."""
