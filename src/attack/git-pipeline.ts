// attack/git-pipeline.ts: a hostile agent prepares its repository; then the work is brought out, shown and merged, by the same commands
// that a user types.
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { Aftermath, GitAttack } from './table/attack.ts';
import { difference, snapshot } from './table/canaries.ts';
import { userGit } from '../git/host-git.ts';
import { commitSample } from '../git/staging/new-repository.ts';
import { run, type Finished } from '../lib/process/process.ts';
import { visible } from '../lib/sanitize.ts';
import { configure } from './settings.ts';
import type { AttackedProject } from './attacked-project.ts';

const PROGRESS = 'src/progress.txt';
const FILES = { 'README.md': '# project\n', 'src/a.txt': 'one\ntwo\nthree\n', [PROGRESS]: 'as it was\n' };

/** An agent's work, in its sandbox or brought out, and the state of the user's repository before it. */
export interface Road {
  readonly name: string;
  readonly project: string;
  readonly ran: string;
  readonly sibling: string;
  readonly base: string;
  readonly before: ReadonlyMap<string, string>;
}

export type RunAgs = (args: readonly string[]) => Promise<Finished>;

export async function attackGitPipeline(
  stage: AttackedProject,
  attacks: readonly GitAttack[],
  name: string,
): Promise<Aftermath> {
  const { road, started } = await leaveWork(stage, attacks, name);
  return lookAndMerge(stage, road, started, attacks.length === 1, (args) => ags(stage, road.project, args));
}

/** Runs all attempts of the agent and brings its work out. */
export async function leaveWork(
  stage: AttackedProject,
  attacks: readonly GitAttack[],
  name: string,
): Promise<{ road: Road; started: Finished }> {
  const place = await makeProject(stage, name);
  const road = { ...place, name, before: await ownState(stage, place) };
  const script = scriptOf(attacks, { RAN: place.ran, SIBLING: place.sibling, BASE: place.base });
  const args = ['start', name, script, '--agent', '/bin/sh', ...backendFlag(stage)];
  const started = await ags(stage, place.project, args);
  const [, lacks] = new RegExp(`${LACKS} ([a-z ]+)`).exec(started.stdout.toString('utf8')) ?? [];
  if (lacks !== undefined)
    throw new AgsError(
      'attack.impossible',
      `Programs that the attempts on git need are missing in the sandbox: ${lacks}.`,
      {
        hint: 'Add them to the image of the sandboxes.',
      },
    );
  return { road, started };
}

/** `mayRefuse`: with a single attempt, ags may refuse all of the agent's work. */
export async function lookAndMerge(
  stage: AttackedProject,
  road: Road,
  brought: Finished,
  mayRefuse: boolean,
  run: RunAgs,
): Promise<Aftermath> {
  const { name, project, ran, base } = road;
  const git = gitIn(stage, project);
  const branch = `refs/heads/ags/${name}`;
  const tree = (await git('ls-tree', '-r', branch)).split('\n').filter((line) => line !== '');
  const refused = mayRefuse && REFUSED.test(brought.stdout.toString('utf8'));
  // The agent writes this file last, so all earlier attempts were made.
  if (!refused && !tree.some((line) => line.endsWith('\tlast.txt'))) throw failed('start', brought);
  const shown = await run(['diff', name]);
  const changed = difference(road.before, await ownState(stage, road)).map((line) => line.split(':')[0] ?? '');
  const after = {
    tree,
    diff: shown.stdout.toString('utf8'),
    commits: (await git('log', '--format=%s', `${base}..${branch}`)).split('\n'),
  };
  if (refused) return { ...after, ran: readdirSync(ran), changed, merged: [], left: [], files: filesOf(project) };
  // The user is editing a file that the agent has changed as well.
  writeFileSync(join(project, PROGRESS), 'in progress\n');
  await run(['merge', name, '--json']);
  if (readFileSync(join(project, PROGRESS), 'utf8') !== 'in progress\n') changed.push('work in progress');
  writeFileSync(join(project, PROGRESS), FILES[PROGRESS] ?? '');
  const merged = await run(['merge', name, '--json']);
  const told = merged.stdout.toString('utf8');
  // A merge that leaves everything out tells so, and exits with 1.
  if (told === '') throw failed('merge', merged);
  const { files, risky } = JSON.parse(told) as { files: string[]; risky: string[] };
  return { ...after, ran: readdirSync(ran), changed, merged: files, left: risky, files: filesOf(project) };
}

function gitIn({ context }: AttackedProject, cwd: string): (...args: string[]) => Promise<string> {
  return async (...args) => (await userGit(args, { cwd, home: context.home })).stdout.toString('utf8');
}

/** Nothing was brought out; the task keeps the work. */
const REFUSED = /What came out of the sandbox was refused/;

/** Creates a project with the user's configuration. */
export async function makeProject(
  { context, settings, ...stage }: AttackedProject,
  name: string,
): Promise<Record<'project' | 'sibling' | 'ran' | 'base', string>> {
  const dir = join(stage.dir, name);
  const [project, sibling, ran] = ['project', 'sibling', 'ran'].map((name) => join(dir, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [sibling, ran]) mkdirSync(path, { recursive: true });
  // Only the sandbox keeps the attempts from writing here, whatever user it runs as.
  chmodSync(ran, 0o777);
  writeFileSync(join(sibling, 'private.txt'), `${stage.word}\n`);
  await commitSample(sibling);
  for (const [path, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(project, path)), { recursive: true });
    writeFileSync(join(project, path), text);
  }
  symlinkSync(relative(project, ran), join(project, 'lnk'));
  await configure(context, project, settings, false);
  const base = await commitSample(project);
  // A branch that an attempt tries to delete.
  writeFileSync(join(project, '.git/refs/heads/keep'), `${base}\n`);
  return { project, sibling, ran, base };
}

/** The user's branches, settings and hooks, and another project. */
export async function ownState(
  stage: AttackedProject,
  { project, sibling }: Pick<Road, 'project' | 'sibling'>,
): Promise<Map<string, string>> {
  const git = gitIn(stage, project);
  const refs = (await git('for-each-ref', '--format=%(refname)%00%(objectname)'))
    .split('\n')
    .map((line) => line.split('\0') as [string, string])
    .filter(([name]) => name !== '' && !name.startsWith('refs/heads/ags/'));
  const files = ['.git/config', '.git/HEAD'].map((path): [string, string] => [
    path,
    readFileSync(join(project, path), 'utf8'),
  ]);
  const hooks = readdirSync(join(project, '.git')).includes('hooks') ? readdirSync(join(project, '.git/hooks')) : [];
  return new Map([...refs, ...files, ['.git/hooks', hooks.join(' ')], ...snapshot([sibling], [])]);
}

/** Programs that the attempts need besides the shell. A missing one must not count as an attempt that was stopped. */
export const PROGRAMS = ['git', 'chmod', 'cp', 'cut', 'dirname', 'ln', 'mkdir', 'mkfifo', 'perl', 'rm'];
const LACKS = 'not there:';

/** Each attempt runs in its own shell, so that one failure stops no other. The shell reads the script from its input. */
export function scriptOf(attacks: readonly GitAttack[], places: Readonly<Record<string, string>>): string {
  return [
    '# attack',
    `lacks=; for program in ${PROGRAMS.join(' ')}; do command -v $program > /dev/null || lacks="$lacks $program"; done`,
    `if [ "$lacks" ]; then echo "${LACKS}$lacks"; exit 3; fi`,
    ...Object.entries(places).map(([name, value]) => `${name}='${value}'`),
    'git config user.name A; git config user.email a@b; exec 2> /dev/null',
    'git init -q lib; echo x > lib/x; (cd lib; git config user.name A; git config user.email a@b; git add -A; git commit -qm lib)',
    'mkdir -p deep/er; cp -r lib/.git bare.git; cp -r lib deep/er/lib; mkdir -p .git/info',
    `echo agent > ${PROGRESS}`,
    ...attacks.map(({ sh }) => `( ${sh} ) < /dev/null`),
    'echo last > last.txt',
    'exit 0',
  ].join('\n');
}

function filesOf(project: string): string[] {
  return readdirSync(project, { recursive: true, encoding: 'utf8' })
    .filter((path) => path !== '.git' && !path.startsWith('.git/'))
    .map((path) => ({ path, stat: lstatSync(join(project, path)) }))
    .filter(({ stat }) => !stat.isDirectory() && !stat.isSymbolicLink())
    .map(({ path, stat }) => `${(stat.mode & 0o7777).toString(8)} ${stat.nlink} ${path}`);
}

function backendFlag({ flags }: AttackedProject): string[] {
  return flags.backend === undefined ? [] : ['--backend', flags.backend];
}

function ags(stage: AttackedProject, cwd: string, args: readonly string[]): Promise<Finished> {
  const env = Object.entries(stage.context.env).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return run([...stage.context.self, ...args], { cwd, env: Object.fromEntries(env), timeoutMs: 120_000 });
}

function failed(what: string, { stdout, stderr }: Finished): AgsError {
  const said = visible(`${stderr.trim()} ${stdout.toString('utf8').trim()}`.slice(-900));
  return new AgsError('attack.impossible', `The attacker's work could not be processed (ags ${what}): ${said}`, {
    hint: 'See: ags doctor',
  });
}
