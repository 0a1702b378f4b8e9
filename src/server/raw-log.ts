// server/raw-log.ts: the unchanged output of an agent, as a download.
// Invariant: the log is sent as bytes to save; no browser renders or interprets it.
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { StoredTask } from '../store/tasks.ts';
import { HEADERS } from './sign-in/headers.ts';
import { Refusal } from './routes/refusal.ts';

const PATH = /^\/api\/tasks\/([a-z0-9][a-z0-9-]{0,62})\/log$/;

/** null: the path is not that of a log. */
export function taskOfRawLog(path: string): string | null {
  return PATH.exec(path)?.[1] ?? null;
}

export async function sendRawLog({ task, paths }: StoredTask, response: ServerResponse): Promise<void> {
  const file = await open(paths.agentLog).catch(() => null);
  if (file === null) throw new Refusal(404, 'path.not-found', `${task.name} has no agent log.`);
  await using _file = file;
  const { size } = await file.stat();
  response.writeHead(200, {
    ...HEADERS,
    'Content-Type': 'application/octet-stream',
    'Content-Disposition': `attachment; filename="${task.id}.log"`,
    'Content-Length': size,
    'Cache-Control': 'no-store',
  });
  if (size === 0) return void response.end();
  // Output that is written meanwhile is left out: the announced length is fixed.
  await pipeline(createReadStream('', { fd: file.fd, autoClose: false, end: size - 1 }), response).catch(() =>
    response.destroy(),
  );
}
