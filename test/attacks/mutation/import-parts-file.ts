// test/attacks/mutation/import-parts-file.ts: attempts against the parts that read an exported task: its archive, manifest, members,
// trees and events. See parts.ts.
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { MemberName } from '../../../src/protocol/export.ts';
import type * as ImportRead from '../../../src/transfer/import-read.ts';
import { createArchive } from '../../../src/lib/archive.ts';
import { tarHeader } from '../../../src/lib/tar-header.ts';
import { BOUND_LIES, MANIFEST_LIES } from '../../transfer/lies.ts';
import { writeBytes, writeParts, type Parts } from '../../transfer/parts.ts';
import { AT, soundManifest, soundParts, SOUND_DECISION as DECISION, SOUND_EVENT } from '../../transfer/sound.ts';
import { ODD_ENDS, ODD_KINDS, ODD_NAMES, ROOT, tar } from '../../transfer/trees.ts';
import { allowed, type PartAttempt } from './parts.ts';

/** Everything but a refusal with its own code: what is accepted, and what ends in an internal error. */
export async function notRefused(what: string, act: () => unknown): Promise<string[]> {
  try {
    await act();
    return [what];
  } catch (error) {
    const { code = '' } = error as { code?: string };
    return /^(import\.refused|usage\.invalid|project\.unsuitable)$/.test(code) ? [] : [`${what}: ${String(error)}`];
  }
}

export async function all(attempts: readonly Promise<string[]>[]): Promise<string[]> {
  return (await Promise.all(attempts)).flat();
}

const block = (name: string, bytes = 0): Buffer =>
  tarHeader({ name, bytes, mode: 0o600, kind: 'file', prefix: '', devices: '' });
const END = Buffer.alloc(1024);
/** A changed header with the matching checksum. */
function changed(change: (header: Buffer) => void): Buffer {
  const header = block('a');
  change(header);
  const sum = header.fill(0x20, 148, 156).reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return header;
}

const HOSTILE_ARCHIVES: Readonly<Record<string, Buffer>> = {
  'another name': Buffer.concat([block('../b'), END]),
  twice: Buffer.concat([block('a'), block('a'), END]),
  'a link': Buffer.concat([changed((header) => header.write('2/etc/passwd', 156, 'latin1')), END]),
  'a device': Buffer.concat([changed((header) => header.write('3', 156, 'latin1')), END]),
  'a place before the name': Buffer.concat([changed((header) => header.write('../..', 345, 'latin1')), END]),
  'a set-user-id bit': Buffer.concat([changed((header) => header.write('0004755', 100, 'latin1')), END]),
  'a size below nothing': Buffer.concat([changed((header) => header.write('-0000000001', 124, 'latin1')), END]),
  'no end': block('a'),
  'less than it says': Buffer.concat([block('a', 5000), Buffer.alloc(512)]),
  'half an end': Buffer.concat([block('a'), Buffer.alloc(512), Buffer.alloc(512, 'x')]),
  'something after it': Buffer.concat([block('a'), END, block('a')]),
};

const archive: PartAttempt = async (use, dir) => {
  const { listArchive } = await use(() => import('../../../src/lib/archive.ts'));
  const accepted = (bytes: Buffer): boolean => {
    const fd = openSync(writeBytes({ home: dir, uid: process.getuid?.() ?? 0 }, 'x.ags', bytes), 'r');
    try {
      return !('problem' in listArchive(fd, (name) => name === 'a'));
    } finally {
      closeSync(fd);
    }
  };
  if (!accepted(Buffer.concat([block('a', 3), Buffer.alloc(512, 'abc', 'latin1').fill(0, 3), END])))
    throw new Error('a sound archive is not accepted');
  return Object.entries(HOSTILE_ARCHIVES).flatMap(([what, bytes]) => (accepted(bytes) ? [what] : []));
};

/** Archives that only the code that unpacks them can refuse, one name after the other. */
export const BY_THE_WRITER = ['name 14', 'twice', 'a directory twice', 'the root twice', 'below a file'];
const HOSTILE_TREES = Object.entries({ ...ODD_KINDS, ...ODD_NAMES, ...ODD_ENDS });

const trees: PartAttempt = async (use) => {
  const { readTree } = await use(() => import('../../../src/lib/tree-archive.ts'));
  const read = (bytes: Buffer, limits = { bytes: 1000, entries: 100 }): unknown => {
    const reader = readTree(limits, { entry: () => undefined, content: () => undefined });
    reader.push(bytes);
    return reader.end();
  };
  const sound = tar([ROOT, { name: './a', content: Buffer.from('one') }, { name: './b' }]);
  read(sound);
  return all([
    ...HOSTILE_TREES.filter(([what]) => !BY_THE_WRITER.includes(what)).map(([what, bytes]) =>
      allowed(what, () => read(bytes)),
    ),
    allowed('more than so many bytes', () => read(sound, { bytes: 2, entries: 100 })),
    allowed('more than so many files', () => read(sound, { bytes: 1000, entries: 2 })),
  ]);
};

/** Lies that the schema cannot see, because they depend on other members or earlier values. */
const KNOWN_LATER =
  /^(size|hash|hash of the work|a member less|a member twice|another format|an agent that nobody knows|a command beside an agent|no command|a rule|a grant|a limit|(root|base|commit) (0|a{64}).*)$/;

const schema: PartAttempt = async (use) => {
  const { ExportManifest } = await use(() => import('../../../src/protocol/export.ts'));
  const manifest = {
    ...soundManifest(),
    members: [{ name: 'work.pack' as MemberName, bytes: 1, sha256: 'a'.repeat(64) }],
  };
  ExportManifest.parse(manifest);
  return Object.entries({ ...MANIFEST_LIES, ...BOUND_LIES })
    .filter(([what]) => !KNOWN_LATER.test(what))
    .flatMap(([what, lie]) => (ExportManifest.safeParse(lie(manifest)).success ? [what] : []));
};

const decisions: PartAttempt = async (use) => {
  const { CarriedDecision } = await use(() => import('../../../src/protocol/export.ts'));
  const more = CarriedDecision.parse({ ...DECISION, run: 'other', program: 'x' });
  const LIES: readonly object[] = [
    { at: 'now' },
    { by: 'magic' },
    { host: 'x'.repeat(501) },
    { port: -1 },
    { port: 65_536 },
    { method: 'x'.repeat(21) },
    { verdict: 'praised' },
    { unknown: false },
    { address: 'x'.repeat(101) },
    { bytesOut: -1 },
    { ms: -1 },
    { ms: 1e300 },
  ];
  return [
    ...LIES.filter((lie) => CarriedDecision.safeParse({ ...DECISION, ...lie }).success).map((lie) =>
      JSON.stringify(lie),
    ),
    ...('run' in more ? ['an unknown field'] : []),
  ];
};

const DECIDED = {
  type: 'hook.decided',
  at: AT,
  point: 'x',
  hook: 'x',
  tool: 'x',
  verdict: 'allowed',
  reason: null,
  ms: 1,
  mode: 'enforced',
};
const HOSTILE_EVENTS: readonly unknown[] = [
  { ...SOUND_EVENT, at: undefined },
  { ...SOUND_EVENT, at: '+275760-09-13' },
  { ...SOUND_EVENT, text: 5 },
  { ...SOUND_EVENT, text: 'x'.repeat(200_001) },
  { type: '__proto__', at: AT },
  { type: 'constructor', at: AT },
  { type: 'task.removed', at: AT },
  { type: 'tool.started', at: AT, id: 'x', tool: 'x', action: null },
  { type: 'tool.started', at: AT, id: 'x', tool: 'x', action: { kind: 'command', command: [] } },
  { type: 'tool.started', at: AT, id: 'x', tool: 'x', action: { kind: 'write', path: 'x', change: 'burn' } },
  { type: 'agent.asked', at: AT, question: 'x', choices: Array.from({ length: 101 }, () => 'x') },
  { type: 'changes.captured', at: AT, branch: 'x', commit: 'x'.repeat(65), files: 1, added: 1, removed: 1 },
  { type: 'network.denied', at: AT, host: {}, port: 'x', reason: [] },
  { type: 'agent.printed', at: AT, stream: 'printer', text: 'x' },
  { type: 'agent.finished', at: AT, ok: true, cause: 'boredom' },
  { type: 'tool.finished', at: AT, id: 'x', outcome: 'praised' },
  { ...DECIDED, verdict: 'praised' },
  { ...DECIDED, mode: 'ignored' },
  'text',
  null,
  [],
];

const events: PartAttempt = async (use) => {
  const { readCarriedEvent } = await use(() => import('../../../src/protocol/carried-event.ts'));
  const read = readCarriedEvent({ ...SOUND_EVENT, seq: 99, task: 'other' });
  const inner = readCarriedEvent({
    type: 'tool.started',
    at: AT,
    id: 'x',
    tool: 'x',
    action: { kind: 'command', command: 'x', more: 1 },
  });
  if (read === null || inner === null) throw new Error('a sound event is not read');
  return [
    ...HOSTILE_EVENTS.filter((event) => readCarriedEvent(event) !== null).map((event) =>
      JSON.stringify(event).slice(0, 100),
    ),
    ...(JSON.stringify([read, inner]).includes('seq') || 'more' in ((inner as { action?: object }).action ?? {})
      ? ['another field']
      : []),
  ];
};

/** Reads everything in a file. */
async function readAll(openExport: typeof ImportRead.openExport, path: string): Promise<void> {
  using file = await openExport(path);
  for (const { name } of file.manifest.members)
    await file.take(name, async (content) => {
      for await (const _chunk of content) continue;
    });
  for (const name of ['events.jsonl.gz', 'network.jsonl.gz'] as const) await file.lines(name, 1000, () => undefined);
  if (file.has('services/db.tar.gz')) await file.unpack('services/db.tar.gz', 1000, () => undefined);
}

const SERVICE = { name: 'db', kind: 'postgres', version: null, bytes: 3, entries: 2 };
const withData = (): Parts => {
  const { manifest, members } = soundParts();
  return {
    manifest: { ...manifest, format: 2, services: [SERVICE] },
    members: { ...members, 'services/db.tar.gz': gzipSync('data') },
  };
};
const without = ({ manifest, members }: Parts, name: string): Parts => ({
  manifest,
  members: Object.fromEntries(Object.entries(members).filter(([one]) => one !== name)),
});
const withMember = ({ manifest, members }: Parts, name: string, content: Buffer): Parts => ({
  manifest,
  members: { ...members, [name]: content },
});
type Told = Record<string, unknown>;
const work = (more: object) => (told: Told) => ({ ...told, work: { ...(told['work'] as object), ...more } });

/** Each file, with a change of its manifest. */
const HOSTILE_FILES: Readonly<Record<string, readonly [Parts, ((told: Told) => unknown)?]>> = {
  ...Object.fromEntries(
    ['size', 'hash of the work', 'a member less', 'a member twice', 'another format'].map((what) => [
      what,
      [soundParts(), (told: Told) => MANIFEST_LIES[what]?.(told as never)] as const,
    ]),
  ),
  'a right': [soundParts(), (told) => ({ ...told, mounts: ['/'] })],
  'no events': [without(soundParts(), 'events.jsonl.gz')],
  'no decisions': [without(soundParts(), 'network.jsonl.gz')],
  'no work': [without(soundParts(), 'work.pack')],
  'work that is none': [soundParts(), work({ commit: soundManifest().work.root })],
  'ids of several kinds': [soundParts(), work({ root: '1'.repeat(64), base: '1'.repeat(64) })],
  'data that is not listed': [withData(), (told) => ({ ...told, services: [] })],
  'data that is not there': [without(withData(), 'services/db.tar.gz')],
  'data of an old file': [withData(), (told) => ({ ...told, format: 1 })],
  'no list of data': [soundParts(), (told) => ({ ...told, format: 2 })],
  'what is not packed': [withMember(soundParts(), 'events.jsonl.gz', Buffer.from('not packed'))],
  'what is packed by half': [withMember(soundParts(), 'events.jsonl.gz', gzipSync('x\n'.repeat(100)).subarray(0, 20))],
  'a bomb of lines': [withMember(soundParts(), 'events.jsonl.gz', gzipSync(Buffer.alloc(10_000)))],
  'a bomb of data': [withMember(withData(), 'services/db.tar.gz', gzipSync(Buffer.alloc(10_000)))],
};

const file: PartAttempt = async (use, dir) => {
  const { openExport } = await use(() => import('../../../src/transfer/import-read.ts'));
  const home = { home: dir, uid: process.getuid?.() ?? 0 };
  await readAll(openExport, await writeParts(home, 'sound.ags', withData()));
  // The directory needs many entries: its size must not be too small for an archive.
  for (let i = 0; i < 100; i++) mkdirSync(join(dir, `directory/${i}`), { recursive: true });
  const empty = openSync(join(dir, 'nothing.ags'), 'w');
  createArchive(empty).end();
  closeSync(empty);
  const files = Object.entries(HOSTILE_FILES).map(async ([what, [parts, lie]], i) =>
    notRefused(what, async () => readAll(openExport, await writeParts(home, `${i}.ags`, parts, lie))),
  );
  return all([
    ...files,
    ...['directory', 'nothing.ags'].map((name) => notRefused(name, () => readAll(openExport, join(dir, name)))),
  ]);
};

const longWords: PartAttempt = async (use, dir) => {
  const { openExport } = await use(() => import('../../../src/transfer/import-read.ts'));
  const home = { home: dir, uid: process.getuid?.() ?? 0 };
  const [long, wide] = [soundParts(), soundParts()];
  Object.assign(long.manifest.task, { agent: 'command', command: Array.from({ length: 17 }, () => 'x'.repeat(1e6)) });
  wide.members['events.jsonl.gz'] = gzipSync(Buffer.alloc(17 * 2 ** 20, 'x'), { level: 1 });
  const longest: number[] = [];
  using file = await openExport(await writeParts(home, 'wide.ags', wide));
  await file.lines('events.jsonl.gz', 2 ** 25, (line) => void longest.push(line.length));
  const path = await writeParts(home, 'long.ags', long);
  return [
    ...(await notRefused('a manifest without an end', () => readAll(openExport, path))),
    ...(Math.max(...longest) > 2 ** 24 ? ['a line without an end'] : []),
  ];
};

export const IMPORT_FILE_PARTS = {
  archive,
  trees,
  schema,
  decisions,
  events,
  file,
  'long words': longWords,
} as const satisfies Record<string, PartAttempt>;
