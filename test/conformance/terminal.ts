// test/conformance/terminal.ts: a command on a pseudo-terminal from ags behaves as on the user's terminal.
import { closeSync, constants, openSync, readdirSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Stdio } from '../../src/sandbox/backend.ts';
import { collect, createPlace, ended, INHERITED, OTHER_DESCRIPTORS, type Open, type Place } from './place.ts';

export function terminalPromises(open: Open): void {
  const facts =
    'for n in 0 1 2; do test -t $n; echo -n "$? "; done; test -c /dev/tty && : < /dev/tty && echo -n "tty "; perl -MPOSIX -e \'print POSIX::tcgetpgrp(POSIX::open("/dev/tty", 2)) == getpgrp ? "foreground " : "background "\'; stty size < /dev/tty';

  describe('a terminal', () => {
    test('is the command’s controlling terminal, with the command in the foreground and the right size', async () => {
      using place = await createPlace(open);
      const screen = await startOn(place, ['sh', '-c', facts], (slave) => ({
        stdin: slave,
        stdout: slave,
        stderr: slave,
      }));
      expect(await screen.ended()).toEqual({ code: 0, shown: '0 0 0 tty foreground 24 80\r\n' });
    });

    test('is the controlling one even when the streams are pipes', async () => {
      using place = await createPlace(open);
      const { sandbox, ended: end } = await startOn(place, ['sh', '-c', 'cat; echo to the screen > /dev/tty'], () => ({
        stdin: 'pipe',
        stdout: 'pipe',
        stderr: 'pipe',
      }));
      sandbox.stdin?.end('piped');
      sandbox.stderr?.resume();
      const stdout = collect(sandbox.stdout);
      expect(await end()).toEqual({ code: 0, shown: 'to the screen\r\n' });
      expect((await stdout).toString('utf8')).toBe('piped');
    });

    test('gives the command no descriptor besides its slave side', async () => {
      using place = await createPlace(open);
      const screen = await startOn(place, OTHER_DESCRIPTORS, (slave) => ({
        stdin: slave,
        stdout: slave,
        stderr: slave,
      }));
      const { shown } = await screen.ended();
      expect(shown.split('\r\n').filter((row) => row !== '' && !INHERITED.includes(row.split(' ')[0] ?? ''))).toEqual(
        [],
      );
    });

    test('Ctrl-C ends the foreground job, Ctrl-Z stops it, and the shell goes on', async () => {
      using place = await createPlace(open);
      const screen = await startOn(
        place,
        ['bash', '--norc', '--noprofile', '-i'],
        (slave) => ({ stdin: slave, stdout: slave, stderr: slave }),
        { PS1: '> ' },
      );
      await screen.shows(/> $/);
      screen.type('echo begin; sleep 61\n');
      await screen.shows(/\nbegin\r\n$/);
      await sleep(200);
      screen.type('\u0003');
      await screen.shows(/\^C[\s\S]*> $/);
      screen.type('echo code $?; sleep 62\n');
      await screen.shows(/\ncode 130\r\n$/);
      await sleep(200);
      // Ctrl-Z has no effect until the job is in the foreground, so it is repeated.
      const again = setInterval(() => screen.type('\u001a'), 2000);
      screen.type('\u001a');
      await screen.shows(/Stopped[\s\S]*> $/).finally(() => clearInterval(again));
      screen.type('jobs; kill %1; fg; echo over\n');
      // The shell reports a job that ends slowly with its next prompt.
      await screen.shows(/sleep 62[\s\S]*(Terminated[\s\S]*\nover\r\n|\nover\r\n[\s\S]*Terminated[^\n]*\n)> $/);
      screen.type('exit 9\n');
      expect((await screen.ended()).code).toBe(9);
    });

    test('that is only a stream does not become the controlling one', async () => {
      using place = await createPlace(open);
      const screen = await startOn(
        place,
        ['sh', '-c', 'test -t 0 && echo a terminal; (: < /dev/tty) 2>/dev/null || echo not ours'],
        (slave) => ({ stdin: slave, stdout: slave, stderr: slave, terminal: null }),
      );
      const { code, shown } = await screen.ended();
      expect([code, shown]).toEqual([0, 'a terminal\r\nnot ours\r\n']);
    });

    test('is not held open by any process after the sandbox is killed', async () => {
      using place = await createPlace(open);
      const screen = await startOn(place, ['sh', '-c', 'echo ready; sleep 63'], (slave) => ({
        stdin: slave,
        stdout: slave,
        stderr: slave,
      }));
      await screen.shows(/ready/);
      screen.sandbox.kill();
      expect((await screen.ended()).code).toBe(137);
    });
  });
}

interface Pty {
  readonly ptsName: string;
  readonly master: NodeJS.ReadWriteStream & { destroy(): void };
  readonly slave: { destroy(): void };
}

interface Screen {
  readonly sandbox: Awaited<ReturnType<Place['start']>>;
  type(text: string): void;
  shows(pattern: RegExp): Promise<void>;
  ended(): Promise<{ code: number; shown: string }>;
}

async function startOn(
  place: Place,
  command: readonly string[],
  streams: (slave: number) => Partial<Stdio>,
  env: Record<string, string> = {},
): Promise<Screen> {
  const { open } = (await import('@lydell/node-pty')).default as unknown as { open(options: object): Pty };
  const pty = open({ cols: 80, rows: 24, encoding: null });
  const slave = openSync(pty.ptsName, constants.O_RDWR | constants.O_NOCTTY);
  pty.slave.destroy();
  closeOthers(pty.ptsName, slave);
  let shown = '';
  pty.master.on('data', (chunk: Buffer) => (shown += chunk.toString('utf8')));
  const closed = new Promise<void>((resolve) => pty.master.on('error', () => resolve()).on('close', () => resolve()));
  const spec = place.spec();
  const sandbox = await place.start(command, {
    spec: { ...spec, env: { ...spec.env, TERM: 'dumb', ...env } },
    stdio: { terminal: slave, ...streams(slave) },
  });
  return {
    sandbox,
    type: (text) => void pty.master.write(text),
    async shows(pattern) {
      for (const end = Date.now() + 30_000; !pattern.test(shown); await sleep(10))
        if (Date.now() > end) throw new Error(`never showed ${pattern}: ${JSON.stringify(shown)}`);
    },
    async ended() {
      const code = await ended(sandbox);
      closeSync(slave);
      // The master closes when no process holds the slave any more.
      await Promise.race([
        closed,
        sleep(30_000, undefined, { ref: false }).then(() =>
          Promise.reject(new Error('a process still holds the terminal')),
        ),
      ]);
      pty.master.destroy();
      return { code, shown };
    },
  };
}

// node-pty opens the slave a second time for a stream and never closes the first descriptor.
function closeOthers(name: string, kept: number): void {
  for (const fd of readdirSync('/proc/self/fd').map(Number)) if (fd !== kept && linkOf(fd) === name) closeSync(fd);
}

function linkOf(fd: number): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    // The descriptor that listed the directory is closed.
    return '';
  }
}
