// server/sign-in/find-server.ts: a server of the same user that runs already.
// Invariant: the key is shown to nobody: whoever listens on the port has to prove that they have it, and serve there, before they get it.
import { randomBytes } from 'node:crypto';
import { nameOf, proofOf, readKey } from './sessions.ts';
import { serverDir } from '../serve.ts';
import type { World } from '../../run/host-context.ts';

/** A link that lets one browser in; null: nobody of ours serves there. */
export async function findServer(world: World, port: number): Promise<string | null> {
  const address = `127.0.0.1:${port}`;
  const base = `http://${address}`;
  const key = readKey(serverDir(world));
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
    // Nobody there, or somebody who speaks another language.
    return null;
  }
}

const WAIT_MS = 2000;
