// test/server/terminal.test.ts: a terminal in a tab draws the program's output and nothing more; a slow reader is disconnected.
// needs: sandbox
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ONE } from '../harness.ts';
import { createServerMachine, listen, type Listener, type ServerMachine } from './place.ts';

const REACHES = String.raw`printf 'a\033]52;c;b3duZWQ=\007b\033]8;;https://evil.test\033\\c\033]8;;\033\\d\033[5ie\033Pq\033\\f\033_x\033\\g\n'
printf '\033]'; sleep 0.2; printf '52;c;b3duZWQ=\007%s\n' split
`;

let machine: ServerMachine;
beforeAll(async () => {
  machine = await createServerMachine(ONE, { 'reach.sh': REACHES });
  await machine.server.call('POST', '/api/tasks', {
    project: machine.projectId,
    goals: [{ text: 'say: here // wait: 600', name: 'shell' }],
    agents: ['demo'],
  });
  await machine.event('shell', 'agent.said');
});
afterAll(async () => {
  await machine.ags(['rm', 'shell', '--force', '--yes']);
  machine[Symbol.dispose]();
});

const sit = (): Promise<Listener> => listen(machine.server, undefined, '/api/tasks/shell/terminal');

test('A121, A123, A126: a terminal in a tab reaches no clipboard, printer or link, for later viewers either', async () => {
  const first = await sit();
  first.socket.send(Buffer.from('sh reach.sh; echo "the e""nd"\n'));
  await first.sees('the end');
  const later = await sit();
  await later.sees('the end');
  for (const one of [first, later]) {
    expect(one.drawn()).toContain('abcdefg\r\nsplit\r\n');
    expect(one.drawn()).not.toMatch(/\x1b(?:[\]P_^X](?![012];)|\[5i)/);
    one.socket.terminate();
  }
});

test('A134: output is as fast as a tab reads it; a tab that does not read is disconnected, and the others continue', async () => {
  const [stuck, other] = [await sit(), await sit()];
  stuck.socket.pause();
  const ends = new Promise<string>((resolve) => {
    let said = '';
    other.socket.on('message', (data: Buffer) => {
      // Two messages may split the word.
      said = `${said.slice(-2)}${data.toString('latin1')}`;
      if (said.includes('all')) resolve('all');
    });
    void other.closed.then(resolve);
  });
  other.socket.send(Buffer.from('head -c 20000000 /dev/zero | tr "\\0" x; echo "al""l"\n'));
  expect(await ends).toBe('all');
  expect(other.drawn().length).toBeGreaterThan(20_000_000);
  stuck.socket.resume();
  await stuck.closed;
  expect(stuck.drawn()).not.toContain('all');
  // The shell is unchanged.
  other.socket.send(Buffer.from('echo "still $((40+2))"\n'));
  await other.sees('still 42');
  other.socket.terminate();
});

test('a question to the terminal reaches the tab that typed last, and no later tab', async () => {
  const [one, two] = [await sit(), await sit()];
  one.socket.send(Buffer.from("printf 'x\\033[cy%s%s\\n' as ked\n"));
  await Promise.all([one.sees('yasked'), two.sees('xyasked')]);
  expect(one.drawn()).toContain('x\x1b[cyasked');
  const later = await sit();
  await later.sees('xyasked');
  for (const tab of [one, two, later]) tab.socket.terminate();
});
