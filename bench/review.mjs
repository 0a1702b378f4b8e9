// bench/review.mjs: the time to show a sandbox's changes, and to find hidden files.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { interleave, measure } from './measure.mjs';
import { cpu, difference, ms, ratio, spread, wall } from './stats.mjs';
import { run } from './fixture.mjs';

export function benchReview(fixture, { path, files, label }, { cases }) {
  const actor = fixture.actors.user;
  const worktree = join(actor.home, 'reviewed');
  run(actor, ['git', 'worktree', 'add', '-q', '--detach', worktree], { cwd: path });
  const rows = cases.map(({ changes, rounds }) => {
    const runs = { first: [], again: [], git: [] };
    for (let round = 0; round < rounds; round += 1) {
      const name = `review-${changes}-${round}`;
      // `ags exec` captures changes when it ends; forgetting that capture measures it separately.
      run(
        actor,
        fixture.ags('exec', '--review', 'later', '--name', name, '--', 'sh', '-c', changeScript(changes, files)),
        { cwd: path },
      );
      forgetCapture(actor, name);
      runs.first.push(review(fixture, actor, path, name, changes));
      runs.again.push(review(fixture, actor, path, name, changes));
      runs.git.push(gitReview(actor, worktree, changes, files));
      run(actor, fixture.ags('rm', '--yes', name), { cwd: path });
    }
    return { changes, rounds, runs };
  });
  return {
    title: 'Seeing what changed',
    text: `\`ags review --json\` after a sandbox that modified files in a repository of ${label}: it takes them out as checked git objects, compares them with the user's tree and sorts each file into its lane. "Again" is the same command a second time. For comparison: \`git add -A && git diff --cached --raw\` on the same changes in a worktree, which checks nothing.`,
    tables: [
      {
        head: ['changed files', 'first', 'processor time', 'again', 'git', 'first, times git'],
        rows: rows.map(({ changes, runs }) => [
          String(changes),
          ms(wall(runs.first)),
          ms(cpu(runs.first)),
          ms(wall(runs.again)),
          ms(wall(runs.git)),
          `${spread(ratio(wall(runs.first), wall(runs.git)))} ×`,
        ]),
      },
    ],
    bars: [],
  };
}

function changeScript(changes, files) {
  const step = Math.floor(files / changes);
  return `i=0; while [ $i -lt ${changes} ]; do n=$((i * ${step})); echo changed >> src/d$((n / 100))/f$n.txt; i=$((i + 1)); done`;
}

function forgetCapture(actor, name) {
  const tasks = join(actor.home, '.local/state/ags/tasks');
  const task = readdirSync(tasks).find((id) => id.startsWith(name));
  const capture = join(tasks, task ?? '', 'capture.json');
  if (task === undefined || !existsSync(capture)) throw new Error(`the task ${name} has no capture to forget`);
  rmSync(capture);
}

function review(fixture, actor, cwd, name, changes) {
  const result = measure(actor, fixture.ags('review', name, '--json'), { cwd });
  const seen = JSON.parse(result.stdout).changes.length;
  if (seen !== changes) throw new Error(`ags review shows ${seen} changes instead of ${changes}`);
  return result;
}

function gitReview(actor, worktree, changes, files) {
  run(actor, ['sh', '-c', changeScript(changes, files)], { cwd: worktree });
  const result = measure(actor, ['sh', '-c', 'git add -A && git diff --cached --raw'], { cwd: worktree });
  run(actor, ['git', 'reset', '-q', '--hard'], { cwd: worktree });
  return result;
}

export function benchScan(fixture, { path, label }, effort) {
  const actor = fixture.actors.user;
  const cache = join(actor.home, '.cache/ags');
  const exec = () => measure(actor, fixture.ags('exec', '--', 'true'), { cwd: path });
  const runs = interleave(effort, {
    cold: () => {
      const memories = readdirSync(cache).filter((name) => name.startsWith('scan-'));
      if (memories.length === 0) throw new Error('there is no memory of a scan to forget');
      for (const name of memories) rmSync(join(cache, name));
      return exec();
    },
    warm: () => exec(),
  });
  return {
    title: 'Finding the secrets to hide',
    text: `\`ags exec -- true\` over ${label} files: once without the cache of the last scan, once with it; ${runs.warm.length} rounds. (In both cases the kernel has the directories in memory.)`,
    tables: [
      {
        head: ['', 'wall time', 'processor time'],
        rows: [
          ['first scan', ms(wall(runs.cold)), ms(cpu(runs.cold))],
          ['later ones', ms(wall(runs.warm)), ms(cpu(runs.warm))],
          [
            'difference',
            spread(difference(wall(runs.cold), wall(runs.warm)), 'ms'),
            spread(difference(cpu(runs.cold), cpu(runs.warm)), 'ms'),
          ],
        ],
      },
    ],
    bars: [],
  };
}
