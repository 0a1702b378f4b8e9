// bench/layers.mjs: how long it takes until the workspace of an agent is ready, by the number of files in the repository: the first
// snapshot, the next commit, and every further task; beside what git offers for it.
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { measure } from './measure.mjs';
import { ms, number, summary, wall } from './stats.mjs';
import { calm, filePath, run } from './world.mjs';

const CHANGED = 10;
const LIMIT_NEXT = 10;
const LIMIT_FURTHER = 100;

export async function benchLayers(root, world, repositories, { rounds, further }) {
  const actor = world.actors.user;
  const code = join(world.dir, 'code/dist');
  cpSync(join(root, 'dist'), code, { recursive: true });
  cpSync(join(root, 'package.json'), join(world.dir, 'code/package.json'));
  const results = new Map();
  for (const { files, path } of repositories)
    results.set(files, benchOne(world, actor, code, path, { rounds, further, files }));
  return {
    title: 'Layers of an agent',
    text: [
      `The time until a workspace is ready, in a running runner: layers, private git directory, index, the run's own directories; ${further} further tasks. "Next commit" has ${CHANGED} changed files. Nothing is mounted yet; that is part of starting a sandbox (above).`,
      '`git worktree add` and `git clone --local` run in the same repositories, as whole commands; each makes one workspace, which the next task cannot share.',
    ].join('\n\n'),
    tables: [table(repositories, results)],
    bars: bars(repositories.at(-1), results),
  };
}

function benchOne(world, actor, code, path, { rounds, further, files }) {
  const found = { first: [], next: [], further: [], worktree: [], clone: [] };
  const head = () => run(actor, ['git', 'rev-parse', 'HEAD'], { cwd: path }).trim();
  const ready = (tasks) => {
    const wish = JSON.stringify({ tasks, commit: head() });
    const { stdout } = measure(actor, [process.execPath, join(import.meta.dirname, 'layers-run.mjs'), code, wish], {
      cwd: path,
    });
    return JSON.parse(stdout).map(({ readyMs }) => ({ wallMs: readyMs }));
  };
  const state = join(actor.home, '.local/state/ags');
  const forget = () => run(actor, ['rm', '-rf', join(state, 'layers'), join(state, 'tasks')]);
  // The machine is looked at once, and /etc copied: neither has to do with the repository.
  ready(['warm']);
  for (let round = 0; round < rounds; round += 1) {
    forget();
    calm(world);
    found.first.push(...ready([`first-${round}`]));
    changeFiles(actor, path, round, files);
    calm(world);
    found.next.push(...ready([`next-${round}`]));
    found.further.push(...ready(Array.from({ length: further + 1 }, (_, i) => `further-${round}-${i}`)).slice(1));
    const [worktree, clone] = ['worktree', 'clone'].map((name) => join(actor.home, `${name}-layers-${files}-${round}`));
    calm(world);
    found.worktree.push(measure(actor, ['git', 'worktree', 'add', '-q', '--detach', worktree], { cwd: path }));
    found.clone.push(measure(actor, ['git', 'clone', '-q', '--local', path, clone]));
    run(actor, ['git', 'worktree', 'remove', '--force', worktree], { cwd: path });
    run(actor, ['rm', '-rf', clone]);
  }
  forget();
  return found;
}

function changeFiles(actor, path, round, files) {
  const names = Array.from({ length: CHANGED }, (_, i) => filePath(Math.floor((i * files) / CHANGED)));
  run(actor, ['sh', '-c', 'for f in "$@"; do echo "$0" >> "$f"; done', `round ${round}`, ...names], { cwd: path });
  run(actor, ['git', 'commit', '-qam', `round ${round}`], { cwd: path });
}

function table(repositories, results) {
  return {
    caption: 'until a workspace is ready',
    head: [
      'files',
      'first snapshot',
      'next commit',
      'further task',
      'git worktree add',
      'git clone --local',
      'worktree, times a further task',
    ],
    rows: repositories.map(({ files, label }) => {
      const { first, next, further, worktree, clone } = results.get(files);
      return [
        label,
        ...[first, next, further, worktree, clone].map((runs) => ms(wall(runs))),
        `${number(times(worktree, further))} ×`,
      ];
    }),
  };
}

function times(theirs, ours) {
  return summary(wall(theirs)).median / summary(wall(ours)).median;
}

function bars(most, results) {
  if (most.files < 100_000) return [];
  const { next, further, worktree } = results.get(most.files);
  const bar = (name, ours, atLeast) => ({
    name: `${name} of ${most.label} files: wall time of git worktree add, times ours`,
    value: summary([times(worktree, ours)]),
    atLeast,
  });
  return [bar('the next commit', next, LIMIT_NEXT), bar('a further task', further, LIMIT_FURTHER)];
}
