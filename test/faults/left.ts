// test/faults/left.ts: finds orphaned processes, mounts, control groups, containers, sockets, locks and files through the kernel, the engine
// and the file system.
import { execFileSync, spawnSync } from 'node:child_process';
import { lstatSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { podman } from '../sandbox/podman-user.ts';
import { list, taskNames } from './checker.ts';
import type { Ground } from './ground.ts';

/** `tag` is in the names of this ground's tasks only. Ending processes get a moment. */
export async function findLeft(ground: Ground, tag: string, withinMs = 5000): Promise<string[]> {
  const look = (): string[] => [...running(ground), ...groups(tag)];
  for (const end = Date.now() + withinMs; Date.now() < end && look().length > 0;) await sleep(100);
  return [...look(), ...containers(ground, tag), ...mounts(ground), ...files(ground, tag)];
}

function running(ground: Ground): string[] {
  return ground.processes().map(({ pid, role, command }) => `process ${pid} (${role}): ${command.slice(0, 200)}`);
}

function groups(tag: string): string[] {
  const found = spawnSync('find', ['/sys/fs/cgroup', '-maxdepth', '5', '-type', 'd', '-name', `ags-*${tag}*`], {
    encoding: 'utf8',
  });
  return lines(found.stdout).map((dir) => `control group ${dir}`);
}

function mounts({ mountsOf, machine }: Ground): string[] {
  return lines(readFileSync(`/proc/${mountsOf}/mountinfo`, 'utf8'))
    .filter((line) => line.includes(basename(machine.root)) && line.split(' ')[4] !== machine.stateDir)
    .map((line) => `mount ${line}`);
}

/** Only for rounds with an engine, because queries are slow. */
function containers({ engine, machine }: Ground, tag: string): string[] {
  if (engine === null) return [];
  const args = ['ps', '--all', '--filter', 'label=ags.run', '--format', '{{.Names}} {{.Labels}}'];
  return lines(engine === 'podman' ? podman(machine, ...args) : execFileSync('docker', args, { encoding: 'utf8' }))
    .filter((line) => line.includes(tag))
    .map((line) => `container ${line}`);
}

function undone(stateDir: string): string[] {
  const records = [...walk(join(stateDir, 'merges'), '', /^$/)].filter((path) => /\/\d{6}\.json$/.test(path));
  return records
    .map((path) => JSON.parse(readFileSync(join(stateDir, 'merges', path), 'utf8')) as { kind: string; task: string })
    .flatMap(({ kind, task }) => (kind === 'undo' ? [task] : []));
}

function files(ground: Ground, tag: string): string[] {
  const { machine, stateDir } = ground;
  const own = [...walk(stateDir, '', STATE_CLOSED)].filter((path) => !STATE.some((known) => known.test(path)));
  const cached = list(join(machine.home, '.cache/ags')).filter((path) => !CACHE.test(path));
  const strewn = ['/run', '/tmp', '/var/tmp', '/dev/shm'].flatMap((dir) =>
    list(dir)
      .filter((name) => name.includes(tag))
      .map((name) => join(dir, name)),
  );
  const inProject = [...walk(machine.project, '', /^\.git$/)].filter((path) => basename(path).startsWith('.ags-'));
  const inGit = [...walk(join(machine.project, '.git'), '', /^$/)].filter((path) => /\.lock$|\/tmp_/.test(path));
  // An undo brings the branch of a removed task back, with its work.
  const there = new Set([...taskNames(stateDir), ...undone(stateDir)]);
  const branches = lines(machine.git('for-each-ref', '--format=%(refname:lstrip=3)', 'refs/heads/ags')).filter(
    (name) => !there.has(name.replace(/\.\d+$/, '')),
  );
  return [
    ...own.map((path) => `file in the state directory: ${path}`),
    ...cached.map((path) => `file in the cache: ${path}`),
    ...strewn.map((path) => `file ${path}`),
    ...inProject.map((path) => `file in the project: ${path}`),
    ...inGit.map((path) => `file in .git: ${path}`),
    ...branches.map((name) => `branch ags/${name} of no task`),
  ];
}

/** Directories whose content is not listed. */
const STATE_CLOSED =
  /^tasks\/[^./][^/]*\/(run|staging\.git|journal|checks|services|earlier)$|^layers\/[^/]+\/((base|given|setup|data)-[^/]+|git)$/;

/** Everything that an idle state directory may contain. */
const STATE: readonly RegExp[] = [
  /^(tasks|layers|merges|network|server|whiteout|engine-work|drafts|trust\.json|projects\.json)$/,
  /^tasks\/[^./][^/]*$/,
  /^tasks\/[^./][^/]*\/((task|run|capture|changes|checks)\.json|events\.jsonl|(agent|runner)\.log|run|staging\.git|journal|checks|services|earlier|inbox)$/,
  /^tasks\/[^./][^/]*\/inbox\/[\d-]+\.(txt|taken)$/,
  /^layers\/[^/]+(\/((base|given|setup|data)-[^/]+|git))?$/,
  /^merges\/[0-9a-f]{16}(\/(lock|\d{6}\.json))?$/,
  /^network\/[^/]+\.jsonl$/,
  /^server\/(key|entries\.json)$/,
];
const CACHE =
  /^(code-[^/]*\.bin|etc-\w+|etc\.json|(git|scan|config)-\w+\.json|ready(-\w+)?\.json|cgroup\.json|images|perl-\w+)$/;

function* walk(root: string, below: string, closed: RegExp): Generator<string> {
  for (const name of list(join(root, below))) {
    const path = below === '' ? name : `${below}/${name}`;
    yield path;
    const stat = lstatSync(join(root, path), { throwIfNoEntry: false });
    if (stat?.isDirectory() === true && !closed.test(path)) yield* walk(root, path, closed);
  }
}

const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');
