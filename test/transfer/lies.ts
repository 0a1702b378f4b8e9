// test/transfer/lies.ts: false and oversized claims in the manifest of an exported task.
import type { ExportManifest } from '../../src/protocol/export.ts';

export type Lie = (manifest: ExportManifest) => unknown;

/** Claims that no export of ags makes. */
export const MANIFEST_LIES: Readonly<Record<string, Lie>> = {
  size: (m) => ({ ...m, members: m.members.map((one) => ({ ...one, bytes: one.bytes + 1 })) }),
  hash: (m) => ({ ...m, members: m.members.map((one) => ({ ...one, sha256: 'a'.repeat(64) })) }),
  'hash of the work': (m) => ({
    ...m,
    members: m.members.map((one) => (one.name === 'work.pack' ? { ...one, sha256: 'b'.repeat(64) } : one)),
  }),
  'a member less': (m) => ({ ...m, members: m.members.slice(1) }),
  'a member twice': (m) => ({ ...m, members: m.members.map(() => m.members[0]) }),
  'another format': (m) => ({ ...m, format: 2 }),
  'a project': (m) => ({ ...m, project: '/etc' }),
  'a project of the task': (m) => ({ ...m, task: { ...m.task, project: '/etc', stateDir: '/tmp' } }),
  hooks: (m) => ({ ...m, rules: { ...m.rules, hooks: ['touch /tmp/x'] } }),
  mounts: (m) => ({ ...m, rules: { ...m.rules, mounts: ['/'] } }),
  secrets: (m) => ({ ...m, rules: { ...m.rules, secrets: [{ from: { command: ['id'] } }] } }),
  layers: (m) => ({ ...m, run: { ...m.run, layers: ['/'] } }),
  'a runner': (m) => ({ ...m, run: { ...m.run, runner: { pid: 1, startTicks: '0' } } }),
  'a state': (m) => ({ ...m, run: { ...m.run, state: 'owned' } }),
  'a time': (m) => ({ ...m, run: { ...m.run, startedAtMs: 9e15 } }),
  'a date': (m) => ({ ...m, exportedAt: 'yesterday' }),
  'an agent': (m) => ({ ...m, task: { ...m.task, agent: '../../x' } }),
  'an agent that nobody knows': (m) => ({ ...m, task: { ...m.task, agent: 'nobody' } }),
  'a command beside an agent': (m) => ({ ...m, task: { ...m.task, command: ['sh'] } }),
  'no command': (m) => ({ ...m, task: { ...m.task, agent: 'command' } }),
  'a long goal': (m) => ({ ...m, task: { ...m.task, goal: 'x'.repeat(2_000_000) } }),
  'a rule': (m) => ({ ...m, rules: { ...m.rules, allow: ['*'] } }),
  'a grant': (m) => ({ ...m, rules: { ...m.rules, tcp: ['\u001b[2J'] } }),
  'a limit': (m) => ({ ...m, rules: { ...m.rules, limits: { rights: 'all' } } }),
  'nothing at all': () => null,
  'a list': () => [],
  ...Object.fromEntries(
    ['../../x', '/etc', '.', '-x', 'A', '', 'x/y', 'x\ny', 'work\u001b[2J'].map((name) => [
      `the name ${JSON.stringify(name)}`,
      (m: ExportManifest) => ({ ...m, task: { ...m.task, name } }),
    ]),
  ),
  ...Object.fromEntries(
    [
      ['../../x', '-x', 'HEAD', 'a..b', 'x.lock', '.x', 'x/', '/x', 'x//y', 'x\u001b', 'x y', '@', 'x@{1}', 'x:y'],
      ['refs/../../x', 'a/../b', 'x\\y', 'x~1', '*', ''],
    ]
      .flat()
      .map((branch) => [
        `the branch ${JSON.stringify(branch)}`,
        (m: ExportManifest) => ({ ...m, work: { ...m.work, branch } }),
      ]),
  ),
  ...Object.fromEntries(
    ['HEAD', 'main', '--all', 'ags/work', '0'.repeat(40), 'a'.repeat(64), 'A'.repeat(40)].flatMap((oid) =>
      (['root', 'base', 'commit'] as const).map((key) => [
        `${key} ${oid}`,
        (m: ExportManifest) => ({ ...m, work: { ...m.work, [key]: oid } }),
      ]),
    ),
  ),
};

const task =
  (more: object): Lie =>
  (m) => ({ ...m, task: { ...m.task, ...more } });
const run =
  (more: object): Lie =>
  (m) => ({ ...m, run: { ...m.run, ...more } });
const work =
  (more: object): Lie =>
  (m) => ({ ...m, work: { ...m.work, ...more } });
const rules =
  (more: object): Lie =>
  (m) => ({ ...m, rules: { ...m.rules, ...more } });
const member =
  (more: object): Lie =>
  (m) => ({ ...m, members: m.members.map((one) => ({ ...one, ...more })) });
const used = (more: object): Lie => run({ used: { inputTokens: 0, outputTokens: 0, costMicros: 0, ...more } });
const service = (more: object, count = 1): Lie => {
  const one = { name: 'db', kind: 'postgres', version: '16.1', bytes: 1, entries: 1 };
  return (m) => ({ ...m, format: 2, services: Array.from({ length: count }, () => ({ ...one, ...more })) });
};
const merge = (more: object, count = 1): Lie => {
  const one = { kind: 'merge', branch: 'main', commit: '1'.repeat(40), at: '2026-01-01T00:00:00.000Z' };
  return (m) => ({ ...m, merges: Array.from({ length: count }, () => ({ ...one, ...more })) });
};
const refusal = { path: 'x', reason: 'x' };
const long = (characters: number): string => 'x'.repeat(characters);

/** Values just beyond each bound of the schema. */
export const BOUND_LIES: Readonly<Record<string, Lie>> = {
  'a long word': task({ model: long(501) }),
  'less than nothing': used({ inputTokens: -1 }),
  'before all time': run({ startedAtMs: -1 }),
  'no turns': task({ maxTurns: 0 }),
  'an empty rule': rules({ allow: [''] }),
  'a long rule': rules({ deny: [long(1001)] }),
  'many rules': rules({ reveal: Array.from({ length: 10_001 }, () => 'x') }),
  'a long branch': work({ branch: long(201) }),
  'a branch with a dot at its end': work({ branch: 'x.' }),
  'a mode': rules({ network: 'all' }),
  'a long name of a limit': rules({ limits: { [long(41)]: '1g' } }),
  'a long limit': rules({ limits: { memory: long(41) } }),
  'more of a service': service({ path: '/etc' }),
  'a service elsewhere': service({ name: '../x' }),
  'a kind of service': service({ kind: 'a b' }),
  'a version of a service': service({ version: '\u001b[2J' }),
  'a large service': service({ bytes: 5 * 2 ** 30 }),
  'a service of many files': service({ entries: 100_001 }),
  'many services': service({}, 65),
  'a format': (m) => ({ ...m, format: 3 }),
  'a long version': (m) => ({ ...m, ags: long(51) }),
  'more of a member': member({ path: '/etc' }),
  'another member': member({ name: 'etc/passwd' }),
  'a member elsewhere': member({ name: 'services/../../x.tar.gz' }),
  'a negative member': member({ bytes: -1 }),
  'a hash that is none': member({ sha256: 'x' }),
  'many members': (m) => ({ ...m, members: Array.from({ length: 69 }, () => m.members[0]) }),
  'a day': task({ createdAt: 'today' }),
  'an empty command': task({ agent: 'command', command: [] }),
  'a command without an end': task({ agent: 'command', command: Array.from({ length: 1001 }, () => 'x') }),
  'a negative end': run({ exitCode: -1 }),
  'an end that is none': run({ exitCode: 256 }),
  'no run': run({ number: 0 }),
  'many runs': run({ number: 1_000_001 }),
  'no turn': run({ turns: 0 }),
  'many turns': run({ turns: 1_000_001 }),
  'more of what was used': used({ more: 1 }),
  'a kind of id': work({ objectFormat: 'md5' }),
  'more of the work': work({ path: '/etc' }),
  'more of a refusal': work({ refused: [{ ...refusal, more: 1 }] }),
  'a long path': work({ refused: [{ ...refusal, path: long(4097) }] }),
  'many refusals': work({ refused: Array.from({ length: 10_001 }, () => refusal) }),
  'more of a merge': merge({ more: 1 }),
  'a kind of merge': merge({ kind: 'theft' }),
  'a merge at another time': merge({ at: 'now' }),
  'a merge of another branch': merge({ branch: '-x' }),
  'many merges': merge({}, 10_001),
};
