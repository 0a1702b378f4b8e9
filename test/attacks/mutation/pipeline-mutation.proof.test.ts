// test/attacks/mutation/pipeline-mutation.proof.test.ts: removes one protection of the pipeline that brings out an agent's work at a time, and
// shows that an attempt of the table then succeeds: with the real commands, from a copy of the build with one replaced piece. The agents
// work once; every mutant brings out the same work. pipeline-parts-mutation.proof.test.ts covers single parts.
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { transformSync } from 'rolldown/utils';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { GitAttack } from '../../../src/attack/table/attack.ts';
import { AGENT_ATTACKS } from '../../../src/attack/table/agents.ts';
import { LONE_ATTACKS, GIT_ATTACKS, MERGE_ATTACKS } from '../../../src/attack/table/git.ts';
import { makeHostContext } from '../../../src/cli/make-context.ts';
import { leaveWork, lookAndMerge, ownState, type Road, type RunAgs } from '../../../src/attack/git-pipeline.ts';
import { openStage, type AttackedProject } from '../../../src/attack/attacked-project.ts';
import { CALLERS, createMachine, type Machine } from '../../harness.ts';
import { SOURCE } from './mutated-source.ts';
import { NOTHING_COMES, PIPELINE_GROUPS, type PipelineMutant } from './pipeline-mutants.ts';

const REPO = fileURLToPath(new URL('../../..', import.meta.url));
const TOGETHER: readonly GitAttack[] = [...GIT_ATTACKS, ...MERGE_ATTACKS, ...AGENT_ATTACKS];
const LONE: readonly GitAttack[] = LONE_ATTACKS.filter(({ id }) => id === 'git-tree-names');

/** AGS_EACH_MUTANT tries every mutant alone, in a build of its own. */
const BUILDS =
  process.env['AGS_EACH_MUTANT'] === undefined ? PIPELINE_GROUPS : PIPELINE_GROUPS.flat().map((one) => [one]);

let machine: Machine;
let stage: AttackedProject;
let scratch: string;
let together: Work;
let lone: Work;
const unnoticed: string[] = [];

beforeAll(async () => {
  machine = createMachine(CALLERS[0] ?? 'user');
  scratch = mkdtempSync(join(tmpdir(), 'ags-pipeline-mutant-'));
  const context = makeHostContext({ ...machine.env });
  stage = await openStage(
    { ...context, cwd: machine.project, self: [process.execPath, join(REPO, 'bin/ags.cjs')] },
    {},
  );
  [together, lone] = await Promise.all([createWork(TOGETHER, 'together'), createWork(LONE, 'lone')]);
}, 120_000);
afterAll(async () => {
  await stage[Symbol.asyncDispose]();
  machine[Symbol.dispose]();
  rmSync(scratch, { recursive: true, force: true });
});

test('the unchanged pipeline stops every attempt', async () => {
  const build = join(REPO, 'dist');
  expect([...(await bringOut(together, TOGETHER, build)), ...(await bringOut(lone, LONE, build))]).toEqual([]);
});

test("the traps are real: plain git over the agent's files springs them", () => {
  together.restore();
  const run = join(stage.context.stateDir, 'tasks/together/run');
  const copy = join(scratch, 'trap');
  execFileSync('cp', ['-a', join(run, 'upper'), copy]);
  for (const name of ['.git', 'pipe', 'sock', 'piped']) rmSync(join(copy, name), { recursive: true, force: true });
  execFileSync('cp', ['-a', join(run, 'git'), join(copy, '.git')]);
  for (const args of [['status'], ['diff'], ['add', '-A'], ['-c', 'core.fsmonitor=', 'checkout', '-f', 'HEAD']])
    try {
      execFileSync('git', ['-c', 'safe.directory=*', ...args], { cwd: copy, stdio: 'ignore', timeout: 20_000 });
    } catch {
      // The planted programs are no working filters, so git may fail.
    }
  expect(readdirSync(together.road.ran)).toEqual(expect.arrayContaining(['fsmonitor', 'hook']));
});

test.for(BUILDS.map((mutants) => [mutants.map(({ name }) => name).join('", "'), mutants] as const))(
  'without "%s", attempts succeed',
  { timeout: 120_000 },
  async ([, mutants]) => {
    const expected = mutants.flatMap(({ attacks }) => attacks);
    const alone = LONE.filter(({ id }) => expected.includes(id));
    const build = buildWith(mutants);
    const found = alone.length > 0 ? await bringOut(lone, alone, build) : await bringOut(together, TOGETHER, build);
    for (const { name, attacks } of mutants) if (!attacks.every((id) => found.includes(id))) unnoticed.push(name);
    expect(found).toEqual(expect.arrayContaining(expected));
  },
);

test('every protection is missed by an attempt', () => {
  expect(unnoticed).toEqual([]);
});

/** The work of an agent, still in its sandbox; `restore` puts it back. */
interface Work {
  readonly road: Road;
  restore(): void;
}

async function createWork(attacks: readonly GitAttack[], name: string): Promise<Work> {
  const { road, started } = await leaveWork(stage, attacks, name);
  const { stateDir } = stage.context;
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

/** The attempts that succeed when this build brings the work out. */
async function bringOut(work: Work, attacks: readonly GitAttack[], build: string): Promise<string[]> {
  work.restore();
  const before = await ownState(stage, work.road);
  using worker = startWorker(work.road.project, build);
  const brought = await worker.run(['bring-out', work.road.name]);
  const refused = brought.stdout.includes('What came out of the sandbox was refused');
  if (brought.exitCode !== 0 && !(refused && attacks.length === 1)) return [NOTHING_COMES];
  const after = await lookAndMerge(stage, { ...work.road, before }, brought, attacks.length === 1, worker.run);
  return attacks.filter((one) => one.judge(after).length > 0).map(({ id }) => id);
}

function startWorker(cwd: string, build: string): Disposable & { run: RunAgs } {
  const script = fileURLToPath(new URL('pipeline-worker.mjs', import.meta.url));
  const env = Object.fromEntries(Object.entries(stage.context.env).filter(([, value]) => value !== undefined));
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

function buildWith(mutants: readonly PipelineMutant[]): string {
  const copy = mkdtempSync(join(scratch, 'build-'));
  const dist = join(copy, 'dist');
  cpSync(join(REPO, 'dist'), dist, { recursive: true, filter: (path) => !/\/dist\/(bundle|web)(\/|$)/.test(path) });
  cpSync(join(REPO, 'package.json'), join(copy, 'package.json'));
  symlinkSync(join(REPO, 'node_modules'), join(copy, 'node_modules'));
  for (const [file, text] of SOURCE.edit(mutants.flatMap(({ pieces }) => pieces))) {
    const { code } = transformSync(file, text, { typescript: { rewriteImportExtensions: 'rewrite' } });
    writeFileSync(join(dist, file.replace(/^src\//, '').replace(/\.ts$/, '.js')), code);
  }
  return dist;
}
