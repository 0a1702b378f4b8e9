// test/remembered.ts: shares what ags remembers about this machine between the caches of tests. Whether a sandbox works takes several starts to
// find out, once per user, boot, backend, file system and build; and cached code starts sooner. ags itself verifies what each entry applies to.
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureBuild } from '../scripts/setup.mjs';

const DIST = fileURLToPath(new URL('../dist/', import.meta.url));
/** The file that asks whether a sandbox works: in the command, and in tests that run its modules. */
const ASKS = { command: 'bundle/hot.cjs', modules: 'run/readiness.js' } as const;
export type Asker = keyof typeof ASKS;

const known = new Map<string, number>();

/**
 * Creates the cache for one run of vitest and removes it afterwards: see `globalSetup` in vitest.config.ts. Most tests run dist/, so a
 * vitest that was started by hand builds it first.
 */
export default async function setUp(): Promise<() => void> {
  await ensureBuild(false);
  const shared = mkdtempSync(join(tmpdir(), 'ags-remembered-'));
  process.env['AGS_TEST_REMEMBERED'] = shared;
  return () => rmSync(shared, { recursive: true, force: true });
}

/** Copies shared entries into a new home. Returns whether there were any. */
export function teach(home: string, uid: number, asker: Asker): boolean {
  const place = placeOf(home, uid);
  if (existsSync(join(home, '.cache'))) return false;
  const cache = join(home, '.cache/ags');
  const taught = [join(place, 'code'), join(place, asker)].filter((dir) => existsSync(dir));
  if (taught.length === 0) return false;
  mkdirSync(cache, { recursive: true, mode: 0o700 });
  for (const dir of taught)
    for (const name of readdirSync(dir)) if (isRemembered(name)) copyFileSync(join(dir, name), join(cache, name));
  return true;
}

/** Shares this home's entries unless better ones exist. */
export function learn(home: string, uid: number): void {
  const cache = join(home, '.cache/ags');
  if (!existsSync(cache)) return;
  for (const name of readdirSync(cache).filter(isRemembered)) {
    const of = name.startsWith('code-') ? 'code' : askerOf(readFileSync(join(cache, name), 'utf8'));
    if (of === undefined) continue;
    const dir = join(placeOf(home, uid), of);
    const kept = join(dir, name);
    // A larger file has compiled code of more of the command.
    const { size } = statSync(join(cache, name));
    if (size <= (known.get(kept) ?? 0)) continue;
    known.set(kept, size);
    if (size <= (statSync(kept, { throwIfNoEntry: false })?.size ?? 0)) continue;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    // Renamed in one step, because others read it at any time.
    copyFileSync(join(cache, name), `${kept}.${process.pid}`);
    renameSync(`${kept}.${process.pid}`, kept);
  }
}

const isRemembered = (name: string): boolean => /^(?:ready(?:-\w+)?\.json|code-.*\.bin)$/.test(name);

function placeOf(home: string, uid: number): string {
  return join(process.env['AGS_TEST_REMEMBERED'] ?? '/nonexistent', `${uid}-${statSync(home).dev}`);
}

/** The build it belongs to, by its time. */
function askerOf(text: string): Asker | undefined {
  return (['command', 'modules'] as const).find((one) => text.includes(`,${statSync(join(DIST, ASKS[one])).mtimeMs},`));
}
