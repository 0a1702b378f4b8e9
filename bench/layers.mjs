// bench/layers.mjs: the time to prepare an agent's workspace, by the number of files: the first snapshot, the next commit, and each further
// task; compared with git worktrees and clones.
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { measure } from './measure.mjs';
import { medianRatio, ms, number, summary, wall } from './stats.mjs';
import { calm, filePath, run } from './fixture.mjs';

const CHANGED = 10;
const LIMIT_NEXT = 10;
const LIMIT_FURTHER = 100;

export async function benchLayers(root, fixture, repositories, { rounds, further }) {
  const actor = fixture.actors.user;
  const code = join(fixture.dir, 'code/dist');
  cpSync(join(root, 'dist'), code, { recursive: true });
  cpSync(join(root, 'package.json'), join(fixture.dir, 'code/package.json'));
  const results = new Map();
  for (const { files, path } of repositories)
    results.set(files, benchOne(fixture, actor, code, path, { rounds, further, files }));
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

function benchOne(fixture, actor, code, path, { rounds, further, files }) {
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
  // Looks at the machine and copies /etc, once and independent of the repository.
  ready(['warm']);
  for (let round = 0; round < rounds; round += 1) {
    forget();
    calm(fixture);
    found.first.push(...ready([`first-${round}`]));
    changeFiles(actor, path, round, files);
    calm(fixture);
    found.next.push(...ready([`next-${round}`]));
    found.further.push(...ready(Array.from({ length: further + 1 }, (_, i) => `further-${round}-${i}`)).slice(1));
    const [worktree, clone] = ['worktree', 'clone'].map((name) => join(actor.home, `${name}-layers-${files}-${round}`));
    calm(fixture);
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
        `${number(medianRatio(worktree, further))} ×`,
      ];
    }),
  };
}

function bars(most, results) {
  if (most.files < 100_000) return [];
  const { next, further, worktree } = results.get(most.files);
  const bar = (name, ours, atLeast) => ({
    name: `${name} of ${most.label} files: wall time of git worktree add, times ours`,
    value: summary([medianRatio(worktree, ours)]),
    atLeast,
  });
  return [bar('the next commit', next, LIMIT_NEXT), bar('a further task', further, LIMIT_FURTHER)];
}
