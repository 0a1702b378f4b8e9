// test/attacks/mutation/import-parts-work.ts: attempts against the parts that make a task of an exported one: its objects, history,
// service data, place and rights, and all of them together. See parts.ts.
import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import type { CarriedRules, ExportManifest } from '../../../src/protocol/export.ts';
import { createRepository } from '../../../src/git/staging/new-repository.ts';
import { taskPaths } from '../../../src/store/layout.ts';
import type { ExportFile } from '../../../src/transfer/import-read.ts';
import type * as ImportedTask from '../../../src/transfer/imported-task.ts';
import type * as ImportTask from '../../../src/transfer/import.ts';
import type { HostContext } from '../../../src/run/host-context.ts';
import { blob, commit, makePack, objectId, tree, type PackObject } from '../../git/hostile-pack.ts';
import { writeParts, type Parts } from '../../transfer/parts.ts';
import {
  AT,
  commitOn,
  ROOT,
  ROOT_OBJECTS,
  ROOT_PACK,
  soundManifest,
  soundParts,
  SOUND_DECISION as DECISION,
  SOUND_EVENT,
  WORK_COMMIT,
  WORK_OBJECTS,
} from '../../transfer/sound.ts';
import { ODD_NAMES, ROOT as TREE_ROOT, tar } from '../../transfer/trees.ts';
import { all, BY_THE_WRITER, notRefused } from './import-parts-file.ts';
import { contextOf } from '../own-context.ts';
import type { Use } from './mutated-source.ts';
import { allowed, type PartAttempt } from './parts.ts';

const UID = process.getuid?.() ?? 0;

/** A file that was already read; `given` changes its manifest and its methods. */
function fileOf(given: Partial<ExportFile> & { work?: Partial<ExportManifest['work']> } = {}): ExportFile {
  const { work, ...more } = given;
  const sound = soundManifest();
  return {
    manifest: { ...sound, work: { ...sound.work, ...work } },
    has: () => true,
    take: () => Promise.resolve(),
    unpack: () => Promise.resolve(),
    lines: () => Promise.resolve(),
    [Symbol.dispose]: () => undefined,
    ...more,
  };
}

function unpack(gitDir: string, pack: Buffer): void {
  execFileSync('git', ['--git-dir', gitDir, 'unpack-objects', '-q'], {
    input: pack,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
}

const text = blob('x\n');
const plain = tree([['100644', 'a', text]]);
const nowhere = tree([['100644', 'never', blob('nobody has this\n')]]);

/** A repository with the root and the other objects; each call makes a repository that borrows from it. */
async function createLender(use: Use, dir: string): Promise<() => string> {
  const { createStaging } = await use(() => import('../../../src/git/staging/staging.ts'));
  const lender = join(dir, 'lender.git');
  createStaging(lender, 'sha1');
  unpack(lender, makePack([...ROOT_OBJECTS, ...WORK_OBJECTS, text, plain, beside]));
  let number = 0;
  return () => {
    const made = join(dir, `${number++}.git`);
    createStaging(made, 'sha1', { bare: true, borrows: [join(lender, 'objects')] });
    return made;
  };
}

const WORK_PACK = soundParts().members['work.pack'] as Buffer;
const beside = commitOn(plain, ROOT, 'beside');
const packed = (pack: Buffer | null, work: Partial<ExportManifest['work']>): ExportFile =>
  fileOf({
    work,
    has: () => pack !== null,
    take: (_name, consume) => consume(Readable.from(pack === null ? [] : [pack])),
  });
const forged = (made: readonly PackObject[]): ExportFile =>
  packed(makePack(made), { commit: objectId(made.at(-1) as PackObject) });
const withTree = (of: PackObject): ExportFile => forged([text, of, commitOn(of, ROOT)]);

const objects: PartAttempt = async (use, dir) => {
  const { takeWork } = await use(() => import('../../../src/transfer/import.ts'));
  const staging = await createLender(use, dir);
  await takeWork(withTree(plain), staging());
  const HOSTILE: Readonly<Record<string, ExportFile>> = {
    'a name that leads elsewhere': withTree(tree([['100644', 'x\\..\\y', text]])),
    'a repository in the repository': withTree(tree([['160000', 'sub', 'c'.repeat(40)]])),
    'a text that a terminal obeys': forged([text, plain, commitOn(plain, ROOT, 'work \u001b[2J')]),
    'a directory of git': withTree(tree([['100644', '.git', text]])),
  };
  return all(Object.entries(HOSTILE).map(([what, file]) => notRefused(what, () => takeWork(file, staging()))));
};

const connections: PartAttempt = async (use, dir) => {
  const { takeHistory, takeWork } = await use(() => import('../../../src/transfer/import.ts'));
  const staging = await createLender(use, dir);
  const HOSTILE: Readonly<Record<string, ExportFile>> = {
    'a missing file': forged([nowhere, commitOn(nowhere, ROOT)]),
    'a history of its own': forged([text, plain, commit(plain, 'orphan')]),
    'a base beside it': packed(WORK_PACK, { base: objectId(beside) }),
    'a root after its base': packed(null, { root: objectId(WORK_COMMIT), base: ROOT }),
  };
  const hollow = commitOn(nowhere, null, 'first');
  return all([
    ...Object.entries(HOSTILE).map(([what, file]) => notRefused(what, () => takeWork(file, staging()))),
    notRefused('a hollow history', () =>
      takeHistory(packed(makePack([hollow]), { root: objectId(hollow) }), staging()),
    ),
  ]);
};

const same = <T>(value: T): T => value;

const history: PartAttempt = async (use, dir) => {
  const { takeEvents, takeDecisions } = await use(() => import('../../../src/transfer/import.ts'));
  const said = (lines: readonly unknown[]): ExportFile =>
    fileOf({
      lines(_name, _most, onLine) {
        for (const line of lines) onLine(typeof line === 'string' ? line : JSON.stringify(line));
        return Promise.resolve();
      },
    });
  const take = (lines: readonly unknown[], name: string): Promise<void> =>
    takeEvents(said(lines), { file: join(dir, name), task: 'here' }, same, (dropped) => ({
      type: 'run.imported',
      at: AT,
      from: 'x',
      file: 'x',
      exportedAt: AT,
      dropped,
    }));
  const decide = (lines: readonly unknown[], name: string): Promise<void> => {
    const run = { task: 'here', project: dir, startedAt: AT };
    return takeDecisions(said(lines), { file: join(dir, name), run }, same);
  };
  const rubbish = Array.from({ length: 10_001 }, () => 'x');
  await take([SOUND_EVENT, { ...SOUND_EVENT, type: 'merge.forged' }, { ...SOUND_EVENT, task: 'other' }, 'x'], 'events');
  await decide([DECISION, { ...DECISION, by: 'magic' }, 'null'], 'decisions');
  const log = readFileSync(join(dir, 'events'), 'utf8');
  return [
    ...(/forged|other/.test(log) ? ['an event that ags never wrote'] : []),
    ...(readFileSync(join(dir, 'decisions'), 'utf8').includes('magic') ? ['a decision that was never made'] : []),
    ...(await notRefused('millions of lines', () => take(rubbish, 'many'))),
    ...(await notRefused('millions of decisions', () => decide(rubbish, 'more'))),
  ];
};

const data: PartAttempt = async (use, dir) => {
  const { takeData } = await use(() => import('../../../src/transfer/import-data.ts'));
  let number = 0;
  let most = 0;
  const copyOf = (task: number): string => join(taskPaths(dir, String(task)).services, 'tasks/db/run/copy');
  const take = async (archive: Buffer, told: { bytes: number; entries: number }): Promise<string> => {
    const paths = taskPaths(dir, String(number++));
    mkdirSync(paths.root, { recursive: true });
    const file = fileOf({
      unpack(_name, maxBytes, onChunk) {
        most = maxBytes;
        onChunk(archive);
        return Promise.resolve();
      },
    });
    const services = [{ name: 'db', kind: 'command', version: null, ...told }];
    await takeData({ ...file, manifest: { ...file.manifest, services } }, paths, { uid: UID, gid: UID });
    return copyOf(number - 1);
  };
  const sound = tar([
    TREE_ROOT,
    { name: './d/', kind: 'directory', mode: 0o700 },
    { name: './d/f', content: Buffer.from('one') },
    { name: './p', mode: 0o700 },
  ]);
  const umask = process.umask(0);
  const made = await take(sound, { bytes: 3, entries: 4 }).finally(() => process.umask(umask));
  const modes = ['', 'd', 'd/f', 'p'].map((path) => (lstatSync(join(made, path)).mode & 0o7777).toString(8));
  const large = number;
  await allowed('', () =>
    take(tar([TREE_ROOT, { name: './a', content: Buffer.alloc(5000) }]), { bytes: 3, entries: 2 }),
  );
  return [
    ...(modes.join() === '700,700,600,700' ? [] : [`others may read it: ${modes.join()}`]),
    ...(most < 100_000 ? [] : ['it is unpacked without a bound']),
    ...(existsSync(join(copyOf(large), 'a')) ? ['more is written than it says'] : []),
    ...(await notRefused('less than it says', () => take(sound, { bytes: 3, entries: 9 }))),
    ...(await notRefused('fewer bytes than it says', () => take(sound, { bytes: 9, entries: 4 }))),
    ...(await all(
      BY_THE_WRITER.map((what) => notRefused(what, () => take(ODD_NAMES[what] as Buffer, { bytes: 1, entries: 3 }))),
    )),
  ];
};

/** A home with a project whose repository has the root. */
function createHome(dir: string): HostContext {
  const [home, project] = [join(dir, 'home'), join(dir, 'home/code/project')];
  const gitDir = createRepository(project, 'sha1', 'main');
  unpack(gitDir, ROOT_PACK);
  writeFileSync(join(gitDir, 'refs/heads/main'), `${ROOT}\n`);
  return contextOf({
    home,
    project,
    env: { HOME: home, PATH: '/usr/bin:/bin' },
    uid: UID,
    stateDir: join(home, '.state'),
  });
}

const places: PartAttempt = async (use, dir) => {
  const { findPlace } = await use(() => import('../../../src/transfer/import-place.ts'));
  const context = createHome(dir);
  const [full, empty, elsewhere] = [join(dir, 'full'), join(dir, 'empty'), join(dir, 'elsewhere')];
  for (const path of [full, empty, elsewhere, context.stateDir]) mkdirSync(path);
  writeFileSync(join(full, 'mine'), 'x');
  symlinkSync('elsewhere', join(dir, 'link'));
  const manifest = soundManifest();
  const stranger = { ...manifest, work: { ...manifest.work, root: '1'.repeat(40) } };
  const longer = { ...manifest, work: { ...manifest.work, root: '1'.repeat(64), objectFormat: 'sha256' as const } };
  const find = (into?: string, of: ExportManifest = manifest, complete = true): ReturnType<typeof findPlace> =>
    findPlace(context, of, { into, complete });
  await find();
  const made = await find(join(dir, 'link/new'));
  const refusals = await all([
    notRefused('a directory with files in it', () => find(full)),
    notRefused('a repository without a history', () => find(empty, manifest, false)),
    notRefused('the state of ags', () => find(join(context.stateDir, 'new'))),
    notRefused('another repository', () => find(undefined, stranger)),
    notRefused('another repository, by half', () => find(context.cwd, stranger, false)),
    notRefused('ids of another kind', () => find(context.cwd, longer)),
  ]);
  return [...refusals, ...(made.project === join(elsewhere, 'new') ? [] : ['a way through a link'])];
};

/** A foreign history sets attributes for its files; the user's settings give these attributes a program. */
const newPlaces: PartAttempt = async (use, dir) => {
  const [part, old, mark, before] = [join(dir, 'part'), join(dir, 'old'), join(dir, 'ran'), process.env['HOME']];
  writeFileSync(join(dir, '.gitconfig'), `[filter "own"]\n\tsmudge = touch ${mark} && cat\n`);
  mkdirSync(old);
  process.env['HOME'] = dir;
  try {
    const { beginRepository, fillRepository, mainBranch } = await use(
      () => import('../../../src/transfer/import-place.ts'),
    );
    const attributes = blob('* filter=own\na working-tree-encoding=UTF-16\n');
    const files = tree([
      ['100644', '.gitattributes', attributes],
      ['100644', 'a', text],
    ]);
    const first = commit(files, 'first');
    const manifest = soundManifest();
    const of = { ...manifest, work: { ...manifest.work, root: objectId(first) } };
    unpack(beginRepository(part, of), makePack([attributes, text, files, first]));
    await fillRepository(part, of);
    return [
      ...(await allowed('an existing directory', () => beginRepository(old, manifest))),
      ...(mainBranch({ branch: 'ags/mine' }) === 'main' ? [] : ['a branch of a task']),
      ...(readFileSync(join(part, 'a'), 'latin1') === 'x\n' ? [] : ['another encoding']),
      ...(existsSync(mark) ? ['a program was run'] : []),
    ];
  } finally {
    process.env['HOME'] = before;
  }
};

const NO_RULES: CarriedRules = soundManifest().rules;
/** Each of these is a right. */
const WISHES: Partial<CarriedRules> = {
  network: 'record',
  allow: ['evil.example'],
  tcp: ['db=127.0.0.1:5432'],
  publish: ['8080'],
  reveal: ['.env'],
  envPass: ['AWS_SECRET_ACCESS_KEY'],
  limits: { memory: '900g' },
};

const rights: PartAttempt = async (use, dir) => {
  const { judgeRules } = await use(() => import('../../../src/transfer/carried-rules.ts'));
  const context = createHome(dir);
  const wish = (rules: Partial<CarriedRules>): ReturnType<typeof judgeRules> =>
    judgeRules(context, context.cwd, { ...NO_RULES, ...rules });
  const { asks, narrow } = await wish({ ...WISHES, deny: ['api.example'] });
  const { narrow: off } = await wish({ network: 'off' });
  // The project's own file has no effect before the user has approved it.
  writeFileSync(join(context.cwd, 'ags.yaml'), 'network: { allow: [evil.example] }\n');
  const untrusted = await wish({ allow: ['evil.example'] });
  return [
    ...(asks.length === Object.keys(WISHES).length ? [] : [`nobody is asked: ${asks.join()}`]),
    ...(JSON.stringify(narrow) === '{"deny":["api.example"]}' ? [] : [`in force: ${JSON.stringify(narrow)}`]),
    ...(off.network === 'off' ? [] : ['a network where there was none']),
    ...(untrusted.asks.length === 1 ? [] : ['a right by a file of the project']),
    ...(await notRefused('a rule that cannot be read', () => wish({ allow: ['*'] }))),
    ...(await notRefused('a limit of nothing', () => wish({ limits: { rights: 'all' } }))),
  ];
};

const texts: PartAttempt = async (use, dir) => {
  const { toPortable } = await use(() => import('../../../src/transfer/portable-text.ts'));
  const [home, project] = [join(dir, 'home'), join(dir, 'p(1)')];
  for (const path of [home, project]) mkdirSync(path);
  symlinkSync('.', join(dir, 'link'));
  const context = contextOf({ home: join(dir, 'link/home'), project, env: {}, uid: UID, stateDir: join(dir, 'state') });
  const told = toPortable(context, join(dir, 'link/p(1)'), { TOKEN: 'secret-value' });
  const text = [project, join(dir, 'link/p(1)/x'), home, `${dir}/state/y`, 'secret-value'].join(' ');
  const out = JSON.stringify(told({ text, list: [text], deep: { text } }));
  return [
    ...(out.includes(dir) ? ['a path of this machine'] : []),
    ...(out.includes('secret-value') ? ['a value'] : []),
  ];
};

const journal: PartAttempt = async (use, dir) => {
  const { takeBackImport, writeJournal } = await use(() => import('../../../src/transfer/import-journal.ts'));
  const context = createHome(dir);
  const [gitDir, root] = [join(context.cwd, '.git'), join(dir, 'making')];
  mkdirSync(root);
  // The user has moved the branch since.
  writeJournal(
    { root },
    { branch: { gitDir, ref: 'refs/heads/main', commit: '1'.repeat(40) }, networkLog: null, part: null },
  );
  await allowed('', () => takeBackImport(root));
  return existsSync(join(gitDir, 'refs/heads/main')) ? [] : ['a branch of the user is gone'];
};

/** Everything that an import could change on disk. */
function stateOf({ cwd, home }: HostContext): string {
  const files = execFileSync('find', [home, '-not', '-path', '*/objects/*', '-not', '-path', '*/.cache/*'], {
    encoding: 'utf8',
  });
  return files + execFileSync('git', ['for-each-ref'], { cwd, encoding: 'utf8' });
}

const imported = { next: 0 };

async function importOne(
  openImport: typeof ImportTask.openImport,
  context: HostContext,
  parts: Parts,
  into?: string,
): ReturnType<ImportTask.Import['carryOut']> {
  const file = `${imported.next++}.ags`;
  using found = await openImport(
    context,
    await writeParts({ home: join(context.home, '..'), uid: UID }, file, parts),
    into,
  );
  return await found.carryOut({ trust: false });
}

function changed(change: (manifest: ExportManifest) => void): Parts {
  const parts = soundParts();
  change(parts.manifest);
  return parts;
}

/** The file's claims about its bounds and its state, where this machine has its own. */
const claims: PartAttempt = async (use, dir) => {
  const { describeImported } = await use(() => import('../../../src/transfer/imported-task.ts'));
  const context = createHome(dir);
  const told = async (run: Partial<ExportManifest['run']>): Promise<ImportedTask.Imported> => {
    const { manifest } = changed((m) => {
      Object.assign(m.task, { maxSeconds: 7200, maxTurns: 9 });
      Object.assign(m.run, run);
      m.merges = [{ kind: 'merge', branch: 'main', commit: objectId(WORK_COMMIT), at: AT }];
    });
    const tasks = { seconds: 3600, costMicros: 1_000_000, turns: 5, parallel: 1 };
    const given = {
      file: fileOf({ manifest }),
      place: {
        kind: 'repository',
        project: context.cwd,
        repository: { refs: [], commonDir: join(context.cwd, '.git') },
      },
      wishes: { config: { tasks } },
      path: 'x.ags',
      flags: {},
    } as unknown as ImportedTask.Given;
    const counted = { commit: objectId(WORK_COMMIT), files: 1, added: 1, removed: 0 };
    return describeImported(context, given, { id: 'work', branched: true, counted });
  };
  const [merged, running] = [await told({ state: 'merged' }), await told({ state: 'running' })];
  const goal = merged.task.goal;
  return [
    ...(goal?.maxSeconds === 3600 ? [] : ['more time']),
    ...(goal?.maxCostMicros === 1_000_000 ? [] : ['more money']),
    ...(goal?.maxTurns === 5 ? [] : ['more turns']),
    ...(merged.run.state === 'ready' ? [] : ['it says that it was merged']),
    ...(running.run.state === 'stopped' ? [] : ['it says that it runs']),
  ];
};

const goals: PartAttempt = async (use, dir) => {
  const { openImport } = await use(() => import('../../../src/transfer/import.ts'));
  const context = createHome(dir);
  const wishes = changed((m) => Object.assign(m.rules, { allow: ['evil.example'], deny: ['api.example'] }));
  const { task } = await importOne(openImport, context, wishes);
  const agents = [{ agent: 'nobody' }, { command: ['sh'] }, { agent: 'command' }];
  const as = (one: object): Parts => changed((m) => Object.assign(m.task, one));
  return [
    ...(JSON.stringify(task.goal?.flags) === '{"deny":["api.example"]}' ? [] : ['a right without a yes']),
    ...(await all(agents.map((one) => notRefused(JSON.stringify(one), () => importOne(openImport, context, as(one)))))),
  ];
};

/** A task and a branch of that name exist already. */
const takenNames: PartAttempt = async (use, dir) => {
  const { openImport } = await use(() => import('../../../src/transfer/import.ts'));
  const context = createHome(dir);
  execFileSync('git', ['update-ref', 'refs/heads/ags/work', ROOT], { cwd: context.cwd });
  const tasks = join(context.stateDir, 'tasks/work-2');
  mkdirSync(tasks, { recursive: true });
  writeFileSync(join(tasks, 'task.json'), 'mine');
  const { task } = await importOne(openImport, context, soundParts());
  const branch = execFileSync('git', ['rev-parse', 'ags/work'], { cwd: context.cwd, encoding: 'utf8' }).trim();
  return [
    ...(branch === ROOT ? [] : ['a branch was moved']),
    ...(readFileSync(join(tasks, 'task.json'), 'utf8') === 'mine' ? [] : ['a task was written over']),
    ...(task.name === 'work-3' ? [] : [task.name]),
  ];
};

/** The problem comes up at the last moment, when nearly everything is written. */
const leavings: PartAttempt = async (use, dir) => {
  const { openImport } = await use(() => import('../../../src/transfer/import.ts'));
  const context = createHome(dir);
  for (const name of ['.state/tasks', '.state/network', '.cache'])
    mkdirSync(join(context.home, name), { recursive: true });
  const parts = soundParts();
  parts.members['network.jsonl.gz'] = gzipSync(`${JSON.stringify(DECISION)}\n${'x\n'.repeat(10_001)}`);
  const before = stateOf(context);
  const made = await notRefused('it was made', () => importOne(openImport, context, parts, join(context.home, 'made')));
  return [...made, ...(stateOf(context) === before ? [] : ['something is left'])];
};

export const IMPORT_WORK_PARTS = {
  objects,
  connections,
  history,
  data,
  places,
  'new places': newPlaces,
  rights,
  texts,
  'import journal': journal,
  claims,
  goals,
  'taken names': takenNames,
  leavings,
} as const satisfies Record<string, PartAttempt>;
