// review/order.ts: in what order accepted changes are made.
// Invariant: a deletion that makes room for a file or a directory of the same name comes before it, and the old name of a
// renamed file goes after the new one is there. Where both cannot hold, as for a file that was moved into a directory of
// its own name, room is made first: whoever makes the changes must then take that deletion back if the new name fails.
// Other files come before other deletions, so that a disk that fills up has cost nothing.
import type { ApplyOp } from './apply.ts';

interface Ordered {
  readonly op: ApplyOp;
  readonly requires?: string;
}

// No recursion: names are the agent's, and a chain of renames can be as long as the list.
export function inOrder<T extends Ordered>(changes: readonly T[]): T[] {
  const waits = findWaits(changes);
  const roomMakers = changes.filter((change) => change.op.kind === 'delete' && waits.followers.has(change));
  const order = new Set<T>();
  const ready = queue(changes.filter((change) => change.op.kind !== 'delete' && !waits.count.has(change)));
  const readyRoom = queue(roomMakers.filter((change) => !waits.count.has(change)));
  const stuck = queue(roomMakers);
  const following = (): T | undefined => ready.next() ?? readyRoom.next() ?? stuck.next();
  for (let next = following(); next; next = following()) {
    if (order.has(next)) continue;
    order.add(next);
    for (const follower of waits.followers.get(next) ?? []) {
      const left = (waits.count.get(follower) ?? 0) - 1;
      waits.count.set(follower, left);
      if (left === 0 && follower.op.kind !== 'delete') ready.add(follower);
      else if (left === 0 && waits.followers.has(follower)) readyRoom.add(follower);
    }
  }
  return [...order, ...changes.filter((change) => !order.has(change))];
}

function queue<T>(items: T[]): { next(): T | undefined; add(item: T): void } {
  let at = 0;
  return {
    next: () => (at < items.length ? items[at++] : undefined),
    add: (item) => void items.push(item),
  };
}

/** "a" and "a/b" for "a/b/c". */
export function ancestors(path: string): string[] {
  const names = path.split('/');
  return names.slice(1).map((_, index) => names.slice(0, index + 1).join('/'));
}

interface Waits<T> {
  /** For how many others a change waits. */
  readonly count: Map<T, number>;
  readonly followers: Map<T, T[]>;
}

function findWaits<T extends Ordered>(changes: readonly T[]): Waits<T> {
  const found: Waits<T> = { count: new Map(), followers: new Map() };
  const wait = (later: T, earlier: T | undefined): void => {
    if (earlier === undefined) return;
    found.count.set(later, (found.count.get(later) ?? 0) + 1);
    const followers = found.followers.get(earlier);
    if (followers === undefined) found.followers.set(earlier, [later]);
    else followers.push(later);
  };
  const written = new Map<string, T>();
  const deleted = new Map<string, T>();
  for (const change of changes) (change.op.kind === 'delete' ? deleted : written).set(change.op.path, change);
  for (const change of written.values())
    for (const above of ancestors(change.op.path)) wait(change, deleted.get(above));
  for (const change of deleted.values()) {
    for (const above of ancestors(change.op.path)) {
      const file = written.get(above);
      if (file !== undefined) wait(file, change);
    }
    if (change.requires !== undefined) wait(change, written.get(change.requires));
  }
  return found;
}
