// test/conformance/limits.ts: limits on a sandboxed command: resources, network, ptrace and Unix sockets.
import { createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { hostPath, sandboxPath, type KernelRules } from '../../src/protocol/spec.ts';
import { bind, createPlace, LIMITS, type Open } from './place.ts';

const PTRACE = process.arch === 'arm64' ? 117 : 101;

export function limitPromises(open: Open): void {
  describe('limits', () => {
    test('a fork bomb stops at the process limit; processes of another sandbox do not count', async () => {
      using one = await createPlace(open);
      using two = await createPlace(open);
      const bomb =
        'for (1 .. 90) { my $p = fork; if (!defined $p) { $why = $!; $refused++ } elsif (!$p) { sleep 60; exit } else { $made++ } } sleep 1; print "$made $refused $why"';
      const outcomes = await Promise.all(
        [one, two].map((place) =>
          place.run(['perl', '-e', bomb], { spec: place.spec([], { limits: { ...LIMITS, processes: 40 } }) }),
        ),
      );
      for (const { stdout } of outcomes) {
        const [, made, refused, why] = /^(\d+) (\d+) (.*)$/.exec(stdout) ?? [];
        expect([Number(made) + Number(refused), why]).toEqual([90, 'Resource temporarily unavailable']);
        // The command and the sandbox's first process count too.
        expect(Number(made)).toBeLessThan(40);
        expect(Number(made)).toBeGreaterThan(30);
      }
    });

    test('open files, file size and CPU time stop at the limits of the spec', async () => {
      using place = await createPlace(open);
      const out = place.writable('out');
      const spec = place.spec([bind(out, '/out', true)], {
        limits: { ...LIMITS, openFiles: 64, fileBytes: 1024 * 1024, cpuSeconds: 1 },
      });
      const many = await place.run(
        ['perl', '-e', 'while (open my $f, "<", "/dev/null") { push @f, $f } print scalar(@f), " $!"'],
        { spec },
      );
      const [, count, why] = /^(\d+) (.*)$/.exec(many.stdout) ?? [];
      expect(why).toBe('Too many open files');
      expect(Number(count)).toBeLessThanOrEqual(61);
      expect(Number(count)).toBeGreaterThan(48);
      for (const dir of ['/out', '/tmp'])
        expect(
          (await place.run(['sh', '-c', `head -c 3000000 /dev/zero > ${dir}/big; stat -c %s ${dir}/big`], { spec }))
            .stdout,
        ).toBe('1048576\n');
      expect((await place.run(['sh', '-c', 'while :; do :; done'], { spec })).code).toBe(128 + 24);
    });

    test('no limit can be raised again from inside', async () => {
      using place = await createPlace(open);
      const spec = place.spec([], { limits: { ...LIMITS, openFiles: 64, processes: 40 } });
      const { stdout } = await place.run(
        ['bash', '-c', 'for l in n u c; do ulimit -H$l; ulimit -H$l 100000 2>/dev/null; ulimit -H$l; done'],
        { spec },
      );
      const [files, filesAfter, processes, processesAfter, dumps, dumpsAfter] = stdout.split('\n');
      expect([files, filesAfter, dumps, dumpsAfter]).toEqual(['64', '64', '0', '0']);
      expect(processesAfter).toBe(processes);
      // With a control group, the per-process limit has another value.
      if (open.own === undefined) expect(processes).toBe('40');
    });
  });

  describe('network', () => {
    test('only loopback exists', async () => {
      using place = await createPlace(open);
      const { stdout } = await place.run([
        'sh',
        '-c',
        'sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d " "; sed 1d /proc/net/route | wc -l',
      ]);
      expect(stdout).toBe('lo\n0\n');
    });

    test('programs inside reach each other on loopback', async () => {
      using place = await createPlace(open);
      const talk = (address: string): string =>
        `use IO::Socket::IP; my $s = IO::Socket::IP->new(LocalAddr => "${address}", LocalPort => 0, Listen => 1) or die "listen $!"; my $p = $s->sockport; if (!fork) { my $c = IO::Socket::IP->new(PeerAddr => "${address}", PeerPort => $p) or die "connect $!"; print $c "hello\\n"; exit } my $c = $s->accept; print scalar <$c>; wait`;
      expect(await place.run(['perl', '-e', talk('127.0.0.1')])).toEqual({ code: 0, stdout: 'hello\n', stderr: '' });
      expect(await place.run(['perl', '-e', talk('127.3.2.1')])).toEqual({ code: 0, stdout: 'hello\n', stderr: '' });
    });

    test('no connection, datagram, host loopback port or abstract socket is reachable', async () => {
      using place = await createPlace(open);
      let visitors = 0;
      const server = createServer(() => visitors++);
      const abstract = createServer(() => visitors++);
      const name = `\0ags-conformance-${process.pid}`;
      try {
        await Promise.all([
          new Promise<void>((done) => server.listen(0, '0.0.0.0', done)),
          new Promise<void>((done) => abstract.listen({ path: name }, done)),
        ]);
        const port = (server.address() as { port: number }).port;
        const script = `use Socket; sub try { my ($n, $ok) = @_; print "$n ", ($ok ? "REACHED" : "$!"), "\\n" }
          for my $to (["192.0.2.1", 80], ["10.0.0.1", 22], ["169.254.169.254", 80], ["127.0.0.1", ${port}]) { socket S, PF_INET, SOCK_STREAM, 0; try("tcp", connect S, sockaddr_in($to->[1], inet_aton $to->[0])) }
          socket U, PF_INET, SOCK_DGRAM, 0; try("udp", send U, "x", 0, sockaddr_in(53, inet_aton "192.0.2.1"));
          socket B, PF_INET, SOCK_DGRAM, 0; setsockopt B, SOL_SOCKET, SO_BROADCAST, 1; try("broadcast", send B, "x", 0, sockaddr_in(9, INADDR_BROADCAST));
          socket A, PF_UNIX, SOCK_STREAM, 0; try("abstract", connect A, pack("S a*", AF_UNIX, "\\0" . substr $ARGV[0], 1)); socket R, PF_INET, SOCK_RAW, 1 and print "RAW\\n"`;
        const { stdout } = await place.run(['perl', '-e', script, '--', `@${name.slice(1)}`]);
        expect([stdout, visitors]).toEqual([
          `${'tcp Network is unreachable\n'.repeat(3)}tcp Connection refused\nudp Network is unreachable\nbroadcast Network is unreachable\nabstract Connection refused\n`,
          0,
        ]);
      } finally {
        server.close();
        abstract.close();
      }
    });
  });

  describe('the rules for the kernel', () => {
    const rules: readonly KernelRules[] = [false, true].flatMap((ptrace) =>
      [false, true].map((unixSockets) => ({ ptrace, unixSockets })),
    );

    test.each(rules)('the command gets ptrace $ptrace and Unix sockets $unixSockets', async (kernel) => {
      using place = await createPlace(open);
      const script = `use Socket; my $p = fork // die; if (!$p) { sleep 60; exit } print "ptrace ", (syscall(${PTRACE}, 16, $p, 0, 0) == 0 ? 1 : 0), "\\n"; kill KILL => $p;
        my $s = socket(S, PF_UNIX, SOCK_STREAM, 0) && bind(S, pack("S a*", AF_UNIX, "/tmp/s")) && listen(S, 1) && socket(C, PF_UNIX, SOCK_STREAM, 0) && connect(C, pack("S a*", AF_UNIX, "/tmp/s")); print "unix ", ($s ? 1 : 0), "\\n"; print "inet ", (socket(I, PF_INET, SOCK_STREAM, 0) ? 1 : 0), "\\n"`;
      const { stdout } = await place.run(['perl', '-e', script], { spec: place.spec([], { kernel }) });
      expect(stdout).toBe(`ptrace ${Number(kernel.ptrace)}\nunix ${Number(kernel.unixSockets)}\ninet 1\n`);
    });

    test('namespaces, mounts and key rings are refused, even with ptrace and Unix sockets allowed', async () => {
      using place = await createPlace(open);
      const { stdout } = await place.run(
        [
          'sh',
          '-c',
          'for f in -U -Urm -n -p -i -u -m -C; do unshare $f true 2>/dev/null && echo "NEW $f"; done; mount -t tmpfs none /tmp 2>/dev/null && echo MOUNTED; cat /proc/keys 2>/dev/null; echo end',
        ],
        { spec: place.spec([], { kernel: { ptrace: true, unixSockets: true }, workdir: sandboxPath('/tmp') }) },
      );
      expect(stdout).toBe('end\n');
    });

    test('with Unix sockets off, a mounted host socket cannot be reached', async () => {
      using place = await createPlace(open);
      let visitors = 0;
      const server = createServer(() => visitors++);
      const path = `${place.project}/host.sock`;
      try {
        await new Promise<void>((done) => server.listen(hostPath(path), done));
        const script =
          'use Socket; socket(S, PF_UNIX, SOCK_STREAM, 0) && connect(S, pack("S a*", AF_UNIX, "/p/host.sock")) and print "REACHED"; socketpair(A, B, PF_UNIX, SOCK_DGRAM, 0) and print "PAIR"; print "end"';
        const { stdout } = await place.run(['perl', '-e', script], {
          spec: place.spec([bind(place.project, '/p')], { kernel: { ptrace: false, unixSockets: false } }),
        });
        expect([stdout, visitors]).toEqual(['end', 0]);
      } finally {
        server.close();
      }
    });
  });
}
