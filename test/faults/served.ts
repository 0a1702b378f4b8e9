// test/faults/served.ts: the gateway as a program, a listener that leads to it, and a client that keeps using both. Invariant: each ends only
// if killed, restarts at the same address, and keeps its log intact.
import { createHash, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { connect as tlsConnect } from 'node:tls';
import { ORIGIN } from '../gateway/fixture.ts';
import { giveTo } from '../harness.ts';
import { firstLine } from '../server/place.ts';
import type { Begun } from './acts.ts';
import { list } from './checker.ts';
import { readIfThere, type Ground, type Running } from './ground.ts';

export async function serveGateway(ground: Ground, name: string): Promise<Begun> {
  const dir = join(ground.machine.root, name);
  const at = (file: string): string => join(dir, file);
  mkdirSync(dir);
  writeFileSync(at('list.txt'), 'allowed.test\n');
  writeFileSync(
    at('gateway.yaml'),
    `network:\n  defaults: false\n  dns: ["${ground.context.dns}"]\n  addresses: ["${ORIGIN}/32"]\n`,
  );
  giveTo(dir, ground.machine.uid);
  const socket = at('gw.sock');
  // On the disk that may fill up.
  const logs = join(ground.machine.stateDir, 'network');
  const log = `${name}.jsonl`;
  const files = ['--rules', at('list.txt'), '--config', at('gateway.yaml'), '--log', join(logs, log)];
  const ends = async (of: Running): Promise<string[]> => {
    const { code, signal, stderr } = await of.ended;
    return code === 0 || signal !== null ? [] : [`ags ${of.args.slice(0, 2).join(' ')} ended with ${code}: ${stderr}`];
  };
  const port = await freePort();
  const serve = (): Running => ground.start('gateway', 'serve', '--socket', socket, ...files);
  const openListener = (): Running =>
    ground.start('gateway', 'door', '--socket', socket, '--listen', `127.0.0.1:${port}`);
  const [running, listener] = [serve(), openListener()];
  await Promise.all([firstLine(running.child), firstLine(listener.child)]);
  const asking = setInterval(() => {
    void ask(socket, Math.random() < 0.5 ? 'allowed.test' : 'other.test');
    void ask(port, 'allowed.test');
  }, 20);
  return {
    running,
    task: null,
    leave() {
      for (const { child } of [running, listener]) child.kill('SIGTERM');
    },
    async end() {
      clearInterval(asking);
      const wrong = [...(await ends(running)), ...(await ends(listener))];
      const next = [serve(), openListener()];
      await Promise.all(next.map(({ child }) => firstLine(child)));
      const checked = await ground.ags('gateway', 'check', '--socket', socket, '--listen', `127.0.0.1:${port}`);
      if (checked.code !== 0) wrong.push(`the next gateway reports an error: ${checked.stderr}`);
      if (!(await ask(port, 'allowed.test'))) wrong.push('the next gateway does not reach an allowed host');
      for (const { child } of next) child.kill('SIGTERM');
      for (const one of next) wrong.push(...(await ends(one)));
      const seen = join(ground.stateDir, 'network');
      for (const file of list(seen).filter((one) => one.startsWith(log))) {
        wrong.push(...logDamage(join(seen, file)));
        rmSync(join(seen, file));
      }
      return [
        ...wrong,
        ...list(dir)
          .filter((file) => file.includes('sock'))
          .map((file) => `left: ${file} of a gateway`),
      ];
    },
  };
}

/** A free port outside the range that the kernel hands out. */
async function freePort(): Promise<number> {
  const port = randomInt(10_000, 30_000);
  const server = createServer().listen(port, '127.0.0.1');
  const isFree = await once(server, 'listening').then(
    () => true,
    () => false,
  );
  if (!isFree) return freePort();
  server.close();
  await once(server, 'close');
  return port;
}

/** True: the whole long answer arrived. */
function ask(way: string | number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const client = typeof way === 'string' ? connect(way) : connect(way, '127.0.0.1');
    const over = (): void => {
      client.destroy();
      resolve(false);
    };
    client.on('error', over).on('close', over).setTimeout(2000, over);
    client.write(`CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}:443\r\n\r\n`);
    client.once('data', (said: Buffer) => {
      if (!said.toString('latin1').startsWith('HTTP/1.1 200')) return over();
      let bytes = 0;
      const inner = tlsConnect({ socket: client, servername: host, rejectUnauthorized: false });
      inner.on('error', over).on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes >= 40_000) resolve(true);
      });
      inner.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    });
  });
}

/** Every line has the next number and hash; an unfinished last line does not count. */
export function logDamage(file: string): string[] {
  const lines = (readIfThere(file) ?? '').split('\n').slice(0, -1);
  let before = '';
  for (const [i, line] of lines.entries()) {
    try {
      const { seq, prev } = JSON.parse(line) as { seq: number; prev: string };
      if (seq !== i + 1) return [`${file}: line ${i + 1} has the number ${seq}`];
      if (prev !== before) return [`${file}: line ${seq} does not match the hash of the one before`];
    } catch {
      return [`${file}: line ${i + 1} is not a decision`];
    }
    before = createHash('sha256').update(line).digest('hex');
  }
  return [];
}
