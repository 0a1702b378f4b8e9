// server/live/live.ts: the topics that clients subscribe to, and the timer that publishes changes.
// Invariant: without subscribers nothing is polled. A client that reconnects sends its last number and continues after it.
import type { ApiEvent, LiveMessage } from '../../protocol/api/api.ts';
import { readEventPage } from '../../store/event-pages.ts';
import type { EventLine } from '../../protocol/event.ts';
import type { HostContext } from '../../run/host-context.ts';
import { createTaskIndex, type TaskIndex } from './task-index.ts';
import { createAttempts, type Attempts } from './attempts.ts';
import { createSubscribers, type Subscriber, type Source, createRecent } from './subscribers.ts';
import { createKnownProjects, type KnownProjects } from './projects.ts';
import { Refusal } from '../routes/refusal.ts';

export interface Live {
  /** Resolves when every task has been read once. */
  ready(): Promise<void>;
  readonly taskIndex: TaskIndex;
  readonly knownProjects: KnownProjects;
  join(subscriber: Subscriber, topic: string, after: number | null): Promise<void>;
  part(subscriber: Subscriber, topic: string): void;
  leave(subscriber: Subscriber): void;
  /** The number of the topic's last message, to continue from after a snapshot. */
  seq(topic: 'tasks' | 'projects'): number;
  close(): void;
}

const BEAT_MS = 100;
/** Listing projects reads every repository, so it happens at most this often. */
const PROJECTS_MS = 1000;
/** A client that missed more events than this gets `reset`: loading the end of the log is faster than replaying it. */
const MAX_MISSED = 20_000;

export function createLive(context: HostContext): Live {
  const now = (): number => context.now().getTime();
  const start = now();
  const subscribers = createSubscribers();
  const rows = createRecent(start);
  const projects = createRecent(start);
  const shownProjects = new Map<string, string>();
  let attempts: Attempts | null = null;
  let projectsDirty = true;
  let projectsToldMs = 0;
  let timer: NodeJS.Timeout | null = null;
  let closed = false;
  let first: Promise<void> | null = null;
  const left = new WeakSet<Subscriber>();

  const taskIndex = createTaskIndex(context.stateDir, now, {
    task(task) {
      projectsDirty = true;
      subscribers.publish(rows.add({ topic: 'tasks', type: 'task', data: task }));
    },
    gone(id) {
      projectsDirty = true;
      subscribers.publish(rows.add({ topic: 'tasks', type: 'task-gone', data: { id } }));
    },
    event(id, event) {
      const topic = `task:${id}`;
      if (subscribers.has(topic)) subscribers.publish(eventMessage(topic, event));
    },
    // The numbers of the events start again, so subscribers must reload the task.
    replaced: (id) => subscribers.publish({ topic: `task:${id}`, type: 'reset', seq: 0, data: null }),
  });
  const knownProjects = createKnownProjects(
    context,
    () => taskIndex.liveRows().map(({ shown, row }) => ({ shown, project: row.project })),
    () => (projectsDirty = true),
  );

  function sourceOf(topic: string): Source {
    if (topic === 'tasks') return rows;
    if (topic === 'projects') return projects;
    const [kind, id = ''] = topic.split(':');
    const liveRow = taskIndex.liveRow(id);
    if (liveRow === undefined) throw new Refusal(404, 'request.topic', 'There is nothing of this name to listen to.');
    if (kind === 'network') return (attempts ??= createAttempts(context, start, subscribers)).source(liveRow.id);
    if (kind !== 'task') throw new Refusal(404, 'request.topic', 'There is nothing of this name to listen to.');
    return {
      seq: () => liveRow.tail.seq,
      since(after) {
        if (after > liveRow.tail.seq || liveRow.tail.seq - after > MAX_MISSED) return null;
        const { events } = readEventPage(liveRow.entry.paths.events, { after, limit: 500, maxBytes: 2 ** 20 });
        // Events that are in the file but not yet published follow on their own.
        const told = events.filter(({ seq }) => seq <= liveRow.tail.seq);
        return {
          messages: told.map((event) => eventMessage(topic, event)),
          more: told.length > 0 && told.at(-1)?.seq !== liveRow.tail.seq,
        };
      },
    };
  }

  async function beat(): Promise<void> {
    await taskIndex.look('some');
    attempts?.look();
    if (projectsDirty && subscribers.has('projects') && now() - projectsToldMs >= PROJECTS_MS) await tellProjects();
    subscribers.catchUp();
  }

  async function tellProjects(): Promise<void> {
    projectsDirty = false;
    projectsToldMs = now();
    for (const project of await knownProjects.list()) {
      const text = JSON.stringify(project);
      if (shownProjects.get(project.id) === text) continue;
      shownProjects.set(project.id, text);
      subscribers.publish(projects.add({ topic: 'projects', type: 'project', data: project }));
    }
  }

  function wake(): void {
    if (closed || timer !== null || subscribers.size === 0) return;
    timer = setTimeout(() => {
      void beat()
        // A directory that cannot be read now is read again at the next beat.
        .catch(() => undefined)
        .finally(() => {
          timer = null;
          wake();
        });
    }, BEAT_MS);
  }

  function ready(): Promise<void> {
    first ??= taskIndex.look('all').catch((error: unknown) => {
      first = null;
      throw error;
    });
    return first;
  }

  return {
    ready,
    taskIndex,
    knownProjects,
    async join(subscriber, topic, after) {
      // A client that reconnects right after a server start may ask for tasks that the server has not read yet.
      await ready();
      const id = topic.split(':')[1];
      if (id !== undefined && taskIndex.liveRow(id) === undefined) await taskIndex.look('some');
      if (left.has(subscriber)) return;
      subscribers.subscribe(subscriber, topic, sourceOf(topic), after);
      wake();
    },
    part: (subscriber, topic) => subscribers.unsubscribe(subscriber, topic),
    leave(subscriber) {
      left.add(subscriber);
      subscribers.leave(subscriber);
    },
    seq: (topic) => (topic === 'tasks' ? rows : projects).seq(),
    close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      knownProjects.close();
    },
  };
}

/** The event as logged, without the hash of its predecessor. */
export function apiEvent({ prev: _prev, ...event }: EventLine): ApiEvent {
  return event;
}

function eventMessage(topic: string, event: EventLine): LiveMessage {
  return { topic, type: 'event', seq: event.seq, data: apiEvent(event) };
}
