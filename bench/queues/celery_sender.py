"""Posts one body many times, each as a task of Celery that is acknowledged once it is done
and tried ten times.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import requests
from celery import Celery, signals  # type: ignore[import-not-found]

app = Celery(broker=f"redis://127.0.0.1:{os.environ['BENCH_REDIS_PORT']}/0")
app.conf.task_ignore_result = True
app.conf.task_acks_late = True
_kept = threading.local()


@app.task(bind=True, max_retries=9, default_retry_delay=1, name="post")  # type: ignore[untyped-decorator]
def post(self: Any) -> None:
    """Post it over this thread's own connection."""
    if not hasattr(_kept, "session"):
        _kept.session = requests.Session()
    headers = {"Content-Type": "application/json"}
    answer = _kept.session.post(os.environ["BENCH_URL"], data=os.environ["BENCH_BODY"], headers=headers, timeout=15)
    if answer.status_code != 200 or answer.text.strip() != "ok":
        raise self.retry()


@signals.worker_init.connect  # type: ignore[untyped-decorator]
def fill(**_: object) -> None:
    """All tasks wait before the first is taken."""
    for _each in range(int(os.environ["BENCH_NUMBER"])):
        post.delay()
