// test/attacks/launch.test.ts: unusual starts: odd paths and variables, a swapped project, files that an earlier sandbox left, a sandbox
// program that is missing or lies. The start works or is refused; it never shows more.
// needs: sandbox
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { AGS, CALLERS, createMachine, giveTo, type Machine, type Result } from '../harness.ts';
import { prepareMutant } from './mutation/mutant.ts';
import { identity } from './run-inside.ts';

const SECRET = 'CANARY-of-the-sibling';

function addSibling(machine: Machine): string {
  const sibling = join(machine.home, 'code/sibling');
  mkdirSync(sibling, { recursive: true });
  writeFileSync(join(sibling, 'private.txt'), `${SECRET}\n`);
  giveTo(join(machine.home, 'code'), machine.uid);
  return sibling;
}

const ODD_NAMES = [
  'code/with space, comma: colon; quo\'te"d `touch pwned` $(touch pwned) $HOME %s%n',
  'code/new\nline\tand\ttabs',
  'code/-rf [x] sta*r {a,b} ? back\\slash\\040 \\',
  'code/ünïcode 中文 \u202e lower:upper,workdir=x',
];

describe.concurrent.each(CALLERS)('as %s', (caller) => {
  test.for(ODD_NAMES)('A19: a project called %j is shown alone, and its changes come back', async (name) => {
    using machine = createMachine(caller, { name });
    addSibling(machine);
    const inside = await machine.ags([
      'exec',
      '--review',
      'later',
      '--',
      'sh',
      '-c',
      'pwd; cat src/a.txt; echo new > new.txt; find .. -mindepth 1 -maxdepth 1 -printf x | wc -c; ls -A "$HOME/code"; cat "$HOME/code/sibling/private.txt" ../sibling/private.txt',
    ]);
    const review = await machine.ags(['review', '--accept-all', '--json']);
    expect(inside.stdout).not.toContain(SECRET);
    expect(inside.stdout.startsWith(`${machine.project}\none\ntwo\nthree\n1\n`)).toBe(true);
    expect(JSON.parse(review.stdout)).toMatchObject({ taken: ['new.txt'], failed: [], left: 0 });
    expect(machine.read('new.txt')).toBe('new\n');
    expect(readdirSync(machine.home).filter((entry) => !['code', '.local', '.cache'].includes(entry))).toEqual([]);
  });

  test('A19: a state directory with an odd name is used, and no other directory', async () => {
    using machine = createMachine(caller);
    const state = join(machine.home, 'st,a:te\\ "x\' *[y]\n$(touch pwned)');
    const env = { XDG_STATE_HOME: state };
    const run = await machine.ags(
      ['exec', '--review', 'later', '--', 'sh', '-c', 'echo new > new.txt; rm README.md; cat src/a.txt'],
      { env },
    );
    const review = await machine.ags(['review', '--accept-all', '--json'], { env });
    expect({ code: run.code, stdout: run.stdout }).toEqual({ code: 0, stdout: 'one\ntwo\nthree\n' });
    expect((JSON.parse(review.stdout) as { taken: string[] }).taken.toSorted()).toEqual(['README.md', 'new.txt']);
    expect(readdirSync(machine.home).toSorted()).toEqual(
      ['.cache', 'code', state.slice(machine.home.length + 1)].toSorted(),
    );
  });

  test.for(['/', '', 'relative/..', '/usr', '/etc', '/nonexistent/home', 'project', 'parent'])(
    'A19: with HOME=%j nothing more is shown',
    async (given) => {
      using machine = createMachine(caller);
      const sibling = addSibling(machine);
      const home = given === 'project' ? machine.project : given === 'parent' ? join(machine.home, 'code') : given;
      const env = {
        HOME: home,
        XDG_STATE_HOME: join(machine.root, 'state'),
        XDG_CACHE_HOME: join(machine.root, 'cache'),
      };
      for (const dir of ['state', 'cache']) mkdirSync(join(machine.root, dir));
      giveTo(join(machine.root, 'state'), machine.uid);
      giveTo(join(machine.root, 'cache'), machine.uid);
      const run = await machine.ags(
        [
          'exec',
          '--review',
          'later',
          '--',
          'sh',
          '-c',
          `cat ${sibling}/private.txt; ls /var/lib /etc/shadow /sys; touch ${sibling}/planted /usr/planted`,
        ],
        { env },
      );
      expect(run.stdout).toBe('');
      expect(run.stderr).not.toContain('this is a bug');
      expect(readdirSync(sibling)).toEqual(['private.txt']);
    },
  );

  test.for(
    ['../../escaped', '-rf', 'new\nline \u001b[2J', 'long'.repeat(1000)].map(
      (name) => [name.slice(0, 20), name] as const,
    ),
  )('A19: a task named %j stays in the state directory', async ([, name]) => {
    using machine = createMachine(caller);
    const run = await machine.ags([
      'exec',
      '--review',
      'later',
      `--name=${name}`,
      '--',
      'sh',
      '-c',
      'echo x > changed.txt; echo ran',
    ]);
    expect(run.stdout === 'ran\n' || run.stderr.startsWith('ags: ')).toBe(true);
    expect(machine.tasks().filter((id) => !/^[a-z0-9][a-z0-9-]{0,62}$/.test(id))).toEqual([]);
    expect(readdirSync(machine.home).toSorted()).toEqual(['.cache', '.local', 'code']);
    expect(readdirSync(machine.stateDir).filter((entry) => /escaped/.test(entry))).toEqual([]);
  });

  test.for(['before its directories are made', 'before it is started'] as const)(
    'A5: a project that is swapped for a link %s is not followed',
    async (when) => {
      using machine = createMachine(caller, { git: false });
      const sibling = addSibling(machine);
      const swap = (): void => {
        renameSync(machine.project, `${machine.project}.away`);
        symlinkSync(sibling, machine.project);
      };
      const attempt = prepareMutant(
        machine,
        when === 'before it is started' ? {} : { plan: (plan) => (swap(), plan) },
        ['sh', '-c', 'ls; cat private.txt; echo planted > planted.txt; echo ran'],
      );
      const prepared = await attempt.catch(() => null);
      if (prepared !== null) {
        if (when === 'before it is started') swap();
        const [file = '', ...args] = prepared.argv;
        const { stdout } = spawnSync(file, args, {
          cwd: '/',
          env: prepared.env,
          ...identity(machine),
          encoding: 'utf8',
          timeout: 20_000,
        });
        expect(stdout).not.toContain(SECRET);
      }
      expect(readdirSync(sibling)).toEqual(['private.txt']);
    },
  );

  test('A9: files that a sandbox leaves behind do not affect the next start', async () => {
    using machine = createMachine(caller);
    addSibling(machine);
    const plant = `mkdir -p "$HOME/.config/ags" "$HOME/.cache/ags" "$HOME/.local/state/ags/tasks/planted" "$HOME/.local/bin" .ags; printf 'mounts:\\n  - ${machine.home}\\n' | tee "$HOME/.config/ags/config.yaml" ags.yaml .ags/config.yaml ../ags.yaml > /dev/null; echo '{"problem":null}' > "$HOME/.cache/ags/ready.json"; printf '#!/bin/sh\\ntouch ${machine.root}/pwned\\n' | tee "$HOME/.local/bin/git" "$HOME/.local/bin/bwrap" > /dev/null; chmod 755 "$HOME/.local/bin/"*; for f in .bashrc .profile .gitconfig .npmrc; do echo breach > "$HOME/$f"; done; echo done`;
    const first = await machine.ags(['exec', '--review', 'later', '--', 'sh', '-c', plant]);
    const second = await machine.ags([
      'exec',
      '--review',
      'later',
      '--',
      'sh',
      '-c',
      `ls -A "$HOME"; cat ${machine.home}/code/sibling/private.txt ags.yaml 2>&1`,
    ]);
    expect(first.stdout).toBe('done\n');
    expect(second.stdout).not.toContain(SECRET);
    expect(
      second.stdout
        .split('\n')
        .filter((line) => /^\.(config|cache|local|bashrc|profile|gitconfig|npmrc|ags)$/.test(line)),
    ).toEqual([]);
    expect({ ...machine, pwned: readdirSync(machine.root) }.pwned).toEqual(['home']);
    expect(machine.has('ags.yaml')).toBe(false);
  });
});

describe.runIf(process.getuid?.() === 0).each(CALLERS)('A41: as %s', (caller) => {
  const exec = (network: string): string[] => [
    process.execPath,
    AGS,
    'exec',
    // Otherwise an engine on this machine would be used.
    '--backend',
    'native',
    '--review',
    'later',
    '--network',
    network,
    '--',
    'echo',
    'the command ran',
  ];
  const EXEC = exec('on');
  const lies: readonly (readonly [string, string])[] = [
    ['is missing', ''],
    ['fails', '#!/bin/sh\nexit 1\n'],
    ['runs the command as it is', '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n'],
    ['leaves the network out', leaveOut('--unshare-net')],
    ['leaves the filter out', leaveOut('--seccomp\\0[0-9]*')],
    ['leaves the read-only root out', leaveOut('--remount-ro\\0/')],
  ];

  test.for(lies)('when bubblewrap %s, nothing runs', ([, script]) => {
    using machine = createMachine(caller);
    const run = withBwrap(machine, script);
    expect(run.stdout).toBe('');
    expect({
      failed: run.code !== 0,
      bug: run.stderr.includes('this is a bug'),
      said: run.stderr.startsWith('ags: '),
    }).toEqual({ failed: true, bug: false, said: true });
  });

  test('A26: directories that cannot lie under an overlay are not shown unless the user asks for them', () => {
    using machine = createMachine(caller);
    // This clone may itself be below /opt, so it is mounted elsewhere first.
    const clone = join(machine.root, 'clone');
    mkdirSync(clone);
    const other = [
      `mount --rbind '${dirname(dirname(AGS))}' ${clone}`,
      'mount -t tmpfs -o mode=755 opt /opt && mkdir /opt/below && mount -t tmpfs below /opt/below && touch /opt/below/file',
    ].join(' && ');
    const ags = join(clone, relative(dirname(dirname(AGS)), AGS));
    const look = (...flags: string[]): string => {
      const command = [...flags, '--', 'sh', '-c', 'ls /opt /opt/below 2>/dev/null; exit 0'];
      const { stdout, stderr } = inNamespace(machine, other, [process.execPath, ags, 'exec', ...command]);
      return stdout + stderr;
    };
    expect(look()).toBe(
      'ags: /opt is not shown, because another file system is mounted below it. To show it as it is: --mount /opt\n',
    );
    expect(look('--mount', '/opt')).toBe('/opt:\nbelow\n\n/opt/below:\nfile\n');
  });

  test('A26: a server of the host with its socket in /usr/local cannot be reached', () => {
    using machine = createMachine(caller);
    const socket = `socket(S, PF_UNIX, SOCK_STREAM, 0)`;
    const serve = `perl -MSocket -e '${socket}; bind(S, pack_sockaddr_un("/usr/local/s")) or die; chmod 0777, "/usr/local/s"; listen S, 5; alarm 25; syswrite C, "breach" while accept(C, S)'`;
    const prepare = `mount -t tmpfs -o mode=755 local /usr/local && { ${serve} & } && until [ -S /usr/local/s ]; do sleep 0.1; done`;
    const talk = `${socket}; print connect(S, pack_sockaddr_un('/usr/local/s')) ? 'connected' : $!{ECONNREFUSED} ? 'refused' : $!`;
    const run = (...front: string[]): string =>
      inNamespace(machine, prepare, [...front, 'perl', '-MSocket', '-e', talk]).stdout;
    expect([run('env'), run(process.execPath, AGS, 'exec', '--')]).toEqual(['connected', 'refused']);
  });

  test('when bubblewrap starts to lie after a good start, nothing runs either', async () => {
    using machine = createMachine(caller);
    expect(await machine.ags(['exec', '--', 'true'])).toMatchObject({ code: 0 });
    // Without a gateway bubblewrap makes the network itself; listeners.test.ts has the other case.
    expect(withBwrap(machine, lies[3]?.[1] ?? '', 'off')).toMatchObject({ stdout: '' });
  });

  // Root's launcher needs no unshare.
  const forUsers = caller === 'user' ? test : () => undefined;
  forUsers('where only bubblewrap may make namespaces, a sandbox has no network, and ags says so', () => {
    using machine = createMachine(caller);
    const dir = mkdtempSync('/tmp/ags-unshare-');
    try {
      // Inside a sandbox, where ags tries whether user namespaces work, it is the real unshare.
      const refusing = `#!/bin/sh\n[ "$AGS_SANDBOX" != 1 ] || exec /usr/bin/chfn "$@"\necho "unshare: unshare failed: Operation not permitted" >&2\nexit 1\n`;
      writeFileSync(join(dir, 'unshare'), refusing, { mode: 0o755 });
      spawnSync('cp', ['/usr/bin/unshare', join(dir, 'real')]);
      spawnSync('chmod', ['755', dir]);
      const prepare = `mount --bind ${dir}/real /usr/bin/chfn && mount --bind ${dir}/unshare /usr/bin/unshare`;
      const run = inNamespace(machine, prepare, EXEC);
      expect(run).toMatchObject({ code: 0, stdout: 'the command ran\n' });
      expect(run.stderr).toContain('ags: Workspace: a full copy, because ');
      expect(run.stderr).toContain('ags: Network: only loopback, because on this system only bwrap');
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });

  test.for([false, true])(
    'where user namespaces are forbidden, nothing runs (after a good start: %s)',
    async (warm) => {
      using machine = createMachine(caller);
      if (warm) expect(await machine.ags(['exec', '--', 'true'])).toMatchObject({ code: 0 });
      const run = inNamespace(machine, 'echo 0 > /proc/sys/user/max_user_namespaces', EXEC, [
        '--user',
        '--map-users=0,0,100000',
        '--map-groups=0,0,100000',
      ]);
      expect({ stdout: run.stdout, failed: run.code !== 0, bug: run.stderr.includes('this is a bug') }).toEqual({
        stdout: '',
        failed: true,
        bug: false,
      });
    },
  );

  /** Runs `ags exec` with another program as /usr/bin/bwrap. */
  function withBwrap(machine: Machine, script: string, network = 'on'): Result {
    const dir = mkdtempSync('/tmp/ags-bwrap-');
    try {
      writeFileSync(join(dir, 'bwrap'), script.replace('REAL', join(dir, 'real')), {
        mode: script === '' ? 0o644 : 0o755,
      });
      spawnSync('cp', ['/usr/bin/bwrap', join(dir, 'real')]);
      spawnSync('chmod', ['755', dir]);
      return inNamespace(machine, `mount --bind ${dir}/bwrap /usr/bin/bwrap`, exec(network));
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  }

  /** Runs a command as the machine's caller in a mount namespace that root has prepared. */
  function inNamespace(
    machine: Machine,
    prepare: string,
    command: readonly string[],
    flags: readonly string[] = [],
  ): Result {
    const drop =
      machine.caller === 'root' ? '' : `setpriv --reuid ${machine.uid} --regid ${machine.uid} --clear-groups --`;
    const script = `{ ${prepare}; } && ${drop} "$@"; code=$?; [ -z "$!" ] || kill "$!"; exit "$code"`;
    const run = spawnSync(
      'unshare',
      ['--mount', '--propagation', 'private', ...flags, '--', 'sh', '-c', script, 'sh', ...command],
      { cwd: machine.project, env: machine.env, encoding: 'utf8', timeout: 110_000 },
    );
    // The readiness that ags found there is wrong for this machine: other tests must not read it.
    for (const name of listIfThere(join(machine.home, '.cache/ags')))
      if (name.startsWith('ready')) rmSync(join(machine.home, '.cache/ags', name));
    return { code: run.status, signal: run.signal, stdout: run.stdout, stderr: run.stderr };
  }
});

const listIfThere = (dir: string): string[] => (existsSync(dir) ? readdirSync(dir) : []);

/** A bubblewrap that removes one option from its arguments and passes the rest to the real one. */
function leaveOut(option: string): string {
  return `#!/usr/bin/perl
my $real = 'REAL';
open my $in, '<&=', 3 or exec $real, @ARGV; local $/; my $args = <$in>; $args =~ s/(^|\\0)${option}(?=\\0)//; pipe my $r, my $w; if (!fork) { close $r; print $w $args; exit } close $w;
require POSIX; POSIX::dup2(fileno $r, 3); exec $real, @ARGV;
`;
}
