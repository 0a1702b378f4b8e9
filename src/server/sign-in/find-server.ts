// server/sign-in/find-server.ts: finds a running server of the same user.
// Invariant: the key is sent only after the program on the port has proved that it knows the key and serves this address.
import { randomBytes } from 'node:crypto';
import { nameOf, proofOf, readKey } from './sessions.ts';
import { serverDir } from '../serve.ts';
import type { HostContext } from '../../run/host-context.ts';

/** A sign-in link for one browser; null if no server of this user listens there. */
export async function findServer(context: HostContext, port: number): Promise<string | null> {
  const address = `127.0.0.1:${port}`;
  const base = `http://${address}`;
  const key = readKey(serverDir(context));
  const question = randomBytes(16).toString('hex');
  try {
    const proof = await fetch(`${base}/api/proof?question=${question}`, { signal: AbortSignal.timeout(WAIT_MS) });
    const { answer } = (await proof.json()) as { answer?: unknown };
    if (answer !== proofOf(key, address, question)) return null;
    const made = await fetch(`${base}/api/entries`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}` },
      signal: AbortSignal.timeout(WAIT_MS),
    });
    const { path } = (await made.json()) as { path?: unknown };
    return typeof path === 'string' && /^\/enter\?token=[\w-]+$/.test(path)
      ? `http://${nameOf(key)}:${port}${path}`
      : null;
  } catch {
    // Nothing listens there, or another kind of program.
    return null;
  }
}

const WAIT_MS = 2000;
