// test/attacks/mutation/road-mutation.proof.test.ts: takes each protection out of the road that an agent's work comes out by, one at a time, and shows that
// an attempt of the table then succeeds: with the real commands, from a copy of the build in which one piece is replaced. The agents work
// once; what they left is taken again by each mutant. Protections of single parts are in road-parts-mutation.test.ts.
import { execFileSync, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RoadAttack } from '../../../src/attack/table/attack.ts';
import { AGENT_ATTACKS } from '../../../src/attack/table/agents.ts';
import { APART_ATTACKS, GIT_ATTACKS, MERGE_ATTACKS } from '../../../src/attack/table/git.ts';
import { makeWorld } from '../../../src/cli/make-context.ts';
import { leaveWork, lookAndMerge, ownState, type Road, type RunAgs } from '../../../src/attack/git-pipeline.ts';
import { openStage, type AttackStage } from '../../../src/attack/attacked-project.ts';
import { CALLERS, createMachine, type Machine } from '../../harness.ts';

const REPO = new URL('../../..', import.meta.url).pathname;
const TOGETHER: readonly RoadAttack[] = [...GIT_ATTACKS, ...MERGE_ATTACKS, ...AGENT_ATTACKS];
const APART: readonly RoadAttack[] = APART_ATTACKS.filter(({ id }) => id === 'git-tree-names');

/** In place of an attempt: nothing at all of what the agent did can be had any more. */
const NOTHING_COMES = '(nothing comes out)';

interface Mutant {
  readonly name: string;
  /** Those that should notice. */
  readonly attacks: readonly string[];
  /** In the build: file, what it says, and what it says instead. Several where they stand behind each other. */
  readonly pieces: readonly (readonly [file: string, from: string, to: string])[];
}

/** Those of one group are taken out together, to take the road less often: attempts that notice one have nothing to do with the others. */
// One line for each, however long: it is read as a table.
// oxfmt-ignore
const GROUPS: readonly (readonly Mutant[])[] = [
  [
    { name: 'files that run later are named one by one', attacks: ['merge-links-out', 'merge-runs-later', 'merge-agent-settings'], pieces: [['review/selection.js', "(change.lane === 'inert' || named)", 'true']] },
    { name: 'names are shown, not obeyed', attacks: ['merge-terminal-names'], pieces: [['lib/sanitize.js', 'return LINE_UNSAFE.test(text) ? text.replace(LINE_UNSAFE_ALL, escapeOf) : text;', 'return text;']] },
    { name: 'texts are shown, not obeyed', attacks: ['merge-terminal-text'], pieces: [['lib/sanitize.js', 'return whole(escapeOf(piece), piece);', 'return whole(piece, piece);']] },
    { name: 'no attribute of an agent counts', attacks: ['git-changed-bytes'], pieces: [['git/staging.js', '* -text -filter -ident -working-tree-encoding !diff !merge', '* !diff !merge']] },
  ],
  [
    { name: 'work in progress is not written over', attacks: ['merge-unfinished-work'], pieces: [['tasks/move-files.js', 'if (dirty.length > 0)', 'if (dirty.length > 1e9)']] },
    { name: 'no object stands for another', attacks: ['git-replaced-objects'], pieces: [['tasks/agent-tree.js', "GIT_NO_REPLACE_OBJECTS: '1',", '']] },
    { name: 'no history with a file that is never taken', attacks: ['git-nested-repository'], pieces: [['tasks/agent-tree.js', '!/^(100644|100755|120000)$/.test(mode)', "mode === ''"]] },
  ],
  [
    { name: 'objects are checked, and the names in them', attacks: ['git-tree-names'], pieces: [['git/staging.js', "'index-pack', '--strict',", "'index-pack',"], ['git/brought.js', 'path === null || wrong(path, mode)', 'wrong === null']] },
  ],
  [
    { name: 'no setting of an agent counts', attacks: [NOTHING_COMES], pieces: [['git/staging.js', '* -text -filter -ident', '* -text -ident'], ['tasks/agent-tree.js', 'cp -- ${AGENT_GIT}/HEAD "$GIT_DIR/HEAD"', 'cp -- ${AGENT_GIT}/HEAD ${AGENT_GIT}/config "$GIT_DIR/"']] },
  ],
  [
    { name: 'nothing waits for a pipe', attacks: [NOTHING_COMES], pieces: [['tasks/question.js', '(question.cover ?? []).map(', '[].map('], ['tasks/question.js', 'question.deadlineMs ?? DEADLINE_MS', '3000']] },
  ],
];
/** Each of them was seen alone, and can be again. */
const BUILDS = process.env['AGS_EACH_MUTANT'] === undefined ? GROUPS : GROUPS.flat().map((one) => [one]);

let machine: Machine;
let stage: AttackStage;
let scratch: string;
let together: Work;
let apart: Work;
const unnoticed: string[] = [];

beforeAll(async () => {
  machine = createMachine(CALLERS[0] ?? 'user');
  scratch = mkdtempSync(join(tmpdir(), 'ags-road-mutant-'));
  const world = makeWorld({ ...machine.env });
  stage = await openStage({ ...world, cwd: machine.project, self: [process.execPath, join(REPO, 'bin/ags.cjs')] }, {});
  [together, apart] = await Promise.all([createWork(TOGETHER, 'together'), createWork(APART, 'apart')]);
}, 120_000);
afterAll(async () => {
  await stage[Symbol.asyncDispose]();
  machine[Symbol.dispose]();
  rmSync(scratch, { recursive: true, force: true });
});

test('the road as it is stands', async () => {
  const build = join(REPO, 'dist');
  expect([...(await walk(together, TOGETHER, build)), ...(await walk(apart, APART, build))]).toEqual([]);
});

test('the traps are real: where git is run over what the agent left, they are sprung', () => {
  together.restore();
  const run = join(stage.world.stateDir, 'tasks/together/run');
  const copy = join(scratch, 'trap');
  execFileSync('cp', ['-a', join(run, 'upper'), copy]);
  for (const name of ['.git', 'pipe', 'sock', 'piped']) rmSync(join(copy, name), { recursive: true, force: true });
  execFileSync('cp', ['-a', join(run, 'git'), join(copy, '.git')]);
  for (const args of [['status'], ['diff'], ['add', '-A'], ['-c', 'core.fsmonitor=', 'checkout', '-f', 'HEAD']])
    try {
      execFileSync('git', ['-c', 'safe.directory=*', ...args], { cwd: copy, stdio: 'ignore', timeout: 20_000 });
    } catch {
      // Programs that only leave a mark are no good filters.
    }
  expect(readdirSync(together.road.ran)).toEqual(expect.arrayContaining(['fsmonitor', 'hook']));
});

test.for(BUILDS.map((mutants) => [mutants.map(({ name }) => name).join('", "'), mutants] as const))(
  'without "%s", attempts succeed',
  { timeout: 120_000 },
  async ([, mutants]) => {
    const expected = mutants.flatMap(({ attacks }) => attacks);
    const alone = APART.filter(({ id }) => expected.includes(id));
    const build = buildWith(mutants);
    const found = alone.length > 0 ? await walk(apart, alone, build) : await walk(together, TOGETHER, build);
    for (const { name, attacks } of mutants) if (!attacks.every((id) => found.includes(id))) unnoticed.push(name);
    expect(found).toEqual(expect.arrayContaining(expected));
  },
);

test('no protection goes unmissed', () => {
  expect(unnoticed).toEqual([]);
});

/** What an agent left, in its sandbox alone, as often as it is wanted. */
interface Work {
  readonly road: Road;
  restore(): void;
}

async function createWork(attacks: readonly RoadAttack[], name: string): Promise<Work> {
  const { road, started } = await leaveWork(stage, attacks, name);
  const { stateDir } = stage.world;
  const task = join(stateDir, 'tasks', name);
  if (!existsSync(join(task, 'capture.json'))) throw new Error(started.stderr + started.stdout.toString('utf8'));
  for (const path of ['capture.json', 'staging.git'].map((one) => join(task, one)))
    rmSync(path, { recursive: true, force: true });
  rmSync(join(road.project, '.git/refs/heads/ags'), { recursive: true, force: true });
  const places = { project: join(stage.dir, name), task };
  const kept = join(scratch, name);
  mkdirSync(kept);
  for (const [as, path] of Object.entries(places)) execFileSync('cp', ['-a', path, join(kept, as)]);
  return {
    road,
    restore() {
      rmSync(join(stateDir, 'merges'), { recursive: true, force: true });
      for (const [as, path] of Object.entries(places)) {
        execFileSync('rm', ['-rf', path]);
        execFileSync('cp', ['-a', join(kept, as), path]);
      }
    },
  };
}

/** The attempts that succeed when this build takes the work. */
async function walk(work: Work, attacks: readonly RoadAttack[], build: string): Promise<string[]> {
  work.restore();
  const before = await ownState(stage, work.road);
  using walker = startWalker(work.road.project, build);
  const brought = await walker.run(['bring-out', work.road.name]);
  const refused = brought.stdout.includes('What came out of the sandbox was refused');
  if (brought.exitCode !== 0 && !(refused && attacks.length === 1)) return [NOTHING_COMES];
  const after = await lookAndMerge(stage, { ...work.road, before }, brought, attacks.length === 1, walker.run);
  return attacks.filter((one) => one.judge(after).length > 0).map(({ id }) => id);
}

function startWalker(cwd: string, build: string): Disposable & { run: RunAgs } {
  const script = new URL('road-walker.mjs', import.meta.url).pathname;
  const env = Object.fromEntries(Object.entries(stage.world.env).filter(([, value]) => value !== undefined));
  const child = spawn(process.execPath, [script, build], { cwd, env, stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async run(args) {
      child.stdin.write(`${JSON.stringify(args)}\n`);
      const { value, done } = (await lines.next()) as { value: string; done: boolean };
      if (done) throw new Error(`${args[0]}: it has ended`);
      const { exitCode, stdout, stderr } = JSON.parse(value) as { exitCode: number; stdout: string; stderr: string };
      return { exitCode, stdout: Buffer.from(stdout), stderr };
    },
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  };
}

function buildWith(mutants: readonly Mutant[]): string {
  const copy = mkdtempSync(join(scratch, 'build-'));
  const dist = join(copy, 'dist');
  cpSync(join(REPO, 'dist'), dist, { recursive: true, filter: (path) => !/\/dist\/(bundle|web)(\/|$)/.test(path) });
  cpSync(join(REPO, 'package.json'), join(copy, 'package.json'));
  symlinkSync(join(REPO, 'node_modules'), join(copy, 'node_modules'));
  for (const [file, from, to] of mutants.flatMap(({ pieces }) => pieces)) {
    const at = join(dist, file);
    const text = readFileSync(at, 'utf8');
    if (text.split(from).length !== 2) throw new Error(`${file} is not as it was: ${from}`);
    writeFileSync(
      at,
      text.replace(from, () => to),
    );
  }
  return dist;
}
