"""Tail-miss diagnosis of training runs: readers, measures, text and page. Needs neither torch nor trl."""
