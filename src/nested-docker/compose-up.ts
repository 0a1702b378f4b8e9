// nested-docker/compose-up.ts: `up`: copies the project's files into nested Docker, then runs the client's own command.
import { PassThrough } from 'node:stream';
import { basename, dirname, join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { NestedEngine } from '../sandbox/nested/nested-engine.ts';
import { bringFiles } from './compose-engine.ts';
import { clientDir, projectInside, runClient, type ClientRun } from './compose-client.ts';
import type { NestedDocker } from './nested-docker.ts';
import type { Printed } from '../run/output-reader.ts';
import type { PlannedCompose } from '../run/planned-services.ts';
import type { RunServicesInput } from './services-input.ts';

export interface BringUp extends RunServicesInput {
  readonly compose: PlannedCompose;
  readonly docker: NestedDocker;
  readonly engine: NestedEngine;
  readonly printed: Printed;
  readonly signal: AbortSignal;
}

/** Resolves when the client reports that all services have started. */
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
  // Both versions print their steps first and the error last.
  const line = printed.tail().find((one) => /^\s*error\b/i.test(one)) ?? printed.line();
  throw new AgsError('service.failed', line?.trim().slice(0, 500) ?? `compose ended with ${code}`);
}

function clientOf(input: BringUp): Pick<ClientRun, 'context' | 'plan' | 'task' | 'dir' | 'compose' | 'signal'> {
  const { context, plan, task, compose, signal } = input;
  return { context, plan, task, dir: clientDir(input.paths), compose, signal };
}

const MOST_USERS = 65_536;

/** Leaves out missing paths: the engine creates an empty directory or refuses, as it always does. */
const PACK = `cd "$1" || exit; owner=$2; shift 2
for path do shift; [ -e "$path" ] && set -- "$@" "$path"; done
[ $# -gt 0 ] || set -- --files-from=/dev/null
exec tar --create --numeric-owner --owner=+$owner --group=+$owner "$@"
`;

/** Nested Docker does not see the workspace, so the shared paths are copied there in their current state. */
async function copyShared(input: BringUp): Promise<void> {
  const { plan, compose, printed, engine } = input;
  const project = projectInside(plan);
  // An archive that fails before it is read has reported its error elsewhere.
  const archive = new PassThrough().on('error', () => undefined);
  // Files keep their owner if that user ID exists in the engine.
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
      hint: 'Files that compose files name must be in the commit that the task starts from.',
    });
}
