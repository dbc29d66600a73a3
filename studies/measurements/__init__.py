"""Measurements that need no trained model, one file each: functions for `perform` in a study."""
