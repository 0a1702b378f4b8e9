// test/attacks/mutation/engine-parts.ts: attempts against nested Docker's listener, the answers of its daemon, and the files that seed
// services. See parts.ts.
import { EventEmitter } from 'node:events';
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import type { NestedEngine } from '../../../src/sandbox/nested/nested-engine.ts';
import type { PlannedService } from '../../../src/run/planned-services.ts';
import type { RunPlan } from '../../../src/run/run-plan.ts';
import type { HostContext } from '../../../src/run/host-context.ts';
import { allowed, type PartAttempt } from './parts.ts';

/** A daemon that an agent commands answers as it likes. */
const answers: PartAttempt = async (use) => {
  const { askNestedEngine } = await use(() => import('../../../src/nested-docker/ask-engine.ts'));
  const server = createServer((request, response) => {
    if (request.url === '/long') return void response.end('x'.repeat(5_000_000));
    response
      .writeHead(request.url === '/good' ? 200 : 500)
      .end(JSON.stringify({ message: `\u001B[2J${'x'.repeat(5000)}` }));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const engine = { connect: () => Promise.resolve(connect(port, '127.0.0.1')) } as unknown as NestedEngine;
  try {
    await askNestedEngine(engine, { path: '/good' });
    const told = await askNestedEngine(engine, { path: '/bad' }).catch((error: Error) => error.message);
    return [
      ...(await allowed('an answer without an end', () => askNestedEngine(engine, { path: '/long' }))),
      ...(String(told).includes('\u001B') ? ['words that a terminal obeys'] : []),
      ...(String(told).length > 1000 ? ['words without an end'] : []),
    ];
  } finally {
    server.closeAllConnections();
    server.close();
  }
};

class Visitor extends EventEmitter {
  sentAway = false;
  resetAndDestroy(): void {
    this.sentAway = true;
  }
}

const crowds: PartAttempt = async (use) => {
  const { openEngineListener } = await use(() => import('../../../src/nested-docker/nested-docker.ts'));
  const listener = openEngineListener(
    () => undefined,
    () => new Promise(() => undefined),
  );
  const visitors = Array.from({ length: 600 }, () => new Visitor());
  for (const visitor of visitors) listener.enter(visitor as unknown as Socket);
  await Promise.resolve();
  return visitors.some(({ sentAway }) => sentAway) ? [] : ['as many connections as anybody wants'];
};

const seeds: PartAttempt = async (use, dir) => {
  const { readSeeds } = await use(() => import('../../../src/workspace/seed-files.ts'));
  const project = join(dir, 'project');
  for (const path of [project, join(dir, 'outside')]) mkdirSync(path);
  for (const path of ['project/seed.sql', 'project/.env.sh', 'project/large.sql', 'outside/x.sql'])
    writeFileSync(join(dir, path), 'x');
  truncateSync(join(project, 'large.sql'), 257 * 2 ** 20);
  symlinkSync('../outside', join(project, 'away'));
  symlinkSync('../outside/x.sql', join(project, 'link.sql'));
  const plan = { project: { root: project }, hidden: { paths: ['.env.sh'] } } as unknown as RunPlan;
  const read = (path: string): ReturnType<typeof readSeeds> => {
    const service = { name: 'db', origin: 'ags.yaml', seed: [path] };
    return readSeeds({} as HostContext, plan, { service } as unknown as PlannedService, 'live');
  };
  await read('seed.sql');
  const HOSTILE = ['.env.sh', 'link.sql', 'away/x.sql', 'large.sql'];
  return (await Promise.all(HOSTILE.map((path) => allowed(path, () => read(path))))).flat();
};

export const BESIDE_PARTS = { answers, crowds, seeds } as const satisfies Record<string, PartAttempt>;
