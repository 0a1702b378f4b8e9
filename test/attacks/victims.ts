// test/attacks/victims.ts: what there is to steal and to break on the host: secrets, servers, memory, a process, each of which
// notices when it is touched.
// Invariant: every secret holds the same random word, so that one look at all output tells whether any of them leaked.
import { spawn, type ChildProcess } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { hostname, networkInterfaces } from 'node:os';
import { dirname, join } from 'node:path';
import { giveTo, type Machine } from '../harness.ts';
import type { Places } from './attack.ts';

/** The user that a sandbox runs as when its caller is root; see the default configuration. */
const SANDBOX_USER = 1001;

export interface Victims extends AsyncDisposable {
  readonly places: Places;
  /** Part of every secret. */
  readonly word: string;
  /** A file whose descriptor a careless caller leaves open. */
  readonly secretFile: string;
  /** Variables of a caller who has much to lose. */
  readonly env: Readonly<Record<string, string>>;
  /** Everything that was touched since the beginning, in words; empty when nothing was. */
  touched(): string[];
}

export async function createVictims(machine: Machine): Promise<Victims> {
  const word = `CANARY-${randomBytes(8).toString('hex')}`;
  const hostTmp = mkdtempSync('/tmp/ags-victim-');
  placeFiles(machine, word, hostTmp);
  const streams = [
    join(machine.home, 'agent.sock'),
    join(hostTmp, 'agent.sock'),
    ...['agent.sock', 'sub/agent.sock', 'node_modules/agent.sock'].map((path) => join(machine.project, path)),
    join(machine.home, '.local/bin/agent.sock'),
  ];
  const datagrams = streams.map((path) => path.replace(/\.sock$/, '.dgram'));
  const names = {
    abstract: `ags-${word}`,
    key: String(randomBytes(4).readUInt32LE() & 0x7fffffff),
    queue: `ags-${word}`,
  };
  const log = join(hostTmp, 'log');
  const pipe = join(machine.home, '.local/bin/agent.fifo');
  const server = spawn(
    'perl',
    [
      '-e',
      SERVER,
      String(victimUid(machine)),
      log,
      pipe,
      word,
      names.abstract,
      names.key,
      names.queue,
      process.arch,
      ...streams,
      '--',
      ...datagrams,
    ],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  const [loopback = '', any = ''] = await firstLine(server);
  const before = snapshot(machine, hostTmp);
  return {
    word,
    secretFile: join(hostTmp, 'secret'),
    env: {
      SECRET_TOKEN: word,
      GITHUB_TOKEN: word,
      AWS_SECRET_ACCESS_KEY: word,
      SSH_AUTH_SOCK: streams[0] ?? '',
      DBUS_SESSION_BUS_ADDRESS: `unix:path=${streams[1]}`,
      HTTPS_PROXY: `http://${word}@127.0.0.1:${loopback}`,
      BASH_ENV: join(hostTmp, 'secret'),
      PERL5OPT: '-MAgs::Victim',
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'core.fsmonitor',
      GIT_CONFIG_VALUE_0: `touch ${log}`,
    },
    places: {
      SIBLING: join(machine.home, 'code/sibling'),
      HOST_TMP: join(hostTmp, 'secret'),
      TOOLS: join(machine.home, '.local/bin'),
      HOME: machine.home,
      PROJECT: machine.project,
      STATE: machine.stateDir,
      STREAMS: streams.filter((path) => !path.includes('/.local/bin/')).join(' '),
      DATAGRAMS: datagrams.filter((path) => !path.includes('/.local/bin/')).join(' '),
      ABSTRACT: names.abstract,
      LOOPBACK_PORT: loopback,
      ANY_PORT: any,
      ADDRESSES: Object.values(networkInterfaces())
        .flatMap((list) => list ?? [])
        .filter((one) => one.family === 'IPv4' && !one.internal)
        .map((one) => one.address)
        .join(' '),
      IPC_KEY: names.key,
      QUEUE: names.queue,
      VICTIM: String(server.pid),
      HOSTNAME: hostname(),
    },
    touched() {
      const after = snapshot(machine, hostTmp);
      const paths = [...new Set([...before.keys(), ...after.keys()])].filter(
        (path) => before.get(path) !== after.get(path),
      );
      const said = readFileSync(log, 'utf8')
        .split('\n')
        .filter((line) => line !== '');
      return [
        ...paths.map((path) => `${path}: ${before.get(path) ?? 'not there'} -> ${after.get(path) ?? 'gone'}`),
        ...said,
        ...(server.exitCode === null && server.signalCode === null ? [] : ['the victim is dead']),
      ];
    },
    async [Symbol.asyncDispose]() {
      server.stdin?.end();
      if (server.exitCode === null && server.signalCode === null)
        await new Promise((resolve) => server.on('exit', resolve));
      rmSync(hostTmp, { recursive: true, force: true });
    },
  };
}

/** Of the user that the sandbox is, where that can be: then nothing but the sandbox stands between the two. */
function victimUid(machine: Machine): number {
  return machine.caller === 'root' ? SANDBOX_USER : machine.uid;
}

function placeFiles(machine: Machine, word: string, hostTmp: string): void {
  const inHome = (path: string, content: string): void => {
    mkdirSync(dirname(join(machine.home, path)), { recursive: true });
    writeFileSync(join(machine.home, path), content);
  };
  for (const path of [
    '.ssh/id_ed25519',
    '.aws/credentials',
    '.netrc',
    '.bash_history',
    '.config/gh/hosts.yml',
    '.gnupg/secring.gpg',
    'marker.txt',
    'code/sibling/private.txt',
  ])
    inHome(path, `${word}\n`);
  for (const path of ['.bashrc', '.profile', '.zshenv', '.gitconfig', '.config/ags/config.yaml'])
    inHome(path, '# as it was\n');
  // Root plays the user in some tests, and git is particular about whose repository it reads.
  inHome('.gitconfig', '[user]\n\tname = Dev\n\temail = dev@example.test\n[safe]\n\tdirectory = *\n');
  inHome('.config/ags/config.yaml', '');
  inHome('.local/bin/tool', '#!/bin/sh\necho tool\n');
  for (const path of ['.aws/config', '.ssh/known_hosts', 'sub/file.txt', 'node_modules/pkg.txt'])
    machine.write(path, 'ordinary\n');
  machine.git('add', '-A', '-f');
  machine.git('commit', '-q', '-m', 'second');
  machine.git('config', 'remote.origin.url', `https://${word}@example.test/x.git`);
  machine.git('config', 'http.extraHeader', `Authorization: ${word}`);
  for (const path of [
    '.env',
    '.env.local',
    'config/server.pem',
    '.npmrc',
    '.netrc',
    'deploy/id_rsa',
    'terraform.tfstate',
    '.kube/config',
    '.docker/config.json',
    '.aws/credentials',
    '.ssh/id_ed25519',
  ])
    machine.write(path, `${word}\n`);
  writeFileSync(join(hostTmp, 'secret'), `${word}\n`);
  writeFileSync(join(hostTmp, 'log'), '');
  giveTo(machine.home, machine.uid);
  giveTo(hostTmp, machine.uid);
}

/** Every file of the home, of the project and of its git directory as it is; what ags keeps for itself is left out. */
function snapshot(machine: Machine, hostTmp: string): Map<string, string> {
  const found = new Map<string, string>();
  const visit = (dir: string): void => {
    for (const entry of readdirSync(dir, { withFileTypes: true })) {
      const path = join(dir, entry.name);
      if (
        path === machine.stateDir ||
        path === join(machine.home, '.cache') ||
        path === join(machine.home, '.local/state') ||
        path === join(hostTmp, 'log')
      )
        continue;
      const stats = lstatSync(path, { bigint: true });
      const content = entry.isFile()
        ? createHash('sha256').update(readFileSync(path)).digest('hex').slice(0, 12)
        : entry.isSymbolicLink()
          ? readlinkSync(path)
          : '';
      found.set(
        path,
        [stats.mode.toString(8), stats.uid, ...(entry.isDirectory() ? [] : [stats.nlink, stats.ctimeNs]), content].join(
          ' ',
        ),
      );
      if (entry.isDirectory()) visit(path);
    }
  };
  for (const dir of [machine.home, hostTmp]) visit(dir);
  return found;
}

function firstLine(child: ChildProcess): Promise<string[]> {
  return new Promise((resolve, reject) => {
    let text = '';
    child.on('exit', () => reject(new Error('the victim did not start')));
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
      if (text.includes('\n')) resolve(text.trim().split(' '));
    });
  });
}

/** Binds everything, gives root up, answers whoever calls with the secret, and writes down every call and every signal. */
const SERVER = String.raw`
use strict; use Socket; use POSIX ();
my ($uid, $log, $pipe, $word, $abstract, $key, $queue, $arch) = splice @ARGV, 0, 8;
open my $out, '>>', $log or die "$log: $!"; { my $old = select $out; $| = 1; select $old }
my %listening; my %quiet;
umask 0;
POSIX::mkfifo($pipe, 0666) or die $!; sysopen(my $reader, $pipe, POSIX::O_RDWR() | POSIX::O_NONBLOCK()) or die $!;
sub unix { my ($type, $name) = @_; socket(my $s, PF_UNIX, $type, 0) or die $!; bind($s, pack_sockaddr_un($name)) or die "$name: $!"; return $s }
while (defined(my $path = shift @ARGV)) { last if $path eq '--'; my $s = unix(SOCK_STREAM, $path); listen $s, 5; $listening{fileno $s} = [$s, $path] }
for my $path (@ARGV) { my $s = unix(SOCK_DGRAM, $path); $quiet{fileno $s} = [$s, $path] }
{ my $s = unix(SOCK_STREAM, "\0$abstract"); listen $s, 5; $listening{fileno $s} = [$s, 'the abstract socket']; my $d = unix(SOCK_DGRAM, "\0$abstract.dgram"); $quiet{fileno $d} = [$d, 'the abstract datagram socket'] }
my @ports;
for my $address ('127.0.0.1', '0.0.0.0') { socket(my $s, PF_INET, SOCK_STREAM, 0) or die $!; bind($s, pack_sockaddr_in(0, inet_aton($address))) or die $!; listen $s, 5; push @ports, (unpack_sockaddr_in(getsockname $s))[0]; $listening{fileno $s} = [$s, "TCP on $address"] }
if ($> == 0 && $uid != 0) { $) = "$uid $uid"; $( = $uid; $< = $uid; $> = $uid }
my $shm = shmget($key, 4096, 01666) // die "shmget: $!"; shmwrite($shm, $word, 0, length $word);
my $msg = msgget($key, 01666) // die "msgget: $!"; my $sem = semget($key, 1, 01666) // die "semget: $!";
my ($open, $unlink) = $arch eq 'arm64' ? (180, 181) : (240, 241);
syscall($open, $queue, 0102, 0666, 0) >= 0 or die "mq_open: $!";
for my $name (qw(HUP INT QUIT TERM USR1 USR2 CONT WINCH IO ALRM)) { $SIG{$name} = sub { print $out "signal $name\n" } }
$SIG{PIPE} = 'IGNORE';
$| = 1; print "@ports\n";
for (;;) {
  my $set = ''; vec($set, $_, 1) = 1 for 0, keys %listening, keys %quiet;
  select(my $ready = $set, undef, undef, undef) > 0 or next;
  last if vec $ready, 0, 1;
  for (keys %listening) { next unless vec $ready, $_, 1; accept(my $c, $listening{$_}[0]); print $out "connection to $listening{$_}[1]\n"; syswrite $c, "$word\n" }
  for (keys %quiet) { next unless vec $ready, $_, 1; recv $quiet{$_}[0], my $text, 4096, 0; print $out "datagram to $quiet{$_}[1]\n" }
}
shmctl($shm, 0, 0); msgctl($msg, 0, 0); semctl($sem, 0, 0, 0); syscall($unlink, $queue);
`;
