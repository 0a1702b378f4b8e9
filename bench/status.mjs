// bench/status.mjs: the first `git status` in a fresh sandbox: its time, and whether git must reread the files.
import { interleave, measure, measured, parseMeasured } from './measure.mjs';
import { cpu, ms, ratio, spread, summary, wall } from './stats.mjs';

export function benchStatus(fixture, { path, label }, effort) {
  const actor = fixture.actors.user;
  const status = ['git', 'status', '--porcelain'];
  const inside = (script) => {
    const { stdout } = measure(actor, fixture.ags('exec', '--', 'sh', '-c', script, 'sh', ...measured(status, 1)), {
      cwd: path,
    });
    return { ...parseMeasured(stdout, 'git status inside'), looked: looked(stdout) };
  };
  const traced = 'GIT_TRACE2_EVENT=/tmp/trace "$@" && cat /tmp/trace';
  // Without stat data in the index, git must read every file.
  const blind = `rm .git/index && git read-tree HEAD && ${traced}`;
  const variants = {
    native: () => {
      const { stdout } = measure(
        actor,
        [
          'sh',
          '-c',
          `rm -f "$HOME/trace"; ${traced.replaceAll('/tmp/trace', '"$HOME/trace"')}`,
          'sh',
          ...measured(status, 1),
        ],
        { cwd: path },
      );
      return { ...parseMeasured(stdout, 'git status'), looked: looked(stdout) };
    },
    inside: () => inside(traced),
    blind: () => inside(blind),
  };
  for (const variant of [variants.native, variants.inside]) variant();
  const runs = interleave(effort, variants);
  const most = (name) => Math.max(...runs[name].map((one) => one.looked));
  const row = (name, text) => [
    text,
    ms(wall(runs[name])),
    ms(cpu(runs[name])),
    name === 'native' ? '' : `${spread(ratio(wall(runs[name]), wall(runs.native)))} ×`,
    String(most(name)),
  ];
  return {
    title: 'The first `git status` inside',
    text: `Over ${label} files; ${runs.native.length} rounds, each in a fresh sandbox. Contents compared: files that git, by its own trace, could not decide from their stat data alone. The last row is the control: the same sandbox with an index without stat data.`,
    tables: [
      {
        head: ['where', 'wall time', 'processor time', 'times native', 'contents compared'],
        rows: [
          row('native', '`git status`, native, warm'),
          row('inside', '**`git status`, first, inside**'),
          row('blind', 'control: inside, without the copied index'),
        ],
      },
    ],
    bars: [
      {
        name: `the first git status inside ${label} files: contents compared`,
        value: summary([most('inside')]),
        atMost: 0,
      },
    ],
    check:
      most('blind') > 0
        ? null
        : 'the control of the git status measurement compared no contents: the count proves nothing',
  };
}

function looked(trace) {
  const found = [...trace.matchAll(/"key":"refresh\/sum_(?:lstat|scan)","value":"(\d+)"/g)].map((match) =>
    Number(match[1]),
  );
  if (found.length === 0) throw new Error('this git does not say how many files it looked at');
  return Math.max(...found);
}
