// review/order.ts: sorts accepted changes into the order in which they are made.
// Invariant: a deletion that makes room for a file or a directory of the same name comes first, and the old name of a
// renamed file is deleted after the new one exists. If both cannot hold, as for a file that moved into a directory of its
// own name, the deletion comes first, and the caller must undo it if writing the new name fails.
// Other files come before other deletions, so that a full disk loses nothing.
import type { ApplyOp } from './apply.ts';

interface Ordered {
  readonly op: ApplyOp;
  readonly requires?: string;
}

// No recursion: an agent chooses the names, and a chain of renames can be as long as the list.
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
  /** The number of other changes that a change waits for. */
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
