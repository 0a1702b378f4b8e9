// test/faults/forked.ts: asks a server for a fork. Invariant: a confirmed fork exists and includes all work of the original, which is unchanged.
import { join } from 'node:path';
import { firstLine } from '../server/place.ts';
import type { Begun } from './acts.ts';
import { taskNames } from './checker.ts';
import { readIfThere, type Ground } from './ground.ts';

export async function forkTask(ground: Ground, task: string, name: string, text: string): Promise<Begun> {
  const tip = (of: string): string =>
    ground.machine.git('for-each-ref', '--format=%(objectname)', `refs/heads/ags/${of}`).trim();
  const before = tip(task);
  const server = ground.start('serve', '--port', '0');
  const link = await firstLine(server.child);
  const key = readIfThere(join(ground.stateDir, 'server/key'))?.trim() ?? '';
  const asked = fetch(`http://127.0.0.1:${new URL(link).port}/api/tasks/${task}/fork`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ text, name }),
  }).then(
    async (answer) => ({ status: answer.status, said: await answer.text() }),
    () => ({ status: 0, said: 'the connection was lost' }),
  );
  return {
    running: server,
    task: name,
    passing: true,
    leave: () => void asked.then(() => server.child.kill('SIGTERM')),
    async end({ code, signal, stderr }) {
      const { status, said } = await asked;
      const made = taskNames(ground.stateDir).includes(name);
      const own = tip(name);
      return [
        ...(status === 200 && !made ? [`${name} was reported as started, but is missing: ${said}`] : []),
        ...(status >= 500 && !said.includes('disk.full') ? [`the server said ${status}: ${said}`] : []),
        ...(tip(task) === before ? [] : [`${task} changed when it was forked`]),
        ...(own === '' || ground.machine.git('merge-base', before, own).trim() === before
          ? []
          : [`${name} does not include the work of ${task}`]),
        ...(code === 0 || signal !== null ? [] : [`the server ended with ${code}: ${stderr}`]),
      ];
    },
  };
}
