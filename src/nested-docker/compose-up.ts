// nested-docker/compose-up.ts: `up`: the project's files into the engine, then the client's own command.
import { PassThrough } from 'node:stream';
import { basename, dirname, join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { InnerEngine } from '../sandbox/nested/nested-engine.ts';
import { bringFiles } from './compose-engine.ts';
import { clientDir, projectInside, runClient, type ClientRun } from './compose-client.ts';
import type { InnerDocker } from './nested-docker.ts';
import type { Printed } from '../run/output-reader.ts';
import type { PlannedCompose } from '../run/planned-services.ts';
import type { RunServicesInput } from '../services/life.ts';

export interface BringUp extends RunServicesInput {
  readonly compose: PlannedCompose;
  readonly docker: InnerDocker;
  readonly engine: InnerEngine;
  readonly printed: Printed;
  readonly signal: AbortSignal;
}

/** Until the client says that all are started. */
export async function bringUp(input: BringUp): Promise<void> {
  const { compose, printed } = input;
  if (compose.shared.length > 0) await copyShared(input);
  const code = await runClient({
    ...clientOf(input),
    argv: [...compose.client, 'up', '--detach', ...compose.chosen],
    docker: (socket) => input.docker.enter(socket),
    onOutput: (_stream, chunk) => printed.bytes(chunk),
  });
  printed.end();
  if (code === 0) return;
  // Both versions tell of their steps first, and then of the error.
  const line = printed.tail().find((one) => /^\s*error\b/i.test(one)) ?? printed.line();
  throw new AgsError('service.failed', line?.trim().slice(0, 500) ?? `compose ended with ${code}`);
}

function clientOf(input: BringUp): Pick<ClientRun, 'world' | 'plan' | 'task' | 'dir' | 'compose' | 'signal'> {
  const { world, plan, task, compose, signal } = input;
  return { world, plan, task, dir: clientDir(input.paths), compose, signal };
}

const MOST_USERS = 65_536;

/** What is not there is made by the engine, as an empty directory, or refused by it, as anywhere. */
const PACK = `cd "$1" || exit; owner=$2; shift 2
for path do shift; [ -e "$path" ] && set -- "$@" "$path"; done
[ $# -gt 0 ] || set -- --files-from=/dev/null
exec tar --create --numeric-owner --owner=+$owner --group=+$owner "$@"
`;

/** The engine does not see the workspace. What its containers are to see of it is brought there, as it is now. */
async function copyShared(input: BringUp): Promise<void> {
  const { plan, compose, printed, engine } = input;
  const project = projectInside(plan);
  // One that fails before anybody reads it has told so elsewhere.
  const archive = new PassThrough().on('error', () => undefined);
  // Whoever has the files here has them there, if there is such a user.
  const owner = plan.user.uid < MOST_USERS ? plan.user.uid : 0;
  const packed = runClient({
    ...clientOf(input),
    argv: [
      'sh',
      '-c',
      PACK,
      'sh',
      dirname(project),
      String(owner),
      ...compose.shared.map((path) => join(basename(project), path)),
    ],
    docker: null,
    onOutput(stream, chunk) {
      if (stream === 'stderr') return printed.bytes(chunk);
      if (archive.destroyed || archive.write(chunk)) return undefined;
      return new Promise((resolve) => archive.once('drain', resolve).once('close', resolve));
    },
  });
  const [code] = await Promise.all([
    packed.then(
      (done) => {
        archive.end();
        return done;
      },
      (error: unknown) => {
        archive.destroy(error as Error);
        throw error;
      },
    ),
    bringFiles(engine, archive, input.signal).finally(() => archive.destroy()),
  ]);
  if (code !== 0)
    throw new AgsError('service.failed', printed.line() ?? 'files of the project could not be copied', {
      hint: 'Files that compose files name have to be in the commit that the task starts from.',
    });
}
