// bench/start-up.mjs: the time to run nothing: `ags exec -- true` and its alternatives.
import { measure, interleave } from './measure.mjs';
import { cpu, MEASURES, ms, ratio, spread, wall } from './stats.mjs';
import { makeRepository, settle, wait } from './fixture.mjs';

const LIMIT_OWN = 1.5;
const LIMIT_SRT = 0.35;

// Behind an inspecting proxy, Node reads the system's certificates and starts much more slowly.
const { NODE_EXTRA_CA_CERTS } = process.env;
const ENVIRONMENTS = [
  ...(NODE_EXTRA_CA_CERTS === undefined
    ? []
    : [[', with NODE_EXTRA_CA_CERTS as it is set here', { NODE_EXTRA_CA_CERTS }]]),
  [NODE_EXTRA_CA_CERTS === undefined ? '' : ', without NODE_EXTRA_CA_CERTS', {}],
];

export async function benchStartUp(fixture, effort) {
  const parts = [];
  for (const actor of Object.values(fixture.actors)) {
    const project = makeRepository(actor, 'project', 50);
    await wait(2100);
    settle(actor, project);
    for (const [where, env] of ENVIRONMENTS)
      parts.push({
        actor,
        where,
        runs: compare(fixture, { ...actor, env: { ...actor.env, ...env } }, project, effort),
      });
  }
  return {
    title: 'Starting a sandbox',
    text: `\`true\` in a repository of 50 files; ${parts[0].runs.ags.length} rounds. \`bwrap\` runs directly, with the same namespaces and a read-only system, and does nothing else. \`srt\` is @anthropic-ai/sandbox-runtime used as its documentation shows, without settings. An ags sandbox adds a copy-on-write workspace, a private git directory, hidden secrets, limits, a system call filter, and their removal.`,
    tables: parts.map(table),
    bars: parts.flatMap(bars),
    chart: chart(parts[0].runs),
  };
}

function compare(fixture, actor, project, effort) {
  const inProject = { cwd: project };
  const variants = {
    node: () => measure(actor, [process.execPath, '-e', '0'], inProject),
    bwrap: () => measure(actor, plainBwrap(project), inProject),
    ags: () => measure(actor, fixture.ags('exec', '--', 'true'), inProject),
    ...(fixture.srt === null ? {} : { srt: () => measure(actor, fixture.srt('true'), inProject) }),
  };
  // The first run of each is atypical: it fills caches, and ags tests a whole sandbox once per boot.
  for (const variant of Object.values(variants)) variant();
  return interleave(effort, variants);
}

/** The command line of a careful user. */
export function plainBwrap(project, command = ['true']) {
  return [
    'bwrap',
    '--unshare-user',
    '--unshare-pid',
    '--unshare-net',
    '--unshare-ipc',
    '--unshare-uts',
    '--unshare-cgroup',
    '--die-with-parent',
    '--new-session',
    '--cap-drop',
    'ALL',
    '--clearenv',
    '--setenv',
    'PATH',
    '/usr/bin:/bin',
    '--ro-bind',
    '/usr',
    '/usr',
    '--symlink',
    'usr/bin',
    '/bin',
    '--symlink',
    'usr/lib',
    '/lib',
    '--symlink',
    'usr/lib64',
    '/lib64',
    '--ro-bind',
    '/etc',
    '/etc',
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    '--tmpfs',
    '/tmp',
    '--bind',
    project,
    project,
    '--chdir',
    project,
    '--',
    ...command,
  ];
}

const LABELS = { node: '`node -e 0`', bwrap: '`bwrap … true`', ags: '**`ags exec -- true`**', srt: '`srt true`' };

function table({ actor, where, runs }) {
  const own = (get) => ratio(get(runs.ags), get(runs.node), get(runs.bwrap));
  return {
    caption: `${actor.name === 'root' ? 'As root' : 'As an ordinary user'}${where}`,
    head: ['command', 'wall time', 'processor time', 'ags is, by wall time', 'by processor time'],
    rows: [
      ...Object.keys(runs).map((name) => [
        LABELS[name],
        ms(wall(runs[name])),
        ms(cpu(runs[name])),
        ...(name === 'ags'
          ? ['', '']
          : MEASURES.map(({ get }) => `${spread(ratio(get(runs.ags), get(runs[name])))} ×`)),
      ]),
      ['node + bwrap', '', '', ...MEASURES.map(({ get }) => `${spread(own(get))} ×`)],
    ],
  };
}

function bars({ actor, where, runs }) {
  const who = `${actor.name === 'root' ? 'as root' : 'as a user'}${where}`;
  return MEASURES.flatMap(({ what, get }) => [
    {
      name: `ags exec -- true, ${who}: ${what} over node + bwrap`,
      value: ratio(get(runs.ags), get(runs.node), get(runs.bwrap)),
      atMost: LIMIT_OWN,
    },
    ...(runs.srt === undefined
      ? []
      : [
          {
            name: `ags exec -- true, ${who}: ${what} over srt`,
            value: ratio(get(runs.ags), get(runs.srt)),
            atMost: LIMIT_SRT,
          },
        ]),
  ]);
}

function chart(runs) {
  return {
    title: 'Run nothing in a sandbox (wall time)',
    unit: 'ms',
    bars: Object.keys(runs).map((name) => ({
      label: LABELS[name].replaceAll(/[`*]/g, ''),
      values: wall(runs[name]),
      ours: name === 'ags',
    })),
  };
}
