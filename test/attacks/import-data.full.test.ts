// test/attacks/import-data.full.test.ts: hostile data of services: at the export, where an agent commands the service that wrote it, and at
// the import, where anyone may have written it.
// needs: sandbox, python3
import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Caller, ONE } from '../harness.ts';
import { importAll, readParts, writeParts, type Parts } from '../transfer/parts.ts';
import { ODD_ENDS, ODD_KINDS, ODD_NAMES, ROOT, tar } from '../transfer/trees.ts';
import { createAgentMachine, type AgentMachine } from '../agent-run/place.ts';

const CALLER: Caller = ONE;
let machine: AgentMachine;
let sound: Parts;

/** A service that runs in its data directory whatever the agent tells it. */
const OBEDIENT =
  'import os, socket, subprocess\nserver = socket.create_server(("127.0.0.1", 4000))\nwhile True:\n guest, _ = server.accept()\n told = guest.makefile().readline()\n subprocess.run(["sh", "-c", told], cwd=os.environ["DATA"])\n guest.sendall(b"done\\n"); guest.close()';

function tell(command: string): string {
  return `run: python3 -c 'import socket; s = socket.create_connection(("evil", 4000)); s.sendall(b"${command}\\n"); print(s.makefile().readline())'`;
}

beforeAll(async () => {
  machine = createAgentMachine(CALLER, {
    'README.md': '#\n',
    'ags.yaml': `services: { evil: { run: ${JSON.stringify(['python3', '-c', OBEDIENT])}, ports: [4000] } }\n`,
  });
  await machine.runDemo(
    'work',
    `${tell('mkdir -p a/b; echo one > a/b/c; echo two > d; chmod 4755 d; mkfifo p; ln d e')} // write: a.txt one`,
  );
  const file = join(machine.home, 'sound.ags');
  const done = await machine.ags(['export', 'work', file, '--data']);
  expect(done, done.stderr).toMatchObject({ code: 0 });
  sound = readParts(file);
});
afterAll(() => machine[Symbol.dispose]());

const MEMBER = 'services/evil.tar.gz';

test('imported data is files and directories of the owner alone, without set-id bits, pipes and hard links', async () => {
  const listed = gunzipSync(sound.members[MEMBER] ?? Buffer.alloc(0));
  expect(listed.toString('latin1')).not.toContain('./p\0');
  const [outcome] = await importAll(machine, [await writeParts(machine, 'again.ags', sound)]);
  expect(outcome, outcome?.stack).toMatchObject({ name: 'work-2' });
  const data = join(machine.stateDir, 'tasks/work-2/services/tasks/evil/run/copy');
  expect(readdirSync(data).toSorted()).toEqual(['a', 'd', 'e']);
  const modes = ['', 'a', 'a/b', 'a/b/c', 'd', 'e'].map((path) => {
    const { mode, uid, nlink } = lstatSync(join(data, path));
    return [path, (mode & 0o7777).toString(8), uid === machine.uid, nlink > 1 && (mode & 0o40000) === 0];
  });
  expect(modes).toEqual([
    ['', '700', true, false],
    ['a', '700', true, false],
    ['a/b', '700', true, false],
    ['a/b/c', '600', true, false],
    ['d', '700', true, false],
    ['e', '700', true, false],
  ]);
  expect((await machine.ags(['rm', 'work-2', '-y'])).code).toBe(0);
});

/** Everything that an import could change. */
function state(): string {
  return execFileSync(
    'find',
    [machine.root, '-not', '-path', '*/.cache/*', '-not', '-name', '*.ags', '-printf', '%p %m %s\\n'],
    {
      encoding: 'utf8',
    },
  );
}

/** With matching sizes and counts, so that only the data itself is wrong. */
async function refused(cases: Readonly<Record<string, Buffer | { raw: Buffer } | { lie: unknown }>>): Promise<void> {
  const files = await Promise.all(
    Object.entries(cases).map(async ([name, wrong], i) => {
      const data = Buffer.isBuffer(wrong) ? gzipSync(wrong) : 'raw' in wrong ? wrong.raw : sound.members[MEMBER];
      const bytes = Buffer.isBuffer(wrong) ? contentBytes(wrong) : (sound.manifest.services?.[0]?.bytes ?? 0);
      const entries = Buffer.isBuffer(wrong) ? countHeaders(wrong) : (sound.manifest.services?.[0]?.entries ?? 0);
      const service = { name: 'evil', kind: 'command', version: null, bytes, entries };
      const told = 'lie' in wrong ? (wrong.lie as object) : { services: [service] };
      const members = { ...sound.members, [MEMBER]: data ?? Buffer.alloc(0) };
      return writeParts(machine, `bad-${i}-${name.replaceAll(/\W+/g, '-')}.ags`, { ...sound, members }, (manifest) => ({
        ...manifest,
        ...told,
      }));
    }),
  );
  const before = state();
  for (const { file, code, stack, message } of await importAll(machine, files)) {
    expect(code, `${file} ${stack ?? 'was imported'}`).toBe('import.refused');
    // oxlint-disable-next-line no-control-regex
    expect(message).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
  }
  expect(state()).toBe(before);
}

function headersOf(archive: Buffer): number[] {
  const sizes: number[] = [];
  for (let at = 0; at + 512 <= archive.length && archive[at] !== 0;) {
    const bytes = Number.parseInt(archive.toString('latin1', at + 124, at + 135), 8) || 0;
    sizes.push(bytes);
    at += 512 + Math.ceil(bytes / 512) * 512;
  }
  return sizes;
}
const countHeaders = (archive: Buffer): number => headersOf(archive).length;
const contentBytes = (archive: Buffer): number => headersOf(archive).reduce((a, b) => a + b, 0);

test('data with links, devices, owners, set-id bits or extensions is refused', async () => {
  await refused(ODD_KINDS);
  expect(existsSync('/tmp/ags-was-here')).toBe(false);
});

test('data with names that lead elsewhere or come twice is refused', async () => {
  await refused(ODD_NAMES);
});

test('data that is longer, shorter or endless, and bombs, are refused', async () => {
  const whole = tar([ROOT, { name: './a', content: Buffer.from('one') }]);
  await refused({
    ...ODD_ENDS,
    'not packed': { raw: whole },
    'cut off': { raw: gzipSync(whole).subarray(0, 60) },
    'a bomb': { raw: gzipSync(tar([ROOT, { name: './a', content: Buffer.alloc(300_000_000) }])) },
    'larger than can be': { raw: gzipSync(tar([ROOT, { bytes: 8 ** 11 - 1 }])) },
    empty: { raw: gzipSync(Buffer.alloc(0)) },
  });
});

test('a false list of data is refused', async () => {
  const [one] = sound.manifest.services ?? [];
  await refused({
    none: { lie: { services: undefined } },
    'format 1': { lie: { format: 1 } },
    'format 1 without': { lie: { format: 1, services: undefined } },
    'format 3': { lie: { format: 3 } },
    twice: { lie: { services: [one, one] } },
    another: { lie: { services: [{ ...one, name: 'other' }] } },
    'and another': { lie: { services: [one, { ...one, name: 'other' }] } },
    'a path': { lie: { services: [{ ...one, name: '../evil' }] } },
    'fewer files': { lie: { services: [{ ...one, entries: 2 }] } },
    'more files': { lie: { services: [{ ...one, entries: 99 }] } },
    'fewer bytes': { lie: { services: [{ ...one, bytes: 1 }] } },
    'more than can be': { lie: { services: [{ ...one, bytes: 2 ** 50 }] } },
    'a version that is a text': { lie: { services: [{ ...one, version: '\x1b[2J' }] } },
    'something else': { lie: { services: [{ ...one, path: '/etc' }] } },
  });
  const strange = { ...sound.members, 'services/../evil.tar.gz': sound.members[MEMBER] ?? Buffer.alloc(0) };
  const [outcome] = await importAll(machine, [
    await writeParts(machine, 'strange.ags', { ...sound, members: strange }),
  ]);
  expect(outcome).toMatchObject({ code: 'import.refused' });
});

test('services whose data is too large together are refused', async () => {
  const [one] = sound.manifest.services ?? [];
  const members = { ...sound.members, 'services/more.tar.gz': sound.members[MEMBER] ?? Buffer.alloc(0) };
  const files = await Promise.all(
    [{ bytes: 3 * 2 ** 30 }, { entries: 60_000 }].map((much, i) =>
      writeParts(machine, `much-${i}.ags`, { ...sound, members }, (manifest) => ({
        ...manifest,
        services: ['evil', 'more'].map((name) => ({ ...one, ...much, name })),
      })),
    ),
  );
  const before = state();
  for (const { file, code, message } of await importAll(machine, files)) {
    expect([file, code]).toEqual([file, 'import.refused']);
    // Refused before anything was written.
    expect(message).toContain('together is more than');
  }
  expect(state()).toBe(before);
});

test('a service cannot have files of the machine exported, nor make an export that never ends', async () => {
  const before = readdirSync(machine.home);
  const secret = join(mkdtempSync('/tmp/ags-secret-'), 'secret');
  writeFileSync(secret, 'of the user\n');
  for (const [i, [what, why]] of (
    [
      [`rm -rf *; ln -s ${secret} leak`, './leak is a link'],
      ['rm -rf *; ln -s / away', './away is a link'],
      ['rm -rf *; truncate -s 6G big', 'larger than'],
      ['rm -rf *; mkdir shut; chmod 0 shut', 'Permission denied'],
      ['rm -rf shut; touch a$(printf \\\\\\\\033)b', 'it contains an invalid name'],
    ] as const
  ).entries()) {
    await machine.ags(['send', 'work', tell(what)]);
    await machine.event('work', 'turn.ended', (event) => event['turn'] === i + 2);
    await machine.until('work', ['ready', 'failed', 'no-changes']);
    const done = await machine.ags(['export', 'work', join(machine.home, 'leak.ags'), '--data']);
    expect(done, what).toMatchObject({ code: 1, stdout: '' });
    expect(done.stderr).toContain('The data of evil cannot be exported');
    expect(done.stderr).toContain(why);
    // oxlint-disable-next-line no-control-regex
    expect(done.stderr).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
  }
  rmSync(join(secret, '..'), { recursive: true });
  expect(readdirSync(machine.home)).toEqual(before);
});
