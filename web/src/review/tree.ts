// web/src/review/tree.ts: the changed files as a tree, grouped by risk: files that run on the user's machine come first. Pure.
import type { ApiFile } from '../../../src/protocol/api/review.ts';

export type TreeRow = {
  readonly key: string;
  readonly level: number;
  readonly name: string;
  readonly at: number;
  readonly of: number;
} & (
  | { readonly kind: 'lane' | 'folder'; readonly files: readonly ApiFile[]; readonly open: boolean }
  | { readonly kind: 'file'; readonly file: ApiFile }
);

type Lane = ApiFile['lane'];
const LANES: readonly Lane[] = ['host', 'ci', 'inert'];
export const LANE_NAMES: Readonly<Record<Lane, string>> = {
  host: 'Runs on your machine',
  ci: 'Runs in CI or with credentials',
  inert: 'Other files',
};

interface Folder {
  readonly folders: Map<string, Folder>;
  readonly files: ApiFile[];
}

/** In the order of the fully expanded tree. */
export function inOrder(files: readonly ApiFile[]): ApiFile[] {
  return LANES.flatMap((lane) => allOf(treeOf(files.filter((file) => file.lane === lane))));
}

export function treeRows(files: readonly ApiFile[], closed: ReadonlySet<string>): TreeRow[] {
  const lanes = LANES.map((lane) => ({ lane, files: files.filter((file) => file.lane === lane) })).filter(
    (one) => one.files.length > 0,
  );
  // Harmless files alone need no group heading.
  if (lanes.every(({ lane }) => lane === 'inert')) return rowsOf(treeOf(files), '', 1, closed);
  return lanes.flatMap(({ lane, files: its }, i): TreeRow[] => {
    const root = treeOf(its);
    const row = { kind: 'lane', key: lane, level: 1, name: LANE_NAMES[lane], at: i + 1, of: lanes.length } as const;
    const open = !closed.has(lane);
    return [{ ...row, files: allOf(root), open }, ...(open ? rowsOf(root, `${lane}:`, 2, closed) : [])];
  });
}

function treeOf(files: readonly ApiFile[]): Folder {
  const root: Folder = { folders: new Map(), files: [] };
  for (const file of files) {
    let folder = root;
    for (const name of file.path.split('/').slice(0, -1)) {
      let next = folder.folders.get(name);
      if (next === undefined) folder.folders.set(name, (next = { folders: new Map(), files: [] }));
      folder = next;
    }
    folder.files.push(file);
  }
  return root;
}

const sorted = ({ folders }: Folder): [string, Folder][] =>
  [...folders].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));

function allOf(folder: Folder): ApiFile[] {
  return [...sorted(folder).flatMap(([, below]) => allOf(below)), ...folder.files];
}

function rowsOf(folder: Folder, prefix: string, level: number, closed: ReadonlySet<string>): TreeRow[] {
  const of = folder.folders.size + folder.files.length;
  const folders = sorted(folder).flatMap(([name, below], i): TreeRow[] => {
    // A folder that contains only one folder shares a row with it.
    let [path, inner] = [name, below];
    for (let only = sorted(inner)[0]; only !== undefined; only = sorted(inner)[0]) {
      if (inner.files.length > 0 || inner.folders.size > 1) break;
      [path, inner] = [`${path}/${only[0]}`, only[1]];
    }
    const key = `${prefix}${path}/`;
    const open = !closed.has(key);
    return [
      { kind: 'folder', key, level, name: path, files: allOf(inner), open, at: i + 1, of },
      ...(open ? rowsOf(inner, key, level + 1, closed) : []),
    ];
  });
  const files = folder.files.map((file, i): TreeRow => ({
    kind: 'file',
    key: `file:${file.n}`,
    level,
    name: file.path.slice(file.path.lastIndexOf('/') + 1),
    file,
    at: folder.folders.size + i + 1,
    of,
  }));
  return [...folders, ...files];
}
