// exec/net-test.ts: which hosts can be reached from inside a sandbox of this project, and if not, why? Asked from inside, by
// a program that does what every other there would do.
import { closeSync, mkdtempSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { hostAndPort } from '../protocol/host-name.ts';
import { AgsError } from '../protocol/errors.ts';
import type { ConfigFlags } from '../config/effective.ts';
import { removeTree } from '../lib/files.ts';
import { PROXY_PORT } from '../run/network/plan-network.ts';
import { runCommand } from './run-command.ts';
import type { World } from '../run/host-context.ts';

export interface Reached {
  readonly host: string;
  readonly port: number;
  readonly verdict: 'reachable' | 'refused' | 'unreachable';
  /** What the gateway said; empty for what can be reached. */
  readonly why: string;
  readonly ms: number;
}

/** Arguments: the port of the proxy, then host:port. Eight at a time; each answer is one line. */
const PROBE = `use strict; use Socket; use Time::HiRes 'time'; $| = 1;
my ($proxy, @places) = @ARGV;
sub ask {
  my ($place) = @_;
  my $began = time;
  my $say = sub { my ($kind, $text) = @_; $text =~ s/[^\\x20-\\x7e]/ /g; printf "%s\\t%s\\t%d\\t%s\\n", $place, $kind, (time - $began) * 1000, $text };
  $SIG{ALRM} = sub { $say->('unreachable', 'no answer in 30 seconds'); exit };
  alarm 30;
  my $s;
  socket($s, PF_INET, SOCK_STREAM, 0) && connect($s, pack_sockaddr_in($proxy, INADDR_LOOPBACK)) or return $say->('refused', 'there is no gateway: the network is off');
  select((select($s), $| = 1)[0]);
  print $s $place =~ /:80$/ ? "HEAD http://$place/ HTTP/1.1\\r\\nHost: $place\\r\\nConnection: close\\r\\n\\r\\n" : "CONNECT $place HTTP/1.1\\r\\nHost: $place\\r\\n\\r\\n";
  my $head = '';
  while ($head !~ /\\r\\n\\r\\n/ && sysread $s, my $more, 4096) { $head .= $more }
  my ($status, $reason) = $head =~ m{^HTTP/1\\.[01] (\\d+) ?([^\\r]*)} or return $say->('unreachable', 'no answer');
  return $say->('refused', $reason) if $head =~ /^X-Ags: policy/mi;
  return $say->('unreachable', $reason) if $head =~ /^X-Ags: gateway/mi;
  $say->('reachable', '');
}
my $running = 0;
for my $place (@places) {
  if ($running >= 8) { wait; $running-- }
  $running++;
  next if fork;
  ask($place); exit;
}
1 while wait != -1;
`;

export async function testNetwork(
  world: World,
  flags: ConfigFlags,
  places: readonly { host: string; port: number }[],
  notice: (text: string) => void,
): Promise<Reached[]> {
  const dir = mkdtempSync(join(world.cacheDir, 'net-test-'));
  const file = join(dir, 'answers');
  const stdout = openSync(file, 'w', 0o600);
  try {
    const { exitCode } = await runCommand(world, {
      kind: 'exec',
      command: ['perl', '-e', PROBE, String(PROXY_PORT), ...places.map(({ host, port }) => hostAndPort(host, port))],
      flags,
      name: 'net-test',
      quiet: true,
      notice,
      openStdio: () =>
        Promise.resolve({
          stdio: { stdin: 'ignore', stdout, stderr: 2, terminal: null },
          close: () => Promise.resolve(),
        }),
    });
    if (exitCode !== 0)
      throw new AgsError('backend.failed', `The program that asks inside ended with ${exitCode}.`, {
        hint: 'Is there a perl in /usr/bin? See also: ags doctor',
      });
    return readAnswers(readFileSync(file, 'latin1'), places);
  } finally {
    closeSync(stdout);
    removeTree(dir);
  }
}

function readAnswers(text: string, places: readonly { host: string; port: number }[]): Reached[] {
  const answers = new Map(text.split('\n').map((line) => [line.split('\t')[0] ?? '', line.split('\t')]));
  return places.map(({ host, port }) => {
    const [, kind = '', ms = '0', why = ''] = answers.get(hostAndPort(host, port)) ?? [];
    const verdict = kind === 'reachable' || kind === 'refused' ? kind : 'unreachable';
    return { host, port, verdict, why: kind === '' ? 'no answer' : why, ms: Number(ms) };
  });
}
