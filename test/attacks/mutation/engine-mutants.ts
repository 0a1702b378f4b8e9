// test/attacks/mutation/engine-mutants.ts: the protections of nested Docker: each row removes one, with the answer that an attempt of
// the table then gives.
import { ENGINE_GREED } from './engine-greed.ts';
import { ENGINE_ATTACKS } from '../../../src/attack/table/engine.ts';
import type { Piece } from './mutated-source.ts';

export interface EngineMutant {
  readonly name: string;
  /** The attempt that succeeds without it, and its answer. */
  readonly by: string;
  readonly finds: RegExp;
  readonly pieces: readonly Piece[];
}

const ARGS = 'sandbox/nested/engine-args.ts';
const SCRIPTS = 'sandbox/perl/user-namespace-helper.pl';
const BROKER = 'sandbox/perl/nested-broker.pl';
const one = (name: string, by: string, finds: RegExp, ...pieces: readonly Piece[]): EngineMutant => ({
  name,
  by,
  finds,
  pieces,
});
const args = (from: string, to = ''): Piece => [ARGS, from, to];
const script = (from: string, to = ''): Piece => [SCRIPTS, from, to];

/** Shows the daemon one more file, which engine-mutation.proof.test.ts has placed there. */
const beside = (from: string, to: string): Piece => {
  const meeting = '    ...bindArgs(ENGINE_KINDS.docker, input.meeting, NESTED_MEETING, false),\n';
  return args(
    meeting,
    `${meeting}    ...bindArgs(ENGINE_KINDS.docker, input.meeting.replace(${from}), '${to}', true),\n`,
  );
};
const SHOW_SOCKET = String.raw`mkdir('/run/podman'); { open my $at, '>', '/run/podman/podman.sock'; my ($from, $to) = ("/host.sock\0", "/run/podman/podman.sock\0"); syscall($mount, $from, $to, 0, 0x1000, 0) == 0 or fail('show a socket') } mkdir('/run/tmp') or fail('make /run/tmp');`;

/** The host's network, also without the network that the daemon makes. The port is random, so that nothing depends on free ports. */
const ofTheHost = (): readonly Piece[] => {
  const port = 20_000 + Math.floor(Math.random() * 10_000);
  return [
    args("    '--network',\n    'none',", "    '--network',\n    'host',"),
    script('apart(0x10000000 | 0x40000000 | 0x20000, $up, $down);', 'apart(0x10000000 | 0x20000, $up, $down);'),
    script("  syscall($setns, fileno $network, 0x40000000) == 0 or fail('enter the network of the engine');\n"),
    script("  bring_up('lo');\n"),
    args('ENGINE_PORT = 2375;', `ENGINE_PORT = ${port};`),
    args('REGISTRY_PORT = 5000;', `REGISTRY_PORT = ${port + 10_000};`),
    args("    '--rootless',", "    '--rootless', '--bridge=none', '--iptables=false', '--ip-forward=false',"),
    ['sandbox/nested/nested-engine.ts', 'gateway ? EGRESS_LISTENERS : []', 'gateway ? [] : EGRESS_LISTENERS'],
  ];
};

/** The mutants of a group share one daemon: none affects the attempts of another. */
// One row for each mutant, as a table.
// oxfmt-ignore
export const GROUPS: readonly (readonly EngineMutant[])[] = [
  [
    one('an IPC namespace', 'engine-shared-memory', /^queue = exists/, args("    '--ipc',\n    'private',", "    '--ipc',\n    'host',")),
    one('no network', 'engine-shared-memory', /^\/hostsys\/class\/net\/\w+ = there/, args("    '--network',\n    'none',", "    '--network',\n    'host',")),
    one('a host name of its own', 'engine-host-namespaces', /^name = of this machine/, args("    '--hostname',\n    'docker',", "    '--uts',\n    'host',")),
    one('a cgroup namespace', 'engine-limits', /^group = \d+:/, args("    '--cgroupns',\n    'private',", "    '--cgroupns',\n    'host',")),
    one('being ended first', 'engine-limits', /^ended = like others/, args("    '--oom-score-adj',\n    '800',\n")),
    one('no program looks at crashes', 'engine-limits', /^open at /, args("'core=1:1'", "'core=-1:-1'")),
    one('a read-only root', 'engine-mounts', /^\/ = writable/, args("    '--read-only',\n")),
    one('read-only system directories', 'engine-host-programs', /^ags-planted = only its owner is missing/, args('bindArgs(ENGINE_KINDS.docker, path, path, false)', 'bindArgs(ENGINE_KINDS.docker, path, path, true)')),
    one('a read-only meeting place', 'engine-mounts', /^\/ags = writable/, args('input.meeting, NESTED_MEETING, false)', 'input.meeting, NESTED_MEETING, true)')),
    one('bounds on what the engine keeps in memory', 'engine-mounts', /^\/run = without a bound/, script("'mode=755,size=64m'", "'mode=755'")),
    one('bounds on temporary files', 'engine-mounts', /^\/run\/tmp = without a bound/, script('"mode=1777,size=$tmp"', '"mode=1777"')),
    one('bounds on settings', 'engine-mounts', /^\/etc\/docker = without a bound/, script("'mode=755,size=1m'", "'mode=755'")),
    one('no way back to the socket of ags', 'engine-mounts', /^ags\/s = there/, [BROKER, "close $listening; unlink 's';", '']),
    one("no variables of the client's", 'engine-holders', /environ = a secret/, args('    ...ENGINE_KINDS.docker.always,\n')),
    one('a limit on memory', 'engine-memory', /got it/, args("    '--memory',\n    memory,\n    '--memory-swap',\n    memory,\n")),
    one('a limit on processes', 'engine-fork-bomb', /got it/, args("    '--pids-limit',\n    String(input.limits.processes),\n")),
    one('files of the system alone', 'engine-host-files', /shadow = exists/, ['sandbox/nested/nested-engine.ts', "...['/etc/alternatives'].filter((path) => existsSync(path))", "'/etc'"]),
  ],
  [
    one('a user of its own for the network helper', 'engine-holders', /^descriptors of [2-9]\d* = done/, script('my ($uid, $gid) = ($USERS, $USERS);', 'my ($uid, $gid);')),
    one('the filter of system calls', 'engine-kernel-calls', /^(ring|hypervisor|ciphers|packets|keys) = done/, script("  syscall($prctl, 22, 2, $program, 0, 0) == 0 or fail('take the filter');\n")),
    one('no channel of ours in the engine', 'engine-holders', /^a socket = of another network/, script('  my ($up, $down) = @_;\n  hang_up();\n', '  my ($up, $down) = @_;\n')),
  ],
  [
    one('a user of its own for the user-namespace helper, whose memory is closed', 'engine-holders', /^descriptors of 1 = done/, script('turn_into($base + $USERS); keep_rights(0);', 'turn_into($base); keep_rights(0); syscall($prctl, 4, 1, 0, 0, 0);'), script(' && syscall($prctl, 4, 0, 0, 0, 0) == 0')),
    one('no connection to the stream broker in the engine', 'engine-holders', /^a socket = of another network/, script('  close $broker;\n  open(my $log', '  open(my $log')),
  ],
  [
    one('no device', 'engine-devices', /^\/hostdev\/ags-disk = a disk/, beside("/\\/home\\/.*/, '/disk'", '/dev/ags-disk')),
    one('no socket', 'engine-host-socket', /podman\.sock = another/, beside("/\\/\\.local\\/.*/, '/agent.sock'", '/host.sock'), script("mkdir('/run/tmp') or fail('make /run/tmp');", SHOW_SOCKET)),
    one('a process namespace, which every engine makes', 'engine-host-processes', /^among those of the engine = visible/, args("    '--hostname',", "    '--pid',\n    'host',\n    '--hostname',")),
  ],
  [
    one('a network of its own for the engine', 'engine-build-network', /^fetch 127\.0\.0\.1:\d+ = built/, ...ofTheHost()),
  ],
];

/** Attempts that no removed protection lets succeed, and why; one has a test of its own. */
export const NEVER: Readonly<Record<string, string>> = {
  'engine-others': 'tried with the engine of this machine in its place',
  'engine-privileged': 'it mounts over read-only mounts, which the kernel refuses to everyone but their owner',
  'engine-host-network': 'in a network that is not of its own making the engine starts no container',
  'engine-bridge-network': 'there is no way to take away: the network of the engine has no interface that leads out',
  'engine-gateway': 'what the gateway allows: test/attacks/mutation/gateway-mutation.proof.test.ts',
  'engine-kernel-settings': 'the kernel maps no user to root without the right to set capabilities on files',
  'engine-copy-out': 'the daemon follows the link, but sees nothing of the host (engine-host-files)',
};

/** The host engine's other options, with the reason why none is a protection here. */
export const TOLD_BESIDES: Readonly<Record<string, string>> = {
  '--detach': 'how it is started',
  '--rm': 'nothing is left of it: test/nested-docker/nested-docker.full.test.ts',
  '--pull': 'which image it is is decided by its name',
  '--name': 'how it is found',
  '--label': 'how it is found',
  '--log-driver': 'its first process says nothing',
  '--env': "one for each variable that the client would fill in: no variables of the client's",
  '--user': 'it drops that user: it ran as a user of this machine',
  '--cap-drop': 'the user-namespace helper drops its two, and its memory is closed',
  '--cap-add': 'needed to map users; dropped afterwards',
  '--security-opt': 'gives: the filter is ours',
  '--ulimit': 'taken out by its value',
  '--mount': 'taken out where they are made',
  '--workdir': 'gives',
  '--entrypoint': 'gives',
};

/** Messages of the check from outside, before a daemon starts. */
// oxfmt-ignore
export const SEEN: readonly { readonly says: string; readonly pieces: readonly Piece[] }[] = [
  { says: 'it ran as a user of this machine', pieces: [['sandbox/nested/nested-engine.ts', 'options.dir,\n    String(NESTED_BASE),', "options.dir,\n    '1001',"]] },
  { says: 'it could become a user of this machine', pieces: [script('map_users($engine, 0, $USERS);', 'map_users($engine, 0, $USERS + 1);')] },
  { says: 'it could become a user of this machine', pieces: [script('apart(0x10000000 | 0x40000000 | 0x20000, $up, $down);', 'apart(0x40000000 | 0x20000, $up, $down);'), script('  map_users($engine, 0, $USERS);\n')] },
  { says: 'its system calls were not filtered', pieces: [script("  syscall($prctl, 22, 2, $program, 0, 0) == 0 or fail('take the filter');\n")] },
  { says: 'it saw the processes of this machine', pieces: [args("    '--hostname',", "    '--pid',\n    'host',\n    '--hostname',")] },
  { says: 'it was in a network of this machine', pieces: ofTheHost() },
];

/** Starts the daemon even if the check from outside fails. */
export const LET_GO: Piece = [
  'sandbox/nested/nested-engine.ts',
  'if (lacking !== null) throw notProtected(lacking);',
  '',
];

export const ALL_ATTACKS = [...ENGINE_ATTACKS, ...ENGINE_GREED];
