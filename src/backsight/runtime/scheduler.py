"""The loop of `backsight schedule`: heartbeats by cron expression, and the other periodic work.

One process at a time fires the heartbeats of a store. Heartbeats that were missed, because no process ran or because
the agent was still running, are not made up for.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from threading import Event

from backsight.core.agents.agent_settings import AgentSettings
from backsight.core.agents.cron import parse_cron
from backsight.core.errors import BacksightError, Conflict, Unavailable
from backsight.core.strategies import Deployment
from backsight.core.text.counts import count_of
from backsight.memory import Memory
from backsight.services.deployments import deployments_at
from backsight.services.reflection import is_due_between_ticks
from backsight.services.schedule_lease import LEASE, release_lease, take_lease
from backsight.store.agent_sessions import scheduled_agents

LOG = logging.getLogger("backsight")
RESOLVE_EVERY = timedelta(minutes=5)
REINDEX_EVERY = timedelta(minutes=10)
REFLECT_EVERY = timedelta(hours=1)
"""How often the scheduler looks whether a reflection is due; the cadence of each deployment says when it is."""
Report = Callable[[str], None]
"""Receives one line for each thing that was done."""


@dataclass
class Scheduler:
    """Fires what is due; the owner of a store runs one."""

    memory: Memory
    holder: str
    report: Report
    due: dict[tuple[str, str], datetime] = field(default_factory=dict)
    """When each agent is due next, by its deployment and its schedule."""
    next_work: dict[str, datetime] = field(default_factory=dict)

    def run(self, stop: Event, *, pause_seconds: float = 1.0) -> None:
        """Fire until the event is set; the lease is given up at the end.

        A store that cannot be used for a while is waited for; a lease that another process has taken ends the loop.
        """
        now = self.memory.clock.now()
        take_lease(self.memory, self.holder, now=now)
        renew_at = now + LEASE / 3
        try:
            while not stop.wait(pause_seconds):
                now = self.memory.clock.now()
                try:
                    if now >= renew_at:
                        take_lease(self.memory, self.holder, now=now)
                        renew_at = now + LEASE / 3
                    self.fire(now)
                except Unavailable as error:
                    LOG.warning("the scheduler waits for the store: %s", error.message)
                    self.report(f"waiting for the store: {error.message}")
        finally:
            self._release()

    def _release(self) -> None:
        try:
            release_lease(self.memory, self.holder)
        except Unavailable as error:
            LOG.warning("the lease could not be given up, and ends by itself: %s", error.message)

    def fire(self, now: datetime) -> None:
        """Start the heartbeats that are due, and do the periodic work that is due."""
        with self.memory.reading() as connection:
            agents = scheduled_agents(self.memory.view(connection))
        for settings in agents:
            self._fire_agent(settings, now)
        for name, every, work in (
            ("resolution", RESOLVE_EVERY, self._resolve),
            ("reindex", REINDEX_EVERY, self._reindex),
            ("reflection", REFLECT_EVERY, self._reflect),
        ):
            if now >= self.next_work.setdefault(name, now + every):
                self.next_work[name] = now + every
                self._attempt(name, work)

    def _fire_agent(self, settings: AgentSettings, now: datetime) -> None:
        key = (settings.deployment_id, settings.schedule or "")
        expression = parse_cron(settings.schedule or "")
        due = self.due.get(key)
        if due is None or now < due:
            if due is None and (first := expression.next_after(now)) is not None:
                self.due[key] = first
            return
        following = expression.next_after(now)  # from now on, so that missed heartbeats do not pile up
        if following is not None:
            self.due[key] = following
        self._attempt("heartbeat", lambda: self._heartbeat(settings.deployment_id))

    def _heartbeat(self, deployment_id: str) -> None:
        started = self.memory.run_agent(deployment=deployment_id, heartbeat=True, patience_seconds=0.0)
        self.report(f"heartbeat of {started.deployment}: run {started.run.id[:8]}")

    def _resolve(self) -> None:
        result = self.memory.resolve_decisions()
        if result.changed or result.released:
            self.report(f"resolution: {result.message}")

    def _reindex(self) -> None:
        if self.memory.library is not None and self.memory.library.folder is not None:
            result = self.memory.reindex()
            self.report(f"reindex: {count_of(result.documents, 'document')}")

    def _reflect(self) -> None:
        with self.memory.reading() as connection:
            view = self.memory.view(connection)
            due = [each for each in deployments_at(view) if is_due_between_ticks(view, each)]
        for deployment in due:
            self._attempt(f"reflection of {deployment.name}", partial(self._reflect_on, deployment))

    def _reflect_on(self, deployment: Deployment) -> None:
        result = self.memory.reflect(deployment=deployment.id)
        self.report(f"reflection of {deployment.name}: {result.came}")

    def _attempt(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Conflict as busy:
            self.report(f"{name} skipped: {busy.message}")
        except BacksightError as error:
            LOG.warning("%s failed: %s", name, error.message)
            self.report(f"{name} failed: {error.message}")
        except Exception:  # one agent or one task that breaks must not stop the others
            LOG.exception("%s failed", name)
            self.report(f"{name} failed; the log has the traceback")
