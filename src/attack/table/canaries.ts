// attack/table/canaries.ts: what there is to steal and to break outside: servers, memory, a process and files, each of which notices when it is
// touched.
// Invariant: every secret holds the same random word, so that one look at all output tells whether any of them leaked.
import { spawn, type ChildProcess } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { hostname, networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { Places } from './attack.ts';

type Found = Pick<
  Places,
  | 'STREAMS'
  | 'DATAGRAMS'
  | 'ABSTRACT'
  | 'LOOPBACK_PORT'
  | 'ANY_PORT'
  | 'ADDRESSES'
  | 'IPC_KEY'
  | 'QUEUE'
  | 'VICTIM'
  | 'HOSTNAME'
>;

export interface Canaries extends AsyncDisposable {
  readonly places: Found;
  /** Everything that came to the servers and the process since the beginning, in words. */
  noticed(): string[];
}

export function secretWord(): string {
  return `CANARY-${randomBytes(8).toString('hex')}`;
}

/** Of an ordinary project: what is tracked, and what lies about untracked and is nobody's business. */
export const TRACKED: readonly string[] = ['.aws/config', '.ssh/known_hosts', 'sub/file.txt', 'node_modules/pkg.txt'];
export const UNTRACKED_SECRETS: readonly string[] = [
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
];

/** Variables of a caller who has much to lose. */
export function careless(word: string, sockets: readonly string[], port: string): Record<string, string> {
  return {
    SECRET_TOKEN: word,
    GITHUB_TOKEN: word,
    AWS_SECRET_ACCESS_KEY: word,
    SSH_AUTH_SOCK: sockets[0] ?? '',
    DBUS_SESSION_BUS_ADDRESS: `unix:path=${sockets[1]}`,
    HTTPS_PROXY: `http://${word}@127.0.0.1:${port}`,
  };
}

/**
 * `uid`: of the user that the sandbox is, where that can be: then nothing but the sandbox stands between the two. `outside`: a directory of
 * ours. `streams`: where sockets are to be. `toolDir`: a tool directory, which gets sockets and a pipe as well.
 */
export async function openCanaries(input: {
  word: string;
  uid: number;
  outside: string;
  streams: readonly string[];
  toolDir: string;
}): Promise<Canaries> {
  const { word, uid, outside, toolDir } = input;
  const streams = [...input.streams, join(toolDir, 'agent.sock')];
  const datagrams = streams.map((path) => path.replace(/\.sock$/, '.dgram'));
  const name = `ags-${word}`;
  const key = String(randomBytes(4).readUInt32LE() & 0x7fffffff);
  const log = join(outside, 'log');
  writeFileSync(log, '');
  const given = [String(uid), log, join(toolDir, 'agent.fifo'), word, name, key, name, process.arch];
  const server = spawn('perl', ['-e', SERVER, ...given, ...streams, '--', ...datagrams], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [loopback = '', any = ''] = await firstLine(server);
  const shown = (paths: readonly string[]): string => paths.filter((path) => !path.startsWith(`${toolDir}/`)).join(' ');
  return {
    places: {
      STREAMS: shown(streams),
      DATAGRAMS: shown(datagrams),
      ABSTRACT: name,
      LOOPBACK_PORT: loopback,
      ANY_PORT: any,
      ADDRESSES: Object.values(networkInterfaces())
        .flatMap((list) => list ?? [])
        .filter((one) => one.family === 'IPv4' && !one.internal)
        .map((one) => one.address)
        .join(' '),
      IPC_KEY: key,
      QUEUE: name,
      VICTIM: String(server.pid),
      HOSTNAME: hostname(),
    },
    noticed: () => [
      ...readFileSync(log, 'utf8')
        .split('\n')
        .filter((line) => line !== ''),
      ...(server.exitCode === null && server.signalCode === null ? [] : ['the victim is dead']),
    ],
    async [Symbol.asyncDispose]() {
      server.stdin?.end();
      if (server.exitCode === null && server.signalCode === null)
        await new Promise((resolve) => server.on('exit', resolve));
    },
  };
}

/** Every file below these places as it is, but for those that are left out. */
export function snapshot(places: readonly string[], leftOut: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  const visit = (dir: string): void => {
    for (const entry of readdirSync(dir, { withFileTypes: true })) {
      const path = join(dir, entry.name);
      if (leftOut.includes(path)) continue;
      const stats = lstatSync(path, { bigint: true });
      const content = entry.isFile()
        ? createHash('sha256').update(readFileSync(path)).digest('hex').slice(0, 12)
        : entry.isSymbolicLink()
          ? readlinkSync(path)
          : '';
      const own = entry.isDirectory() ? [] : [stats.nlink, stats.ctimeNs];
      found.set(path, [stats.mode.toString(8), stats.uid, ...own, content].join(' '));
      if (entry.isDirectory()) visit(path);
    }
  };
  for (const dir of places) visit(dir);
  return found;
}

/** What is not as it was, in words. */
export function difference(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  return [...new Set([...before.keys(), ...after.keys()])]
    .filter((path) => before.get(path) !== after.get(path))
    .map((path) => `${path}: ${before.get(path) ?? 'not there'} -> ${after.get(path) ?? 'gone'}`);
}

function firstLine(child: ChildProcess): Promise<string[]> {
  return new Promise((resolve, reject) => {
    let text = '';
    child.on('error', reject);
    child.on('exit', () => reject(new Error('what was to be attacked did not start')));
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
