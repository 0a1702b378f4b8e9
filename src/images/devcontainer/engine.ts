// images/devcontainer/engine.ts: the engine of a dev container, in a container of its own beside it: what `ags gateway engine` does there.
// Invariants: it is root only until the keeper has been started, and from then on nobody; the engine starts only when it has been seen to
// be nobody too; its one way out is the door of the dev container, with the rules of that.
import { spawn } from 'node:child_process';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { AgsError } from '../../protocol/errors.ts';
import { joinSockets } from '../../lib/stream/join-sockets.ts';
import { findProgram, programMissing } from '../../sandbox/checks/host.ts';
import { ENGINE_ENV, innerEngineArgv, KEEPER_CALLS } from '../../sandbox/nested/engine-args.ts';
import { findInnerPrograms, startEngine } from '../../sandbox/nested/nested-engine.ts';
import { INNER_MEETING, KEEPER } from '../../sandbox/inner-scripts.ts';
import { seccompArch } from '../../sandbox/spec/seccomp.ts';
import { openEngineDoor } from '../../nested-docker/nested-docker.ts';
import { listenAt } from '../../network/listen.ts';
import { PROXY_PORT } from '../../run/network/plan-network.ts';
import type { World } from '../../run/host-context.ts';

/** Who it is in the image, as the gateway is. */
const USER = 'gateway';

export interface DevEngine extends AsyncDisposable {
  /** Resolves when the engine has ended by itself, with what it said last. */
  readonly ended: Promise<string>;
}

export async function openDevEngine(world: World, place: string, notice: (text: string) => void): Promise<DevEngine> {
  const arch = seccompArch(world.nodeArch);
  const perl = findProgram('perl');
  if (arch === null) throw new AgsError('backend.unavailable', `An engine inside does not work on ${world.nodeArch}.`);
  if (perl === null) throw programMissing(['perl']);
  const argv = innerEngineArgv(findInnerPrograms(), []);
  if (world.uid !== 0)
    throw new AgsError(
      'backend.unavailable',
      'An engine inside has to begin as root of its container, to give it up.',
      {
        hint: 'It is started by the compose file that this writes: ags devcontainer init --docker',
      },
    );
  spawn(perl, ['-e', KEEPER, '--', KEEPER_CALLS[arch]], { stdio: 'ignore', cwd: '/', env: {} });
  becomeNobody();
  const door = openEngineDoor(notice, ({ onPorts }) =>
    startEngine(
      {
        perl,
        arch,
        dir: INNER_MEETING,
        runMark: 'dev-container',
        tmpBytes: TMP_BYTES,
        argv,
        env: ENGINE_ENV,
        // Its containers reach each other, and nobody else: there is no hall, and one door.
        gateway: false,
        trust: '',
        onDoor: (_name, door) =>
          void (door as Server).on('connection', (socket: Socket) => joinSockets(socket, toGateway())),
        onPorts,
      },
      // Everybody in this container sees its processes and no others; this one included, which the engine can do nothing to.
      { enter: async () => undefined, isApart: () => true, gone: async () => undefined },
    ),
  );
  try {
    const { done } = await door.engine();
    door.publishIn({ open: (port) => listening(port) });
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => door.enter(socket));
    const listens = await listenAt(place, server);
    return {
      ended: done,
      async [Symbol.asyncDispose]() {
        listens[Symbol.dispose]();
        await door[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await door[Symbol.asyncDispose]();
    throw error;
  }
}

const TMP_BYTES = 2 ** 30;

/** For good: no right is left, and none can be had again. */
function becomeNobody(): void {
  process.setgroups?.([]);
  process.setgid?.(USER);
  process.setuid?.(USER);
}

function toGateway(): Socket {
  return connect({ host: '127.0.0.1', port: PROXY_PORT, allowHalfOpen: true, noDelay: true });
}

function listening(port: number): Promise<Server> {
  const server = createServer({ allowHalfOpen: true, noDelay: true });
  return new Promise((resolve, reject) =>
    server.on('error', reject).listen({ host: '127.0.0.1', port }, () => resolve(server)),
  );
}
