// test/conformance/listeners.ts: the listeners of a sandbox with a gateway are served from outside and are the only way out; the sandbox
// can neither take them over nor close them.
import { Socket as DatagramSocket } from 'node:dgram';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import type { SandboxNetwork, SandboxSpec } from '../../src/protocol/spec.ts';
import type { OnListener } from '../../src/sandbox/backend.ts';
import { MOST_LATE } from '../../src/sandbox/io/listeners.ts';
import { collect, createPlace, ended, INHERITED, OTHER_DESCRIPTORS, until, type Open, type Place } from './place.ts';

export const LISTENERS: Extract<SandboxNetwork, { kind: 'gateway' }> = {
  kind: 'gateway',
  listeners: [
    { name: 'proxy', protocol: 'tcp', address: '127.0.0.1', port: 3128 },
    { name: 'endpoint', protocol: 'tcp', address: '127.0.0.1', port: 3129 },
    { name: 'tls', protocol: 'tcp', address: '0.0.0.0', port: 443 },
    { name: 'http', protocol: 'tcp', address: '0.0.0.0', port: 80 },
    { name: 'names', protocol: 'udp', address: '127.0.0.1', port: 53 },
  ],
  reach: false,
};
export const REACHED: SandboxNetwork = { ...LISTENERS, reach: true };

export const specOf = (place: Place, network: SandboxNetwork): SandboxSpec => place.spec([], { network });

/** Answers each connection with the listener's name and the bytes received, once the client has finished sending. */
export const echo: OnListener = (name, listener) => {
  if (listener instanceof DatagramSocket)
    listener.on('message', (said, from) => listener.send(`${name} heard ${said.toString()}`, from.port, from.address));
  else
    listener.on('connection', (socket: Socket) => {
      let said = '';
      socket.on('error', () => undefined);
      socket.on('data', (chunk: Buffer) => (said += chunk.toString()));
      socket.on('end', () => socket.end(`${name} heard ${said}`));
    });
};

/** Reads until the peer finishes sending; our side stays open. */
export function lastWord(socket: Socket): Promise<string> {
  let said = '';
  socket.on('data', (chunk: Buffer) => (said += chunk.toString()));
  return new Promise((resolve) => socket.on('end', () => resolve(said)));
}

const TALK = `sub talk {
  my ($address, $port, $word) = @_;
  socket(my $s, PF_INET, SOCK_STREAM, 0); connect($s, pack_sockaddr_in($port, inet_aton($address))) or return "$!";
  syswrite $s, $word; shutdown $s, 1; local $/; <$s>;
}`;

export function listenerPromises(open: Open): void {
  /** The output of a Perl script inside. */
  async function inside(network: SandboxNetwork, script: string, onListener?: OnListener): Promise<string> {
    using place = await createPlace(open);
    const run = await place.run(['perl', '-MSocket', '-e', script], {
      spec: specOf(place, network),
      ...(onListener === undefined ? {} : { onListener }),
    });
    return run.stdout + run.stderr;
  }

  test('connections to a listener are served outside, and both directions arrive completely', async () => {
    const talk = `${TALK} print talk(@$_), "\\n" for ['127.0.0.1', 3128, 'a'], ['127.0.0.1', 3129, 'b'], ['127.64.0.9', 443, 'c'], ['127.99.1.1', 80, 'd'];
      socket(my $u, PF_INET, SOCK_DGRAM, 0); connect($u, pack_sockaddr_in(53, inet_aton('127.0.0.1'))); send($u, 'e', 0); recv($u, my $answer, 99, 0); print $answer;`;
    expect(await inside(LISTENERS, talk, echo)).toBe(
      'proxy heard a\nendpoint heard b\ntls heard c\nhttp heard d\nnames heard e',
    );
  });

  test('every listener is open before the command runs, and closed when the sandbox has ended', async () => {
    using place = await createPlace(open);
    const listeners = new Map<string, Server | DatagramSocket>();
    const closed: string[] = [];
    const sandbox = await place.start(['sh', '-c', 'echo begun; read x'], {
      spec: specOf(place, LISTENERS),
      onListener: (name, listener) => {
        listeners.set(name, listener);
        listener.on('close', () => closed.push(name));
      },
    });
    await until(sandbox, 'begun');
    const listening = [...listeners].map(([name, listener]) => `${name} ${(listener.address() as AddressInfo).port}`);
    sandbox.stdin?.write('\n');
    await ended(sandbox);
    expect(listening).toEqual(['proxy 3128', 'endpoint 3129', 'tls 443', 'http 80', 'names 53']);
    await expect.poll(() => closed.toSorted()).toEqual([...listeners.keys()].toSorted());
  });

  test.each([false, true])('a gateway without listeners works (reach: %s)', async (reach) => {
    expect(await inside({ kind: 'gateway', listeners: [], reach }, 'print "ran"')).toBe('ran');
  });

  test('A151: five hundred simultaneous connections are all served', async () => {
    const crowd = `my @all; for (1 .. 500) { socket(my $s, PF_INET, SOCK_STREAM, 0); connect($s, pack_sockaddr_in(3128, INADDR_LOOPBACK)) or die "$_ $!"; push @all, $s }
      for (@all) { syswrite $_, 'x'; shutdown $_, 1 } my $met = 0; for my $s (@all) { local $/; $met++ if <$s> eq 'proxy heard x' } print $met`;
    expect(await inside(LISTENERS, crowd, echo)).toBe('500');
  });

  test('A69: loopback is the only interface, and no other address can be reached', async () => {
    const host = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => host.once('listening', resolve));
    const { port } = host.address() as AddressInfo;
    const look = `${TALK} open my $f, '<', '/proc/net/dev'; print join(' ', map { /^\\s*(\\w+):/ } <$f>), "\\n";
      print talk(@$_), "\\n" for ['127.0.0.1', ${port}, ''], ['192.0.2.1', 443, ''], ['10.0.0.1', 80, ''];
      print socket(my $r, PF_INET, SOCK_RAW, 1) ? 'raw' : 'no raw';`;
    const seen = await inside(LISTENERS, look, echo);
    host.close();
    expect(seen).toBe('lo\nConnection refused\nNetwork is unreachable\nNetwork is unreachable\nno raw');
  });

  test('A71: a process inside cannot bind over a listener', async () => {
    const steal = `my ($addr, $type, $port);
      for (['127.0.0.1', SOCK_STREAM, 3128], ['0.0.0.0', SOCK_STREAM, 3128], ['0.0.0.0', SOCK_STREAM, 443], ['127.64.0.1', SOCK_STREAM, 443], ['127.0.0.1', SOCK_STREAM, 80], ['127.0.0.1', SOCK_DGRAM, 53], ['0.0.0.0', SOCK_DGRAM, 53]) {
        my ($address, $type, $port) = @$_;
        socket(my $s, PF_INET, $type, 0); setsockopt($s, SOL_SOCKET, $_, 1) for SO_REUSEADDR, 15;
        print bind($s, pack_sockaddr_in($port, inet_aton($address))) && ($type == SOCK_DGRAM || listen $s, 5) ? 'taken' : $!{EACCES} ? 'denied' : $!{EADDRINUSE} ? 'in use' : $!, "\\n";
      }`;
    expect(await inside(LISTENERS, steal)).toBe('in use\nin use\ndenied\ndenied\ndenied\ndenied\ndenied\n');
    const high = { name: 'high', protocol: 'udp', address: '127.0.0.1', port: 5353 } as const;
    await expect(inside({ ...LISTENERS, listeners: [high] }, 'print "ran"')).rejects.toThrow('could be taken over');
  });

  test.each([false, true])(
    'A154: the command has no capability over its network and no descriptor of ags (reach: %s)',
    async (reach) => {
      using place = await createPlace(open);
      const network = { ...LISTENERS, reach };
      const rights = await place.run(
        ['sh', '-c', 'grep Cap /proc/self/status; env | grep NODE; set -- /proc/[0-9]*; echo $#'],
        {
          spec: specOf(place, network),
        },
      );
      const others = await place.run(OTHER_DESCRIPTORS, { spec: specOf(place, network) });
      expect({ ...rights, stdout: rights.stdout.replaceAll(/\s+/g, ' ') }).toEqual({
        code: 0,
        stdout: `${['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'].map((set) => `Cap${set}: 0000000000000000 `).join('')}2 `,
        stderr: '',
      });
      expect(
        others.stdout.split('\n').filter((row) => row !== '' && !INHERITED.includes(row.split(' ')[0] ?? '')),
      ).toEqual([]);
    },
  );

  test('a server inside can be reached repeatedly from outside; a port without a server is an error', async () => {
    using place = await createPlace(open);
    const serve = `socket(my $s, PF_INET, SOCK_STREAM, 0); bind($s, pack_sockaddr_in(8080, INADDR_LOOPBACK)) or die; listen $s, 9;
      socket(my $six, PF_INET6, SOCK_STREAM, 0); bind($six, pack_sockaddr_in6(8081, Socket::IN6ADDR_LOOPBACK)) or die; listen $six, 9;
      $| = 1; print "serving\\n"; for my $from ($s, $six, $s) { accept(my $c, $from); sysread $c, my $said, 99; syswrite $c, "you said $said"; shutdown $c, 1; sysread $c, $said, 99; print $said }`;
    const sandbox = await place.start(['perl', '-MSocket=:all', '-e', serve], { spec: specOf(place, REACHED) });
    const said = collect(sandbox.stdout);
    const answers: string[] = [];
    await expect
      .poll(() =>
        sandbox.connect(8080).then(
          (socket) => socket.destroy(),
          () => null,
        ),
      )
      .not.toBeNull();
    for (const port of [8082, 0, 65_536 + 8080, Number.NaN])
      await expect(sandbox.connect(port)).rejects.toMatchObject({ code: 'backend.failed' });
    for (const port of [8081, 8080]) {
      const socket = await sandbox.connect(port);
      socket.write(`hello ${port}`);
      answers.push(await lastWord(socket));
      socket.end('bye ');
    }
    expect({ answers, code: await ended(sandbox), said: (await said).toString() }).toEqual({
      answers: ['you said hello 8081', 'you said hello 8080'],
      code: 0,
      said: 'serving\nbye bye ',
    });
    await expect(sandbox.connect(8080)).rejects.toMatchObject({ code: 'backend.failed' });
  });

  test('a server that never accepts does not block connections to others', async () => {
    using place = await createPlace(open);
    const stuck = `for my $port (8080, 8081) { socket(my $s, PF_INET, SOCK_STREAM, 0); bind($s, pack_sockaddr_in($port, INADDR_LOOPBACK)); listen $s, $port == 8080 ? 0 : 9; push our @s, $s } $| = 1; print "serving\\n"; sleep 60`;
    const sandbox = await place.start(['perl', '-MSocket', '-e', stuck], { spec: specOf(place, REACHED) });
    await until(sandbox, 'serving');
    const full = Array.from({ length: 5 }, () =>
      sandbox.connect(8080).then(
        (socket) => socket.destroy(),
        () => null,
      ),
    );
    const other = await sandbox.connect(8081);
    other.destroy();
    sandbox.kill();
    await Promise.all(full);
    expect(await ended(sandbox)).toBe(137);
  });

  test('a listener can be opened while the sandbox runs, unless its port is in use, and closes with it', async () => {
    using place = await createPlace(open);
    const script = `${TALK} $| = 1; socket(my $mine, PF_INET, SOCK_STREAM, 0); bind $mine, pack_sockaddr_in(8090, INADDR_ANY); listen $mine, 1;
      print "begun\\n"; <STDIN>; print talk('127.0.0.1', 8091, 'late'), "\\n"; <STDIN>; print talk('127.0.0.1', 8091, 'shut'), "\\n"; <STDIN>;`;
    const sandbox = await place.start(['perl', '-MSocket', '-e', script], { spec: specOf(place, REACHED) });
    const said = collect(sandbox.stdout);
    await until(sandbox, 'begun');
    for (const port of [8090, 3128, 53, 0, 65_536])
      await expect(sandbox.open(port)).rejects.toMatchObject({ code: 'backend.failed' });
    const [listener, other] = [await sandbox.open(8091), await sandbox.open(8092)];
    echo('late', listener);
    sandbox.stdin?.write('\n');
    await new Promise((resolve) => listener.once('connection', resolve));
    listener.close();
    sandbox.stdin?.write('\n\n');
    const closed = new Promise((resolve) => other.once('close', resolve));
    await ended(sandbox);
    await closed;
    expect((await said).toString()).toBe('begun\nlate heard late\nConnection refused\n');
    await expect(sandbox.open(8093)).rejects.toMatchObject({ code: 'backend.failed' });
  });

  test('the number of listeners opened while the sandbox runs is limited', async () => {
    using place = await createPlace(open);
    const sandbox = await place.start(['sh', '-c', 'echo begun; read end'], { spec: specOf(place, REACHED) });
    await until(sandbox, 'begun');
    const ports = Array.from({ length: MOST_LATE + 20 }, (_, i) => 20_000 + i);
    const opened = await Promise.allSettled(ports.map((port) => sandbox.open(port)));
    const listeners = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    expect(listeners.length).toBe(MOST_LATE);
    // Closing a listener makes room for another.
    const shut = new Promise((resolve) => listeners[0]?.once('close', resolve));
    listeners[0]?.close();
    await shut;
    await sandbox.open(19_999);
    sandbox.stdin?.end();
    await ended(sandbox);
  });
}
