// test/images/images.full.test.ts: a sandbox over an image has the image's programs and every protection, whatever the image's configuration.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { AgsError } from '../../src/protocol/errors.ts';
import { misplacedMount } from '../../src/sandbox/container/protection.ts';
import { ALSO_AS_USER, runAgain } from '../conformance/again.ts';
import { LISTENERS } from '../conformance/listeners.ts';
import { HAS_ENGINE } from '../conformance/engine.ts';
import { bind, CALLER, ended, file, overlay, tmpfs, until, USER } from '../conformance/place.ts';
import { openImage } from './image-place.ts';
import { tinyImage } from './tiny-image.ts';

// Perl code that the image tries to run in ags's interpreter.
const EVIL = 'package Evil; open my $f, ">", "/tmp/evil"; print $f "was here"; close $f; 1;';

if (HAS_ENGINE) {
  test('programs come from the image, and no file of this machine is visible', async () => {
    using image = tinyImage();
    using over = await openImage(image.name);
    const { stdout, code } = await over.place.run(
      ['sh', '-c', 'id -u; id -g; ls /; ls /usr 2>&1; touch /x 2>&1; exit 7'],
      {
        spec: over.spec(),
      },
    );
    expect(code).toBe(7);
    expect(stdout).toBe(
      `${USER.uid}\n${USER.gid}\nbin\ndev\netc\nproc\nsys\ntmp\nls: /usr: No such file or directory\ntouch: /x: Read-only file system\n`,
    );
  });

  test('streams, signals and the workspace work as without an image', async () => {
    using image = tinyImage();
    using over = await openImage(image.name);
    const { place } = over;
    place.write('a', 'original\n');
    place.write('secret', 'hidden\n');
    const home = place.writable('home');
    const spec = over.spec([overlay(place, ['secret']), bind(home, '/home/me', true), file('/etc/motd', 'ours\n')]);
    const run = await place.run(
      ['sh', '-c', 'cat; cat /etc/motd; ls /project; echo mine > /project/a; echo h > /home/me/h; echo e >&2'],
      {
        spec,
        input: 'input\n',
      },
    );
    expect(run).toEqual({ code: 0, stdout: 'input\nours\na\n', stderr: 'e\n' });
    expect([readFileSync(`${place.project}/a`, 'utf8'), readFileSync(`${home}/h`, 'utf8')]).toEqual([
      'original\n',
      'h\n',
    ]);
    const waiting = await place.start(['sh', '-c', 'trap "exit 9" TERM; echo up; while :; do sleep 1; done'], {
      spec: over.spec(),
    });
    await until(waiting, 'up');
    waiting.signal('SIGTERM');
    expect(await ended(waiting)).toBe(9);
  });

  test('the listeners of the gateway are the only way out', async () => {
    using image = tinyImage();
    using over = await openImage(image.name);
    const { stdout } = await over.place.run(
      ['sh', '-c', 'wget -q -O - http://127.0.0.1:3128/x; ls /sys/class 2>&1; cat /proc/net/route'],
      {
        spec: over.spec([], { network: LISTENERS }),
        onListener(name, listener) {
          if (name === 'proxy')
            listener.on('connection', (socket: import('node:net').Socket) => {
              socket.on('error', () => undefined);
              socket.once('data', () => socket.end('HTTP/1.0 200 OK\r\n\r\nfrom outside\n'));
            });
        },
      },
    );
    expect(stdout).toMatch(/^from outside\nls: \/sys\/class: No such file or directory\n/);
    expect(stdout.split('\n').filter((line) => /^\S+\t[0-9A-F]{8}/.test(line))).toEqual([]);
  });

  test('user, entry point, volumes, health check and set-user-ID programs of the image have no effect', async () => {
    using image = tinyImage({
      setUserId: true,
      files: {
        'data/kept': 'x',
        'etc/passwd': `root:x:0:0::/:/bin/sh\nme:x:${USER.uid}:0::/:/bin/sh\n`,
        'etc/group': 'root:x:0:me\nwheel:x:10:me\n',
      },
      says: [
        'USER root',
        'ENTRYPOINT ["/bin/sh", "-c", "echo entered"]',
        'CMD ["/bin/false"]',
        'VOLUME /data',
        'VOLUME /var/lib/service/',
        'HEALTHCHECK --interval=1s CMD ["/bin/touch", "/tmp/checked"]',
        'WORKDIR /data',
      ],
    });
    using over = await openImage(image.name);
    const script =
      'pwd; id -u; id -G; busybox id -u; for d in /data /var/lib/service; do touch $d/x 2>/dev/null && echo "wrote $d"; done; sleep 2; ls /tmp';
    const sandbox = await over.place.run(['sh', '-c', script], { spec: over.spec() });
    expect(sandbox.stdout).toBe(`/\n${USER.uid}\n${USER.gid}\n${USER.uid}\n`);
  });

  test('variables and libraries of the image do not affect programs of ags', async () => {
    const someLibrary = execFileSync('sh', ['-c', 'ldd /usr/bin/perl | sed -n "s/.*libm.so.6 => \\(\\S*\\).*/\\1/p"'], {
      encoding: 'utf8',
    }).trim();
    using image = tinyImage({
      files: { 'evil/Evil.pm': EVIL, 'evil/evil.so': { copy: someLibrary }, 'etc/ld.so.preload': '/evil/evil.so\n' },
      says: [
        'ENV PERL5OPT=-MEvil PERL5LIB=/evil LD_PRELOAD=/evil/evil.so HOME=/evil PATH=/evil DOCKER_CONFIG=/evil ODD=1',
      ],
    });
    using over = await openImage(image.name);
    const { place } = over;
    const sandbox = await place.start(['sh', '-c', 'echo up; cat /tmp/evil 2>&1; env; cat'], {
      spec: over.spec([], { network: LISTENERS }),
      onListener: () => undefined,
    });
    let said = '';
    sandbox.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString()));
    await until(sandbox, 'PATH=');
    if (CALLER === 'root') {
      const { initPid } = sandbox;
      expect(readFileSync(`/proc/${initPid}/maps`, 'utf8')).not.toContain('evil');
      expect(readFileSync(`/proc/${initPid}/environ`, 'utf8')).not.toMatch(/evil|ODD/);
    }
    sandbox.stdin?.end();
    await ended(sandbox);
    expect(said).toMatch(/^up\ncat: can't open '\/tmp\/evil': No such file or directory\n/);
  });

  test.each([
    ['a volume inside a mount', { says: ['VOLUME /tmp/data'] }, /has a volume at \/tmp\/data, which is in \/tmp/],
    ['a link on the path to a mount', { files: { srv: { link: 'opt' } } }, /opt\/home could be written/],
    [
      'a link in place of /etc/ld.so.preload',
      { files: { 'etc/ld.so.preload': { link: '/tmp/mine' } } },
      /leads \/etc\/ld.so.preload elsewhere/,
    ],
  ])('%s keeps the sandbox from starting', async (_, wish, why) => {
    using image = tinyImage(wish);
    using over = await openImage(image.name);
    const spec = over.spec([bind(over.place.writable('home'), '/srv/home', true)]);
    const error = await over.place.run(['sh', '-c', 'echo ran'], { spec }).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(AgsError);
    const { message, details } = error as AgsError;
    expect(`${message} ${String(details['lacking'])}`).toMatch(why);
  });

  test('an undeclared writable mount is detected from outside', async () => {
    using image = tinyImage();
    using over = await openImage(image.name);
    const line = (path: string, own: string, all: string): string =>
      `1 0 0:1 / ${path} ${own},relatime - ext4 /dev/x ${all}`;
    const ours = ['/', '/sys', '/sys/ags', '/sys/perl', '/etc/ld.so.preload'].map((path) => line(path, 'ro', 'rw'));
    const spec = over.spec([tmpfs('/with space')]);
    const all = [
      ...ours,
      line('/tmp', 'rw', 'rw'),
      line('/with\\040space', 'rw', 'rw'),
      line('/proc/keys', 'rw', 'rw'),
    ];
    expect(misplacedMount(all.join('\n'), spec)).toBeNull();
    expect(misplacedMount([...all, line('/data', 'rw', 'rw')].join('\n'), spec)).toBe('/data could be written');
    expect(misplacedMount([...all, line('/data', 'rw', 'ro')].join('\n'), spec)).toBeNull();
    expect(misplacedMount([line('/', 'rw', 'rw'), ...all.slice(1)].join('\n'), spec)).toBe('/ could be written');
    expect(misplacedMount(all.filter((one) => !one.includes('/sys/perl')).join('\n'), spec)).toBe(
      'its image leads /sys/perl elsewhere',
    );
  });
}

if (HAS_ENGINE && ALSO_AS_USER)
  test('sandboxes of an ordinary user with access to Docker pass as well', async () => {
    const mine = String(expect.getState().testPath);
    const { passed, failed, other } = await runAgain({ file: mine, uid: 42_424, group: 'docker', deadlineMs: 590_000 });
    expect({ failed, other, enough: passed.length >= 9 }).toEqual({ failed: [], other: [], enough: true });
  }, 600_000);
if (!HAS_ENGINE) test.skip('Docker does not answer here', () => undefined);
