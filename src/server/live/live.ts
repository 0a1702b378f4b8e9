// server/live/live.ts: the topics that can be listened to, and the heart that beats while somebody does.
// Invariant: with nobody there nothing is looked at; whoever comes back says where they were, and goes on from there.
import type { ApiEvent, LiveMessage } from '../../protocol/api/api.ts';
import { readEventPage } from '../../store/event-pages.ts';
import type { EventLine } from '../../store/events.ts';
import type { World } from '../../run/host-context.ts';
import { createBoard, type Board } from './task-index.ts';
import { createAttempts, type Attempts } from './attempts.ts';
import { createPeers, type Peer, type Source } from './subscribers.ts';
import { createPlaces, type Places } from './projects.ts';
import { createRecent } from './recent.ts';
import { Refusal } from '../routes/refusal.ts';

export interface Live {
  /** All tasks have been looked at once. */
  ready(): Promise<void>;
  readonly board: Board;
  readonly places: Places;
  join(peer: Peer, topic: string, after: number | null): Promise<void>;
  part(peer: Peer, topic: string): void;
  leave(peer: Peer): void;
  /** Of `tasks` and `projects`: where to go on after a snapshot. */
  seq(topic: 'tasks' | 'projects'): number;
  close(): void;
}

const BEAT_MS = 100;
/** Each of them is a look into its repository. */
const PROJECTS_MS = 1000;
/** Further behind than this, reading the end anew is quicker than all that was missed. */
const MAX_MISSED = 20_000;

export function createLive(world: World): Live {
  const now = (): number => world.now().getTime();
  const start = now();
  const peers = createPeers();
  const rows = createRecent(start);
  const projects = createRecent(start);
  const shownProjects = new Map<string, string>();
  let attempts: Attempts | null = null;
  let projectsDirty = true;
  let projectsToldMs = 0;
  let timer: NodeJS.Timeout | null = null;
  let closed = false;
  let first: Promise<void> | null = null;
  const left = new WeakSet<Peer>();

  const board = createBoard(world.stateDir, now, {
    task(task) {
      projectsDirty = true;
      peers.publish(rows.add({ topic: 'tasks', type: 'task', data: task }));
    },
    gone(id) {
      projectsDirty = true;
      peers.publish(rows.add({ topic: 'tasks', type: 'task-gone', data: { id } }));
    },
    event(id, event) {
      const topic = `task:${id}`;
      if (peers.has(topic)) peers.publish(eventMessage(topic, event));
    },
    // Their numbers begin again: whoever listens has to read it anew.
    replaced: (id) => peers.publish({ topic: `task:${id}`, type: 'reset', seq: 0, data: null }),
  });
  const places = createPlaces(
    world,
    () => board.cards().map(({ shown, row }) => ({ shown, project: row.project })),
    () => (projectsDirty = true),
  );

  function sourceOf(topic: string): Source {
    if (topic === 'tasks') return rows;
    if (topic === 'projects') return projects;
    const [kind, id = ''] = topic.split(':');
    const card = board.card(id);
    if (card === undefined) throw new Refusal(404, 'request.topic', 'There is nothing of this name to listen to.');
    if (kind === 'network') return (attempts ??= createAttempts(world, start, peers)).source(card.id);
    if (kind !== 'task') throw new Refusal(404, 'request.topic', 'There is nothing of this name to listen to.');
    return {
      seq: () => card.tail.seq,
      since(after) {
        if (after > card.tail.seq || card.tail.seq - after > MAX_MISSED) return null;
        const { events } = readEventPage(card.entry.paths.events, { after, limit: 500, maxBytes: 2 ** 20 });
        // What is in the file and not yet told comes by itself.
        const told = events.filter(({ seq }) => seq <= card.tail.seq);
        return {
          messages: told.map((event) => eventMessage(topic, event)),
          more: told.length > 0 && told.at(-1)?.seq !== card.tail.seq,
        };
      },
    };
  }

  async function beat(): Promise<void> {
    await board.look('some');
    attempts?.look();
    if (projectsDirty && peers.has('projects') && now() - projectsToldMs >= PROJECTS_MS) await tellProjects();
    peers.catchUp();
  }

  async function tellProjects(): Promise<void> {
    projectsDirty = false;
    projectsToldMs = now();
    for (const project of await places.list()) {
      const text = JSON.stringify(project);
      if (shownProjects.get(project.id) === text) continue;
      shownProjects.set(project.id, text);
      peers.publish(projects.add({ topic: 'projects', type: 'project', data: project }));
    }
  }

  function wake(): void {
    if (closed || timer !== null || peers.size === 0) return;
    timer = setTimeout(() => {
      void beat()
        // A directory that cannot be read now is looked at again.
        .catch(() => undefined)
        .finally(() => {
          timer = null;
          wake();
        });
    }, BEAT_MS);
  }

  function ready(): Promise<void> {
    first ??= board.look('all').catch((error: unknown) => {
      first = null;
      throw error;
    });
    return first;
  }

  return {
    ready,
    board,
    places,
    async join(peer, topic, after) {
      // Whoever comes back right after a start asks for tasks that were not looked at yet.
      await ready();
      const id = topic.split(':')[1];
      if (id !== undefined && board.card(id) === undefined) await board.look('some');
      if (left.has(peer)) return;
      peers.subscribe(peer, topic, sourceOf(topic), after);
      wake();
    },
    part: (peer, topic) => peers.unsubscribe(peer, topic),
    leave(peer) {
      left.add(peer);
      peers.leave(peer);
    },
    seq: (topic) => (topic === 'tasks' ? rows : projects).seq(),
    close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      places.close();
    },
  };
}

/** As it is in the log, without the chain. */
export function apiEvent({ prev: _prev, ...event }: EventLine): ApiEvent {
  return event;
}

function eventMessage(topic: string, event: EventLine): LiveMessage {
  return { topic, type: 'event', seq: event.seq, data: apiEvent(event) };
}
