// bench/workspace.mjs: the cost of giving a command its own copy of a repository, by its number of files.
import { join } from 'node:path';
import { interleave, measure } from './measure.mjs';
import { plainBwrap } from './start-up.mjs';
import { cpu, MEASURES, medianRatio, ms, number, ratio, spread, summary, wall } from './stats.mjs';
import { calm, emptyDirectory, makeRepository, run, settle, wait } from './fixture.mjs';

const LIMIT_GROWTH = 1.5;
const LIMIT_WORKTREE = 100;

/** Creates all repositories before any measurement, because writing them keeps the disk busy for a while. */
export async function makeRepositories(fixture, sizes) {
  const actor = fixture.actors.user;
  const repositories = sizes.map((files) => ({
    files,
    label: number(files).replace('.00', ''),
    path: makeRepository(actor, `repository-${files}`, files),
  }));
  await wait(2100);
  for (const { path } of repositories) settle(actor, path);
  calm(fixture);
  await wait(2100);
  return repositories;
}

export async function benchWorkspace(fixture, repositories, { peerRounds, ...effort }) {
  const actor = fixture.actors.user;
  const empty = emptyDirectory(actor, 'empty');
  const exec =
    (cwd, ...flags) =>
    () =>
      measure(actor, fixture.ags('exec', ...flags, '--', 'true'), { cwd });
  const variants = {
    node: () => measure(actor, [process.execPath, '-e', '0'], { cwd: empty }),
    bwrap: () => measure(actor, plainBwrap(empty), { cwd: empty }),
    none: exec(empty),
    overlay: mountOverlay(actor),
    ...Object.fromEntries(repositories.map(({ files, path }) => [files, exec(path)])),
  };
  for (const variant of Object.values(variants)) variant();
  const ours = interleave(effort, variants);
  const peers = benchPeers(fixture, actor, repositories, peerRounds);
  return {
    title: 'Making a workspace',
    text: [
      `\`ags exec -- true\` as a whole, over clean repositories of small files, a hundred in each directory; ${ours.none.length} rounds, warm. "The workspace" is the part that makes and removes the command's copy: the extra time compared with an empty directory (the scan, the git directory, the index) plus the mounting of an overlay, measured separately. "Over node + bwrap" subtracts only node and bwrap from the whole, so it includes everything else that ags does.`,
      '`git worktree add` and `git clone --shared` run in the same repositories; `git worktree remove` and `rm -rf` remove the results. They run nothing and isolate nothing.',
    ].join('\n\n'),
    tables: [oursTable(repositories, ours), peersTable(repositories, ours, peers)],
    bars: bars(repositories, ours, peers),
    chart: {
      title: `A copy of ${repositories.at(-1).label} files (wall time; ags with the whole sandbox)`,
      unit: 'ms',
      bars: [
        { label: 'ags exec -- true', values: wall(ours[repositories.at(-1).files]), ours: true },
        { label: 'git worktree add', values: wall(peers.get(repositories.at(-1).files).worktree) },
        { label: 'git clone --shared', values: wall(peers.get(repositories.at(-1).files).clone) },
      ],
    },
  };
}

/** Mounts and unmounts an overlay with the programs of ags alone. */
function mountOverlay(actor) {
  const dir = emptyDirectory(actor, 'overlay');
  run(actor, ['mkdir', 'lower', 'upper', 'work', 'merged'], { cwd: dir });
  const options = 'userxattr,lowerdir=lower,upperdir=upper,workdir=work';
  return () =>
    measure(
      actor,
      [
        'unshare',
        '--user',
        '--map-root-user',
        '--mount',
        '--',
        'mount',
        '-t',
        'overlay',
        'overlay',
        '-o',
        options,
        'merged',
      ],
      { cwd: dir },
    );
}

// Creates all copies before removing any: ext4 reuses the space of removed files late, and searching for other space slows git several times.
function benchPeers(fixture, actor, repositories, peerRounds) {
  const results = new Map(
    repositories.map(({ files }) => [files, { worktree: [], worktreeRemove: [], clone: [], cloneRemove: [] }]),
  );
  const copies = repositories.flatMap(({ path, files }) =>
    Array.from({ length: peerRounds(files) }, (_, round) => ({
      path,
      result: results.get(files),
      worktree: join(actor.home, `worktree-${files}-${round}`),
      clone: join(actor.home, `clone-${files}-${round}`),
    })),
  );
  calm(fixture);
  for (const { path, result, worktree, clone } of copies) {
    result.worktree.push(measure(actor, ['git', 'worktree', 'add', '-q', '--detach', worktree], { cwd: path }));
    result.clone.push(measure(actor, ['git', 'clone', '-q', '--shared', path, clone]));
  }
  calm(fixture);
  for (const { path, result, worktree, clone } of copies) {
    result.worktreeRemove.push(measure(actor, ['git', 'worktree', 'remove', worktree], { cwd: path }));
    result.cloneRemove.push(measure(actor, ['rm', '-rf', clone]));
  }
  return results;
}

function oursTable(repositories, ours) {
  const least = repositories[0];
  return {
    caption: 'ags',
    head: [
      'files',
      'whole command',
      'processor time',
      'the workspace',
      'over node + bwrap',
      `times the ${least.label}-file case`,
    ],
    rows: [
      [
        'empty directory',
        ms(wall(ours.none)),
        ms(cpu(ours.none)),
        ms(wall(ours.overlay)),
        ms(wall(aboveOwn(ours, 'none'))),
        '',
      ],
      ...repositories.map(({ files, label }) => [
        label,
        ms(wall(ours[files])),
        ms(cpu(ours[files])),
        ms(wall(workspaceOnly(ours, files))),
        ms(wall(aboveOwn(ours, files))),
        files === least.files ? '' : `${spread(ratio(wall(ours[files]), wall(ours[least.files])))} ×`,
      ]),
    ],
  };
}

function peersTable(repositories, ours, peers) {
  const rows = repositories.flatMap(({ files, label }) => {
    const peer = peers.get(files);
    return [
      ['`git worktree add`', peer.worktree, peer.worktreeRemove],
      ['`git clone --shared`', peer.clone, peer.cloneRemove],
    ].map(([name, made, removed]) => [
      label,
      name,
      ms(wall(made)),
      ms(cpu(made)),
      ms(wall(removed)),
      ...[ours[files], aboveOwn(ours, files), workspaceOnly(ours, files)].map(
        (part) => `${number(medianRatio(made, part))} ×`,
      ),
    ]);
  });
  return {
    caption: 'git',
    head: [
      'files',
      'command',
      'make',
      'processor time',
      'remove',
      'slower than all of ags',
      'than ags over node + bwrap',
      'than its workspace',
    ],
    rows,
  };
}

// A difference to an empty directory below zero is noise and counts as zero; mounting the overlay always remains.
const workspaceOnly = (ours, files) =>
  combine(ours, (get, i) => Math.max(0, get(ours[files][i]) - get(ours.none[i])) + get(ours.overlay[i]));
const aboveOwn = (ours, files) =>
  combine(ours, (get, i) => get(ours[files][i]) - get(ours.node[i]) - get(ours.bwrap[i]));

function combine(ours, formula) {
  return ours.none.map((_, i) => ({ wallMs: formula((one) => one.wallMs, i), cpuMs: formula((one) => one.cpuMs, i) }));
}

function bars(repositories, ours, peers) {
  const [least, most] = [repositories[0], repositories.at(-1)];
  return [
    ...MEASURES.map(({ what, get }) => ({
      name: `ags exec -- true over ${most.label} files: ${what}, times the ${least.label}-file case`,
      value: ratio(get(ours[most.files]), get(ours[least.files])),
      atMost: LIMIT_GROWTH,
    })),
    ...(most.files < 100_000
      ? []
      : MEASURES.map(({ what, get }) => ({
          name: `a workspace of ${most.label} files: ${what} of git worktree add, times that of the workspace`,
          value: summary([medianRatio(peers.get(most.files).worktree, workspaceOnly(ours, most.files), get)]),
          atLeast: LIMIT_WORKTREE,
        }))),
  ];
}
