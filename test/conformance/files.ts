// test/conformance/files.ts: a sandboxed command's view: mounts, project, environment, identity.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { directoryIdentity } from '../../src/lib/files.ts';
import { hostPath, sandboxPath, type Mount } from '../../src/protocol/spec.ts';
import { bind, createPlace, dir, file, fingerprint, overlay, tmpfs, USER, type Open } from './place.ts';

export function filePromises(open: Open): void {
  const own = open.own ?? { root: [], etc: [] };

  describe('identity and environment', () => {
    test('the environment is exactly that of the spec', async () => {
      using place = await createPlace(open);
      const env = {
        PATH: '/usr/bin:/bin',
        EMPTY: '',
        SPACED: ' a  b ',
        LINES: 'one\ntwo',
        EQUALS: 'a=b=c',
        QUOTED: `"'\\$(id)\``,
        UMLAUT: 'größe',
        HOME: '/nowhere',
      };
      process.env['AGS_CANARY'] = 'canary';
      try {
        const { stdout } = await place.run(['cat', '/proc/self/environ'], {
          spec: place.spec([], { env, workdir: sandboxPath('/usr') }),
        });
        const found = Object.fromEntries(
          stdout
            .split('\0')
            .slice(0, -1)
            .map((one) => [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)]),
        );
        // PWD reveals nothing that the command does not know.
        const { PWD, ...rest } = found;
        expect([rest, PWD ?? '/usr']).toEqual([env, '/usr']);
        const all = await place.run(['sh', '-c', 'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>&1']);
        expect(all.stdout).not.toContain('canary');
      } finally {
        delete process.env['AGS_CANARY'];
      }
    });

    test('the identity is the spec’s, without any privilege', async () => {
      using place = await createPlace(open);
      const script =
        'id -u; id -g; uname -n; pwd; grep -E "^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):" /proc/self/status';
      const { stdout } = await place.run(['sh', '-c', script], {
        spec: place.spec([tmpfs('/work dir')], { hostname: 'odd-name', workdir: sandboxPath('/work dir') }),
      });
      const none = '0000000000000000';
      expect(stdout).toBe(
        `${USER.uid}\n${USER.gid}\nodd-name\n/work dir\nCapInh:\t${none}\nCapPrm:\t${none}\nCapEff:\t${none}\nCapBnd:\t${none}\nCapAmb:\t${none}\nNoNewPrivs:\t1\nSeccomp:\t2\n`,
      );
      // 65534 stands for a group of the caller that is not mapped inside.
      expect(
        (await place.run(['id', '-G'])).stdout
          .trim()
          .split(' ')
          .filter((gid) => gid !== '65534'),
      ).toEqual([String(USER.gid)]);
    });
  });

  describe('mounts', () => {
    test('/ contains only what the spec names', async () => {
      using place = await createPlace(open);
      const spec = place.spec([dir('/empty'), bind(place.project, '/deep/er/project'), file('/one', '1')]);
      const { stdout } = await place.run(['ls', '-A', '/'], { spec });
      expect(stdout.trim().split('\n').toSorted()).toEqual(
        [...new Set([...spec.mounts.map((mount) => mount.to.split('/')[1] ?? ''), ...own.root])].toSorted(),
      );
      expect((await place.run(['ls', '-A', '/deep', '/etc', '/empty'], { spec })).stdout).toBe(
        `/deep:\ner\n\n/empty:\n\n/etc:\n${['alternatives', ...own.etc].map((name) => `${name}\n`).join('')}`,
      );
      const writing =
        'for d in / /deep /empty /etc /dev; do (touch $d/x) 2>/tmp/err && echo "made $d/x"; grep -v Read-only /tmp/err; done; :';
      const { stdout: said } = await place.run(['sh', '-c', writing], { spec });
      // In a container, root owns /dev, so the write fails with another error.
      const closed = open.own === undefined ? '' : "touch: cannot touch '/dev/x': Permission denied\n";
      expect(said).toBe(closed);
    });

    test('a later mount covers an earlier one, whatever their kinds', async () => {
      using place = await createPlace(open);
      place.write('a', 'bound\n');
      place.write('sub/b', 'below\n');
      const read = async (more: readonly Mount[], command: string): Promise<string> =>
        (await place.run(['sh', '-c', `{ ${command}; } 2>&1`], { spec: place.spec(more) })).stdout;
      expect(await read([file('/conf/a', 'first\n'), file('/conf/a', 'second\n')], 'cat /conf/a')).toBe('second\n');
      expect(await read([bind(place.project, '/p'), file('/p/a', 'covered\n')], 'cat /p/a /p/sub/b')).toBe(
        'covered\nbelow\n',
      );
      expect(await read([file('/p/x', 'x\n'), bind(place.project, '/p')], 'ls /p; cat /p/a')).toBe('a\nsub\nbound\n');
      expect(await read([bind(place.project, '/p'), tmpfs('/p')], 'ls -A /p; touch /p/new && ls /p')).toBe('new\n');
      expect(await read([tmpfs('/p'), bind(place.project, '/p/q')], 'ls /p; cat /p/q/a')).toBe('q\nbound\n');
      expect(
        await read([bind(place.project, '/p'), tmpfs('/p/sub'), file('/p/sub/c', 'deep\n')], 'ls /p/sub; cat /p/sub/c'),
      ).toBe('c\ndeep\n');
    });

    test('a read-only directory cannot be changed in any way; changes to a writable one reach the host', async () => {
      using place = await createPlace(open);
      place.write('file', 'as it was\n');
      place.write('private', 'only its owner may read this\n', 0o600);
      symlinkSync('file', join(place.project, 'link'));
      const shared = place.writable('shared');
      const before = fingerprint(place.project);
      const attempts = [
        'echo x > file',
        'echo x >> file',
        'touch new',
        'rm -f file',
        'mv file other',
        'chmod 777 file',
        'mkdir d',
        'ln file hard',
        'ln -s a b',
        'truncate -s 0 link',
        'mv /tmp/t file',
      ];
      const script = [
        'cd /p; touch /tmp/t; cat private',
        ...attempts.map(
          (attempt) =>
            `if ( ${attempt} ) 2>/tmp/err; then echo "DONE: ${attempt}"; elif ! grep -qE "Read-only|Invalid cross-device" /tmp/err; then cat /tmp/err; fi`,
        ),
        'echo out > /shared/f; chmod 755 /shared/f; mkdir /shared/d',
      ].join('\n');
      expect(
        await place.run(['sh', '-c', script], {
          spec: place.spec([bind(place.project, '/p'), bind(shared, '/shared', true)]),
        }),
      ).toEqual({ code: 0, stdout: 'only its owner may read this\n', stderr: '' });
      expect(fingerprint(place.project)).toEqual(before);
      expect([readdirSync(shared).toSorted(), readFileSync(join(shared, 'f'), 'utf8')]).toEqual([['d', 'f'], 'out\n']);
    });

    test('mount points inside a writable directory leave the directory usable', async () => {
      using place = await createPlace(open);
      place.write('tool', 'a tool\n');
      const home = place.writable('home');
      const spec = place.spec([
        bind(home, '/home/me', true),
        bind(place.project, '/home/me/.tools/deep'),
        file('/home/me/.config/x', 'setting\n'),
        tmpfs('/home/me/cache'),
      ]);
      const { stdout, stderr } = await place.run(
        [
          'sh',
          '-c',
          'cd /home/me; cat .tools/deep/tool .config/x; echo y > .config/y; echo z > .tools/z; touch cache/w .tools/deep/no; ls cache',
        ],
        { spec },
      );
      expect([stdout, stderr]).toEqual([
        'a tool\nsetting\nw\n',
        "touch: cannot touch '.tools/deep/no': Read-only file system\n",
      ]);
      expect([
        readFileSync(join(home, '.config/y'), 'utf8'),
        readFileSync(join(home, '.tools/z'), 'utf8'),
        existsSync(join(home, 'cache/w')),
      ]).toEqual(['y\n', 'z\n', false]);
    });

    test('a single file can be bound', async () => {
      using place = await createPlace(open);
      place.write('one', 'alone\n');
      place.write('two', 'not visible\n');
      const { stdout } = await place.run(['sh', '-c', 'ls /x; cat /x/renamed'], {
        spec: place.spec([bind(join(place.project, 'one'), '/x/renamed')]),
      });
      expect(stdout).toBe('renamed\nalone\n');
    });

    test('a tmpfs has its size and mode, and belongs to the sandbox', async () => {
      using place = await createPlace(open);
      const script =
        'stat -c %a /s /p; cd /s; head -c 900000 /dev/zero > a && echo fits; head -c 900000 /dev/zero > b || stat -c %s b; rm a b; head -c 900000 /dev/zero > c && echo again; touch /p/x && echo mine';
      const { stdout, stderr } = await place.run(['sh', '-c', script], {
        spec: place.spec([tmpfs('/s', 1024 * 1024, '1777'), tmpfs('/p', 65536, '0700')]),
      });
      const [, , fits, taken, ...rest] = stdout.split('\n');
      expect([stdout.slice(0, 9), fits, rest]).toEqual(['1777\n700\n', 'fits', ['again', 'mine', '']]);
      expect(Number(taken)).toBeLessThan(1024 * 1024 - 900_000 + 4096);
      expect(stderr).toContain('No space left on device');
    });

    test('directories have their mode, files their content, links their target', async () => {
      using place = await createPlace(open);
      const long = 'x'.repeat(200_000);
      const link = (target: string, to: string): Mount => ({
        kind: 'symlink',
        target,
        to: sandboxPath(to),
        why: 'test',
      });
      const spec = place.spec([
        dir('/d/open', '0755'),
        dir('/d/shut', '0700'),
        file('/f/empty', ''),
        file('/f/text', 'größe\n\ttab\n'),
        file('/f/long', long),
        link('../f/text', '/l/relative'),
        link('/no where/$x', '/l/odd'),
      ]);
      const { stdout } = await place.run(
        [
          'sh',
          '-c',
          'stat -c %a /d/open /d/shut; stat -c %s /f/empty /f/long; cat /f/text /l/relative; readlink /l/odd; echo x 2>/dev/null > /f/text || echo refused',
        ],
        { spec },
      );
      expect(stdout).toBe(`755\n700\n0\n${long.length}\ngröße\n\ttab\ngröße\n\ttab\n/no where/$x\nrefused\n`);
    });

    test('names of any kind work as mount points and as sources', async () => {
      using place = await createPlace(open);
      const names = [
        'with space',
        "it's",
        '"q"',
        'new\nline',
        '*',
        '[x]',
        '-dash',
        'größe',
        'a,b=c:d',
        '\\back',
        '$HOME',
        '%s',
      ];
      const mounts = names.map((name) => {
        mkdirSync(join(place.project, name));
        writeFileSync(join(place.project, name, 'f'), `${name}\0`);
        return bind(join(place.project, name), `/odd/${name}`);
      });
      const { stdout, stderr } = await place.run(
        ['perl', '-e', 'for (@ARGV) { open F, "<", "/odd/$_/f" or die "$_: $!"; print <F> }', '--', ...names],
        { spec: place.spec(mounts) },
      );
      expect([stdout.split('\0').slice(0, -1), stderr]).toEqual([names, '']);
    });

    test('/proc shows only the sandbox’s processes, and settings of the machine cannot be changed there', async () => {
      using place = await createPlace(open);
      const pids = (await place.run(['sh', '-c', 'echo /proc/[0-9]*'])).stdout
        .trim()
        .split(' ')
        .map((path) => Number(path.slice(6)));
      expect(pids[0]).toBe(1);
      expect(Math.max(...pids)).toBeLessThan(10);
      const { stdout } = await place.run([
        'sh',
        '-c',
        `for f in sys/kernel/core_pattern sys/kernel/hostname sys/vm/drop_caches sysrq-trigger self/root${place.root}/x 1/root${place.root}/x; do (echo 1 > /proc/$f) 2>/dev/null && echo "wrote $f"; done; ls -d /proc/*/root${place.root} 2>/dev/null; echo end`,
      ]);
      expect([stdout, existsSync(join(place.root, 'x'))]).toEqual(['end\n', false]);
    });

    test('/dev has only harmless devices and its own pseudo-terminals', async () => {
      using place = await createPlace(open);
      const { stdout } = await place.run([
        'sh',
        '-c',
        'ls -A /dev; ls -A /dev/pts; head -c 3 /dev/zero | od -An -tx1; echo x > /dev/null && echo null; head -c 8 /dev/urandom | wc -c; echo x 2>/dev/null > /dev/full || echo full; perl -e \'open P, "+<", "/dev/ptmx" or die; print "pty\\n"\'; find /dev -type b -o -type c | wc -l',
      ]);
      const [listed = '', rest] = stdout.split(' 00 00 00\n');
      const allowed = [
        'core',
        'fd',
        'full',
        'mqueue',
        'null',
        'ptmx',
        'pts',
        'random',
        'shm',
        'stderr',
        'stdin',
        'stdout',
        'tty',
        'urandom',
        'zero',
      ];
      const names = listed
        .trim()
        .split('\n')
        .filter((name) => name !== '');
      expect(names.filter((name) => !allowed.includes(name))).toEqual([]);
      for (const needed of [
        'null',
        'zero',
        'full',
        'random',
        'urandom',
        'tty',
        'ptmx',
        'pts',
        'fd',
        'stdin',
        'stdout',
        'stderr',
      ])
        expect(names).toContain(needed);
      expect(rest?.startsWith('null\n8\nfull\npty\n')).toBe(true);
    });
  });

  describe('the project', () => {
    test('is copy-on-write: every change works inside, is stored in the upper, and leaves the project alone', async () => {
      using place = await createPlace(open);
      place.write('keep', 'kept\n');
      place.write('edit', 'before\n');
      place.write('gone', 'delete me\n');
      place.write('run.sh', '#!/bin/sh\necho ran\n', 0o755);
      place.write('private', 'mode 600\n', 0o600);
      place.write('tree/a/b', 'deep\n');
      place.write('move/x', 'moved\n');
      symlinkSync('keep', join(place.project, 'link'));
      const before = fingerprint(place.project);
      const script =
        'set -e; cat link private; ./run.sh; echo after > edit; rm gone; mkdir new; echo n > new/file; chmod 700 keep; rm -r tree; mkdir tree; echo t > tree/fresh; mv move moved 2>/dev/null || { cp -r move moved; rm -r move; }; ln -s nowhere dangling; ls -A; ls tree moved; cat edit';
      const outcome = await place.run(['sh', '-c', script], {
        spec: place.spec([overlay(place)], { workdir: sandboxPath('/project') }),
      });
      expect(outcome).toEqual({
        code: 0,
        stdout:
          'kept\nmode 600\nran\ndangling\nedit\nkeep\nlink\nmoved\nnew\nprivate\nrun.sh\ntree\nmoved:\nx\n\ntree:\nfresh\nafter\n',
        stderr: '',
      });
      expect(fingerprint(place.project)).toEqual(before);
      const upper = join(place.directory, 'upper');
      expect(Object.keys(fingerprint(upper))).toEqual([
        'dangling',
        'edit',
        'gone',
        'keep',
        'move',
        'moved',
        'moved/x',
        'new',
        'new/file',
        'tree',
        'tree/fresh',
      ]);
      expect(readFileSync(join(upper, 'edit'), 'utf8')).toBe('after\n');
    });

    test('does not contain hidden files: not in a listing, not by name, and not after the name was used', async () => {
      using place = await createPlace(open);
      for (const path of ['.env', 'deep/down/secret.pem', 'vault/key', 'vault/more/key', 'seen'])
        place.write(path, 'SECRET\n');
      mkdirSync(join(place.project, 'deep/odd'), { mode: 0o755 });
      chmodSync(join(place.project, 'deep'), 0o750);
      utimesSync(join(place.project, 'deep'), 1000, 2000);
      const before = fingerprint(place.project);
      const hidden = ['.env', 'deep/down/secret.pem', 'vault'];
      const script =
        'find . | sort; stat -c "%a %Y" deep; for f in .env deep/down/secret.pem vault vault/key; do cat $f 2>/dev/null; ls $f 2>/dev/null; done; echo own > .env; mkdir vault; echo own > vault/key; cat .env; find vault; rm .env; cat .env 2>/dev/null; ls -A vault';
      const { stdout, stderr } = await place.run(['sh', '-c', script], {
        spec: place.spec([overlay(place, hidden)], { workdir: sandboxPath('/project') }),
      });
      expect([stdout, stderr]).toEqual([
        '.\n./deep\n./deep/down\n./deep/odd\n./seen\n750 2000\nown\nvault\nvault/key\nkey\n',
        '',
      ]);
      expect(fingerprint(place.project)).toEqual(before);
    });

    test('frozen, it shows the changes of a sandbox, read-only', async () => {
      using place = await createPlace(open);
      for (const path of ['same', 'edit', 'gone', 'secret']) place.write(path, `${path}\n`);
      const first = place.spec([overlay(place, ['secret'])], { workdir: sandboxPath('/project') });
      expect((await place.run(['sh', '-c', 'echo edited > edit; rm gone; echo n > new'], { spec: first })).code).toBe(
        0,
      );
      const upper = join(place.directory, 'upper');
      const before = [fingerprint(place.project), fingerprint(upper)];
      const frozen: Mount = {
        kind: 'workspace',
        workspace: {
          kind: 'frozen-overlay',
          layers: [{ path: hostPath(place.project), identity: directoryIdentity(place.project) }],
          hidden: ['secret'],
          upper: hostPath(upper),
        },
        to: sandboxPath('/project'),
        why: 'test',
      };
      const script =
        'ls -A; cat edit new same; for c in "touch edit" "touch other" "rm new" "chmod 777 new" "mkdir d"; do if $c 2>/tmp/err; then echo "DONE $c"; else grep -q Read-only /tmp/err || cat /tmp/err; fi; done';
      expect(
        await place.run(['sh', '-c', script], { spec: place.spec([frozen], { workdir: sandboxPath('/project') }) }),
      ).toEqual({ code: 0, stdout: 'edit\nnew\nsame\nedited\nn\nsame\n', stderr: '' });
      expect([fingerprint(place.project), fingerprint(upper)]).toEqual(before);
    });

    test('as a copy, it is written in place, or read-only', async () => {
      using place = await createPlace(open);
      const copy = place.writable('copy');
      const mount = (writable: boolean): Mount => ({
        kind: 'workspace',
        workspace: { kind: 'copy', directory: hostPath(copy), writable },
        to: sandboxPath('/project'),
        why: 'test',
      });
      const workdir = sandboxPath('/project');
      expect(
        (await place.run(['sh', '-c', 'echo n > new; cat new'], { spec: place.spec([mount(true)], { workdir }) }))
          .stdout,
      ).toBe('n\n');
      const before = fingerprint(copy);
      const refused = await place.run(['sh', '-c', 'cat new; touch other; echo x >> new; rm -f new; chmod 777 new'], {
        spec: place.spec([mount(false)], { workdir }),
      });
      expect(refused.stderr.split('\n').filter((line) => line !== '' && !line.includes('Read-only'))).toEqual([]);
      expect([refused.stdout, fingerprint(copy)]).toEqual(['n\n', before]);
    });
  });
}
