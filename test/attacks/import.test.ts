// test/attacks/import.test.ts: exported tasks that an attacker made. Each is refused with a reason and leaves nothing behind, or is imported
// without what the attacker wanted.
// needs: sandbox
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ExportManifest } from '../../src/protocol/export.ts';
import { type Caller, giveTo, ONE } from '../harness.ts';
import { blob, makePack, objectId, tree, type PackFlaws, type PackObject } from '../git/hostile-pack.ts';
import { MANIFEST_LIES } from '../transfer/lies.ts';
import { importAll, readParts, writeBytes, writeParts, type Outcome, type Parts } from '../transfer/parts.ts';
import { commitOn } from '../transfer/sound.ts';
import { createAgentMachine, type AgentMachine } from '../agent-run/place.ts';

const CALLER: Caller = ONE;
let machine: AgentMachine;
let sound: Buffer;
const file = (): string => join(machine.home, 'sound.ags');
const parts = (): Parts => readParts(file());

beforeAll(async () => {
  machine = createAgentMachine(CALLER);
  await machine.runDemo(
    'work',
    'write: a.txt one // commit: Own commit // write: b.txt two // fetch: https://no.example/',
  );
  const done = await machine.ags(['export', 'work', file()]);
  expect(done, done.stderr).toMatchObject({ code: 0 });
  sound = readFileSync(file());
});
afterAll(() => machine[Symbol.dispose]());

/** Everything that an import could change. */
function state(): unknown {
  return {
    // No other user may look into the overlay's work directory, which belongs to the kernel.
    files: execFileSync(
      'find',
      [
        machine.root,
        '-path',
        '*/work/work',
        '-prune',
        '-o',
        '-not',
        '-path',
        '*/objects/*',
        '-not',
        '-path',
        '*/.cache/*',
        '-print',
      ],
      { encoding: 'utf8' },
    )
      .split('\n')
      .filter((path) => !path.endsWith('.ags') && !path.endsWith('/.git/objects'))
      .toSorted(),
    refs: machine.git('for-each-ref'),
    status: machine.git('status', '--porcelain'),
  };
}

/** Imports the files: each must be refused, in words that a person can read, and must change nothing. */
async function refused(files: readonly string[], into?: string): Promise<Outcome[]> {
  const before = state();
  const outcomes = await importAll(machine, files, into);
  for (const { file: path, code, message = '', stack } of outcomes) {
    expect(code, `${path} ${stack ?? 'was imported'}`).not.toBe(undefined);
    expect(code, `${path} ${stack}`).toMatch(/^(import\.refused|usage\.invalid)$/);
    // oxlint-disable-next-line no-control-regex
    expect(message).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
  }
  expect(outcomes).toHaveLength(files.length);
  expect(state()).toEqual(before);
  return outcomes;
}

test('the sound file that all others are made from is imported', async () => {
  const [outcome] = await importAll(machine, [await writeParts(machine, 'again.ags', parts())]);
  expect(outcome).toMatchObject({ name: 'work-2' });
  expect((await machine.ags(['rm', 'work-2', '-y'])).code).toBe(0);
});

describe('the archive', () => {
  const header = (change: (bytes: Buffer) => void): Buffer => {
    const bytes = Buffer.from(sound);
    change(bytes);
    const sum = bytes
      .fill(0x20, 148, 156)
      .subarray(0, 512)
      .reduce((total, byte) => total + byte, 0);
    bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
    return bytes;
  };
  const named = (name: string): Buffer => header((bytes) => bytes.fill(0, 0, 100).write(name, 'latin1'));
  const typed = (type: string, link = ''): Buffer =>
    header((bytes) => {
      bytes.write(type, 156, 'latin1');
      bytes.write(link, 157, 'latin1');
    });

  test('a member with another name, path, type or owner is refused', async () => {
    const odd = [
      ...['../../x', '/etc/x', './base.pack', 'base.pack/', 'services/db.tar', '', 'BASE.PACK'].map(named),
      ...['1', '2', '3', '4', '5', '6', '7', 'x', 'g', 'L', 'K', 'S', '\0'].map((type) => typed(type, '/etc/passwd')),
      header((bytes) => bytes.write('../../', 345, 'latin1')),
      header((bytes) => bytes.write('0004755\0', 100, 'latin1')),
      header((bytes) => bytes.write('7'.repeat(11), 124, 'latin1')),
      header((bytes) => bytes.write('-0000000001', 124, 'latin1')),
      header((bytes) => bytes.writeUInt8(0x80, 124)),
    ];
    await refused(odd.map((bytes, i) => writeBytes(machine, `odd-${i}.ags`, bytes)));
  });

  test('an archive with a repeated or missing member, trailing bytes or no end is refused', async () => {
    const first = sound.subarray(0, 512 + Math.ceil((parts().members['base.pack']?.length ?? 0) / 512) * 512);
    const { manifest, members } = parts();
    const { 'events.jsonl.gz': events = Buffer.alloc(0), ...less } = members;
    const many = [
      writeBytes(machine, 'twice.ags', Buffer.concat([first, sound])),
      writeBytes(machine, 'after.ags', Buffer.concat([sound, first])),
      writeBytes(machine, 'zeros.ags', Buffer.concat([sound, Buffer.alloc(512)])),
      writeBytes(machine, 'empty.ags', Buffer.alloc(0)),
      writeBytes(machine, 'end.ags', Buffer.alloc(1024)),
      writeBytes(machine, 'text.ags', Buffer.from('not a task at all\n'.repeat(200))),
      writeBytes(machine, 'zip.ags', gzipSync(sound)),
      await writeParts(machine, 'less.ags', { manifest, members: less }),
      await writeParts(machine, 'no-work.ags', { manifest, members: { 'events.jsonl.gz': events } }),
    ];
    await refused(many);
    mkdirSync(join(machine.home, 'dir.ags'), { recursive: true });
    execFileSync('mkfifo', [join(machine.home, 'pipe.ags')]);
    giveTo(machine.home, machine.uid);
    await refused(['dir.ags', 'pipe.ags'].map((name) => join(machine.home, name)));
    expect(await machine.ags(['import', join(machine.home, 'none.ags')])).toMatchObject({ code: 3, stdout: '' });
  });

  test('a file that is cut short anywhere is never imported', async () => {
    const cuts = Array.from({ length: 40 }, (_, i) => Math.floor((sound.length * i) / 40));
    await refused(cuts.map((at) => writeBytes(machine, `cut-${at}.ags`, sound.subarray(0, at))));
  });

  test('a changed bit is noticed, or does not change the meaning', async () => {
    const flips = Array.from({ length: 48 }, (_, i) => {
      const bytes = Buffer.from(sound);
      const at = Math.floor((sound.length * (i + 0.37)) / 48);
      bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << (i % 8)), at);
      return { at, path: writeBytes(machine, `flip-${i}.ags`, bytes) };
    });
    const outcomes = await importAll(
      machine,
      flips.map(({ path }) => path),
    );
    // A bit in the padding of a block may change, or one in a free text.
    const names = outcomes.flatMap(({ name }) => name ?? []);
    for (const { code = 'import.refused', stack } of outcomes)
      expect(code, stack).toMatch(/^(import\.refused|usage\.invalid|project\.unsuitable)$/);
    if (names.length > 0) expect((await machine.ags(['rm', ...names, '-y'])).code).toBe(0);
    expect(outcomes.filter(({ code }) => code !== undefined).length).toBeGreaterThan(12);
    expect(machine.tasks()).toEqual(['work']);
  });
});

describe('the manifest', () => {
  test('lies about sizes, hashes, names, places and rights are refused', async () => {
    const files: string[] = [];
    for (const [name, lie] of Object.entries(MANIFEST_LIES))
      files.push(
        await writeParts(machine, `lie-${files.length}-${name.replaceAll(/\W/g, '_')}.ags`, parts(), (manifest) =>
          lie(manifest as unknown as ExportManifest),
        ),
      );
    const before = state();
    const outcomes = await importAll(machine, files);
    expect(outcomes.filter(({ code }) => code === undefined)).toEqual([]);
    // With an unknown commit, this may just be the wrong repository.
    expect(
      outcomes.filter(({ code = '' }) => !/^(import\.refused|usage\.invalid|project\.unsuitable)$/.test(code)),
    ).toEqual([]);
    expect(state()).toEqual(before);
  });
});

describe('the objects', () => {
  async function forged(
    name: string,
    objects: (root: string) => readonly PackObject[],
    flaws: PackFlaws = {},
  ): Promise<string> {
    const made = parts();
    const all = objects(made.manifest.work.root);
    made.manifest.work.commit = objectId(all.at(-1) as PackObject);
    made.members['work.pack'] = makePack(all, flaws);
    return writeParts(machine, `objects-${name}.ags`, made);
  }
  const text = blob('x\n');
  const withTree =
    (of: PackObject, ...more: PackObject[]) =>
    (root: string) => [text, ...more, of, commitOn(of, root)];
  const plain = tree([['100644', 'a', text]]);
  const nowhere = tree([['100644', 'never', blob('nobody has this\n')]]);

  test('a sound forgery is imported, so the others fail for their own reason', async () => {
    const [outcome] = await importAll(machine, [await forged('sound', withTree(plain))]);
    expect(outcome, outcome?.stack).toMatchObject({ name: 'work-2' });
    expect((await machine.ags(['rm', 'work-2', '-y'])).code).toBe(0);
  });

  test('names that lead elsewhere, link traps, nested repositories, and missing or broken objects are refused', async () => {
    const sub = tree([['100644', 'config', text]]);
    const files = [
      ...(await Promise.all(
        ['.git', '.GIT', 'git~1', '..', '.', 'a/b', '.g\u200cit', '.git ', 'x\\..\\y', ''].map((name, i) =>
          forged(`name-${i}`, withTree(tree([['100644', name, text]]))),
        ),
      )),
      await forged('git-dir', withTree(tree([['40000', '.git', sub]]), sub)),
      await forged(
        'trap',
        withTree(
          tree([
            ['120000', 'l', blob('/etc')],
            ['40000', 'l', sub],
          ]),
          sub,
          blob('/etc'),
        ),
      ),
      await forged('modules', withTree(tree([['120000', '.gitmodules', blob('/etc/passwd')]]), blob('/etc/passwd'))),
      await forged('gitlink', withTree(tree([['160000', 'sub', 'c'.repeat(40)]]))),
      await forged(
        'order',
        withTree(
          tree([
            ['100644', 'b', text],
            ['100644', 'a', text],
          ]),
        ),
      ),
      await forged('missing', (root) => [nowhere, commitOn(nowhere, root)]),
      await forged('no-tree', (root) => [text, commitOn(nowhere, root)]),
      await forged('orphan', () => [text, plain, commitOn(plain, null)]),
      await forged('elsewhere', () => [text, plain, commitOn(plain, 'd'.repeat(40))]),
      await forged('escape', (root) => [text, plain, commitOn(plain, root, 'work \u001b[2J\u001b]0;x\u0007')]),
      await forged('header', (root) => [text, plain, commitOn(plain, root, 'work', 'encoding utf-7\n')]),
      await forged('a-blob', (root) => [plain, commitOn(plain, root), text]),
      await forged('count', withTree(plain), { count: 0x7f_ff_ff_ff }),
      await forged('fewer', withTree(plain), { count: 1 }),
      await forged('trailer', withTree(plain), { trailer: Buffer.alloc(20) }),
      await forged('version', withTree(plain), { version: 9 }),
    ];
    await refused(files);
  });

  test('a foreign history for a new repository is checked in the same way', async () => {
    const evil = tree([['40000', '.git', tree([['100755', 'hooks', text]])]]);
    const rooted = commitOn(evil, null, 'first');
    const hollow = commitOn(nowhere, null, 'first');
    const files: string[] = [];
    for (const [name, root, objects] of [
      ['git', rooted, [text, tree([['100755', 'hooks', text]]), evil, rooted]],
      ['hollow', hollow, [hollow]],
    ] as const) {
      const made = parts();
      const top = commitOn(plain, objectId(root));
      Object.assign(made.manifest.work, { root: objectId(root), base: objectId(root), commit: objectId(top) });
      made.members['base.pack'] = makePack(objects);
      made.members['work.pack'] = makePack([text, plain, top]);
      files.push(await writeParts(machine, `history-${name}.ags`, made));
    }
    await refused(files, join(machine.home, 'made'));
    // An existing repository refuses it too, even if the user names it.
    await refused(files, machine.project);
  });
});

describe('the history', () => {
  const pack = (events: readonly unknown[]): Buffer =>
    gzipSync(events.map((event) => `${typeof event === 'string' ? event : JSON.stringify(event)}\n`).join(''));

  test('an import that unpacks to more than a log can be is refused', async () => {
    const made = parts();
    made.members['events.jsonl.gz'] = gzipSync(Buffer.alloc(330 * 2 ** 20), { level: 1 });
    const also = parts();
    also.members['network.jsonl.gz'] = gzipSync(Buffer.alloc(130 * 2 ** 20), { level: 1 });
    const files = [await writeParts(machine, 'bomb-1.ags', made), await writeParts(machine, 'bomb-2.ags', also)];
    const outcomes = await refused(files);
    for (const { message } of outcomes) expect(message).toContain('when it is unpacked');
    // Nor does it search long through lines without content.
    made.members['events.jsonl.gz'] = gzipSync(Buffer.alloc(300 * 2 ** 20, 'x\n'), { level: 1 });
    const [lines] = await refused([await writeParts(machine, 'lines.ags', made)]);
    expect(lines?.message).toContain('too many lines');
  });

  test('events of unknown kinds or shapes are dropped, and escapes in the others are shown as text', async () => {
    const evil = '\u001b[2J\u001b]0;pwned\u0007\u009b2J\u202egnp\r\b';
    const at = '2026-01-01T00:00:00.000Z';
    const made = parts();
    const events = [
      { type: 'agent.said', at, text: `said ${evil}`, more: { deep: 1 } },
      { type: 'agent.said', at, text: 5 },
      { type: 'agent.said', text: 'no time' },
      { type: 'agent.said', at: '+275760-09-13', text: 'late' },
      { type: 'tool.started', at, id: 'x', tool: `tool ${evil}`, action: { kind: 'command', command: `run ${evil}` } },
      { type: 'tool.started', at, id: 'x', tool: 'x', action: null },
      { type: 'tool.started', at, id: 'x', tool: 'x', action: { kind: 'command', command: [] } },
      { type: 'network.denied', at, host: `host ${evil}`, port: 1, reason: evil },
      { type: 'network.denied', at, host: {}, port: 'x', reason: [] },
      { type: 'run.ended', at, state: evil, reason: evil, exitCode: null },
      { type: '__proto__', at },
      { type: 'constructor', at },
      { type: evil, at },
      'not json',
      '[]',
      'null',
      '{"__proto__":{"polluted":1},"type":"agent.said","at":"2026-01-01T00:00:00.000Z"}',
    ];
    made.members['events.jsonl.gz'] = pack(events);
    made.members['network.jsonl.gz'] = pack([
      { at, by: 'connect', host: evil, port: 443, verdict: 'denied', reason: evil, bytesOut: 0, bytesIn: 0, ms: 1 },
      { at, by: 'magic', host: 'x', port: 443, verdict: 'allowed', reason: '', bytesOut: 0, bytesIn: 0, ms: 1 },
      'null',
    ]);
    Object.assign(made.manifest.task, { goal: `goal ${evil}`, model: evil });
    Object.assign(made.manifest.run, { reason: evil, label: evil, state: 'failed' });
    made.manifest.work.refused = [{ path: `path ${evil}`, reason: evil }];
    made.manifest.work.notKept = evil;
    made.manifest.rules.envPass = ['SECRET'];
    const path = await writeParts(machine, `evil${evil.replaceAll(/[/\0]/g, '')}.ags`, made);
    const imported = await machine.ags(['import', path]);
    expect(imported, imported.stderr).toMatchObject({ code: 0, stdout: 'work-2\n' });
    const log = machine.events('work-2');
    expect(log.map(({ type }) => type)).toEqual([
      'agent.said',
      'tool.started',
      'network.denied',
      'run.ended',
      'run.imported',
    ]);
    expect(log[0]).not.toHaveProperty('more');
    expect(log.at(-1)).toMatchObject({ dropped: 13 });
    let shown = imported.stdout + imported.stderr;
    for (const args of [
      ['list'],
      ['show', 'work-2'],
      ['logs', 'work-2'],
      ['logs', 'work-2', '-v'],
      ['net', 'log', 'work-2'],
      ['diff', 'work-2'],
      ['merge', 'work-2', '--dry-run'],
      ['rm', 'work-2', '-y'],
    ]) {
      const { stdout, stderr } = await machine.ags(args);
      expect(stderr, args.join(' ')).not.toContain('bug in ags');
      shown += stdout + stderr;
    }
    // oxlint-disable-next-line no-control-regex
    expect(shown).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/);
    for (const part of ['said ', 'tool ', 'host ', 'goal ']) if (part !== 'tool ') expect(shown).toContain(part);
  });
});

describe('rights', () => {
  test('a right that the file asks for needs a yes; a restriction applies at once', async () => {
    const made = parts();
    made.manifest.rules = {
      network: 'record',
      allow: ['evil.example'],
      deny: ['api.example'],
      tcp: ['db=127.0.0.1:5432'],
      publish: ['8080'],
      reveal: ['.env'],
      envPass: ['AWS_SECRET_ACCESS_KEY'],
      limits: { memory: '900g' },
    };
    Object.assign(made.manifest.task, { maxCostMicros: null });
    writeConfig('tasks: { cost: 1 }\n');
    const path = await writeParts(machine, 'wants.ags', made);
    const done = await machine.ags(['import', path]);
    expect(done, done.stderr).toMatchObject({ code: 0, stdout: 'work-2\n' });
    for (const word of ['evil.example', 'db=', '8080', '.env', 'AWS_SECRET_ACCESS_KEY', '900g', 'record'])
      expect(done.stderr).toContain(word);
    expect(machine.task('work-2').goal?.flags).toEqual({ deny: ['api.example'] });
    expect(machine.task('work-2').goal?.maxCostMicros).toBe(1_000_000);
    expect((await machine.ags(['send', 'work-2', 'fetch: https://evil.example/'])).code).toBe(0);
    await machine.until('work-2', ['ready', 'failed']);
    expect(machine.events('work-2').findLast(({ type }) => type === 'network.denied')).toMatchObject({
      host: 'evil.example',
      reason: 'no rule covers evil.example:443',
    });
    expect(await machine.ags(['import', path, '--trust'])).toMatchObject({ code: 0, stdout: 'work-3\n' });
    expect(machine.task('work-3').goal?.flags).toMatchObject({
      allow: ['evil.example'],
      envPass: ['AWS_SECRET_ACCESS_KEY'],
    });
    for (const name of ['work-2', 'work-3']) expect((await machine.ags(['rm', name, '-y'])).code).toBe(0);
    writeConfig('');
  });

  test('hooks and settings of a new repository need their own approval', async () => {
    using there = createAgentMachine(CALLER, {
      'ags.yaml': 'network: { allow: [wide.example] }\n',
      '.ags/hooks/pre-any': `#!/bin/sh\ntouch "$HOME/hook-ran"\n`,
    });
    // The machine of somebody else, who approved them there.
    there.git('update-index', '--chmod=+x', '.ags/hooks/pre-any');
    there.git('commit', '-qm', 'hook');
    there.git('reset', '-q', '--hard');
    expect((await there.ags(['trust', '--yes'])).code).toBe(0);
    expect(await there.runDemo('hooked', 'write: a.txt x // run: true')).toMatchObject({ state: 'ready' });
    const path = join(there.home, 'hooked.ags');
    expect(await there.ags(['export', 'hooked', path])).toMatchObject({ code: 0 });
    using here = createAgentMachine(CALLER);
    const cwd = join(here.home, 'made');
    expect(await here.ags(['import', path, '--into', cwd, '--trust'])).toMatchObject({ code: 0 });
    await here.ags(['send', 'hooked', 'run: true'], { cwd });
    const run = await here.until('hooked', ['ready', 'failed']);
    expect(run.reason).toMatch(/not approved|ags trust/);
    expect(existsSync(join(here.home, 'hook-ran'))).toBe(false);
  });

  function writeConfig(text: string): void {
    mkdirSync(join(machine.home, '.config/ags'), { recursive: true });
    writeFileSync(join(machine.home, '.config/ags/config.yaml'), text);
    giveTo(join(machine.home, '.config'), machine.uid);
  }
});

test('an import never takes the name of an existing task, even of a running one', async () => {
  await machine.ags(['start', 'busy', 'say: up // wait: 60', '-a', 'demo', '-d', '--max-parallel', '64']);
  await machine.event('busy', 'agent.said');
  const made = parts();
  made.manifest.task.name = 'busy';
  const before = createHash('sha256')
    .update(readFileSync(join(machine.stateDir, 'tasks/busy/task.json')))
    .digest('hex');
  expect(await machine.ags(['import', await writeParts(machine, 'busy.ags', made)])).toMatchObject({
    stdout: 'busy-2\n',
  });
  const after = createHash('sha256')
    .update(readFileSync(join(machine.stateDir, 'tasks/busy/task.json')))
    .digest('hex');
  expect(after).toBe(before);
  expect(machine.run('busy').state).toBe('running');
  await machine.ags(['stop', 'busy', '--force']);
  await machine.until('busy', ['stopped', 'failed']);
  for (const name of ['busy', 'busy-2']) await machine.ags(['rm', name, '-y']);
  expect(readdirSync(join(machine.stateDir, 'tasks'))).toEqual(['work']);
});
