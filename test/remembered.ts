// test/remembered.ts: what ags remembers about a machine in a user's cache, handed on from one test to the next: it is the same machine.
// Whether a sandbox works here is found out by starting several, once per user, boot, backend, file system and build; and code that is
// compiled already starts sooner. ags itself sees from names and contents what they hold for, and takes nothing else.
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

const DIST = fileURLToPath(new URL('../dist/', import.meta.url));
/** The file that asks whether a sandbox works, in the command and where a test runs the modules that it is made of. */
const ASKS = { command: 'bundle/hot.cjs', modules: 'run/readiness.js' } as const;
export type Asker = keyof typeof ASKS;

const known = new Map<string, number>();

/** Made for one run of vitest, and removed with it: see `globalSetup` in vitest.config.ts. */
export default function setUp(): () => void {
  const shared = mkdtempSync(join(tmpdir(), 'ags-remembered-'));
  process.env['AGS_TEST_REMEMBERED'] = shared;
  return () => rmSync(shared, { recursive: true, force: true });
}

/** Gives a home in which nothing is remembered yet what others have found out. Whether there was anything. */
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

/** Keeps what has been found out in this home, if nobody has found out as much before. */
export function learn(home: string, uid: number): void {
  const cache = join(home, '.cache/ags');
  if (!existsSync(cache)) return;
  for (const name of readdirSync(cache).filter(isRemembered)) {
    const of = name.startsWith('code-') ? 'code' : askerOf(readFileSync(join(cache, name), 'utf8'));
    if (of === undefined) continue;
    const dir = join(placeOf(home, uid), of);
    const kept = join(dir, name);
    // There is more in it when more of the command has run.
    const { size } = statSync(join(cache, name));
    if (size <= (known.get(kept) ?? 0)) continue;
    known.set(kept, size);
    if (size <= (statSync(kept, { throwIfNoEntry: false })?.size ?? 0)) continue;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    // In one step: others read it at any time.
    copyFileSync(join(cache, name), `${kept}.${process.pid}`);
    renameSync(`${kept}.${process.pid}`, kept);
  }
}

const isRemembered = (name: string): boolean => /^(?:ready(?:-\w+)?\.json|code-.*\.bin)$/.test(name);

function placeOf(home: string, uid: number): string {
  return join(process.env['AGS_TEST_REMEMBERED'] ?? '/nonexistent', `${uid}-${statSync(home).dev}`);
}

/** Of which build it is, by its time. */
function askerOf(text: string): Asker | undefined {
  return (['command', 'modules'] as const).find((one) => text.includes(`,${statSync(join(DIST, ASKS[one])).mtimeMs},`));
}
