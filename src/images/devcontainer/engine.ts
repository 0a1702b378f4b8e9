// images/devcontainer/engine.ts: `ags gateway engine`: the Docker daemon of a dev container, in its own container.
// Invariants: the process is root only until the user-namespace helper has started, and unprivileged from then on. The daemon starts only
// after it was verified to be unprivileged too. Its only way out is the dev container's listener, with its rules.
import { spawn } from 'node:child_process';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { AgsError } from '../../protocol/errors.ts';
import { joinSockets } from '../../lib/stream/join-sockets.ts';
import { findProgram, programMissing } from '../../sandbox/programs.ts';
import {
  ENGINE_ENV,
  NESTED_MEETING,
  nestedEngineArgv,
  userHelper,
  USER_HELPER_CALLS,
} from '../../sandbox/nested/engine-args.ts';
import { findNestedPrograms, startEngine } from '../../sandbox/nested/nested-engine.ts';
import { seccompArch } from '../../sandbox/spec/seccomp.ts';
import { openEngineListener } from '../../nested-docker/nested-docker.ts';
import { listenAt } from '../../network/listen.ts';
import { PROXY_PORT } from '../../run/network/plan-network.ts';
import type { HostContext } from '../../run/host-context.ts';

/** The user in the image, the same as the gateway's. */
const USER = 'gateway';

export interface DevEngine extends AsyncDisposable {
  /** Resolves with its last output when the daemon has ended by itself. */
  readonly ended: Promise<string>;
}

export async function openDevEngine(
  context: HostContext,
  place: string,
  notice: (text: string) => void,
): Promise<DevEngine> {
  const arch = seccompArch(context.nodeArch);
  const perl = findProgram('perl');
  if (arch === null) throw new AgsError('backend.unavailable', `Nested Docker does not work on ${context.nodeArch}.`);
  if (perl === null) throw programMissing(['perl']);
  const argv = nestedEngineArgv(findNestedPrograms(), []);
  if (context.uid !== 0)
    throw new AgsError('backend.unavailable', 'Nested Docker must start as root of its container, and gives it up.', {
      hint: 'The compose file starts it; write one with: ags devcontainer init --docker',
    });
  spawn(perl, ['-e', userHelper(), '--', USER_HELPER_CALLS[arch]], { stdio: 'ignore', cwd: '/', env: {} });
  becomeNobody();
  const listener = openEngineListener(notice, ({ onPorts }) =>
    startEngine(
      {
        perl,
        arch,
        dir: NESTED_MEETING,
        runMark: 'dev-container',
        tmpBytes: TMP_BYTES,
        argv,
        env: ENGINE_ENV,
        // Containers reach each other and nothing else: there is no egress network, only one listener.
        gateway: false,
        trust: '',
        onListener: (_name, listener) =>
          void (listener as Server).on('connection', (socket: Socket) => joinSockets(socket, toGateway())),
        onPorts,
      },
      // Every process in this container sees the others, including this one, which the daemon cannot affect.
      { enter: async () => undefined, isLone: () => true, gone: async () => undefined },
    ),
  );
  try {
    const { done } = await listener.engine();
    listener.publishIn({ open: (port) => listening(port) });
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => listener.enter(socket));
    const listens = await listenAt(place, server);
    return {
      ended: done,
      async [Symbol.asyncDispose]() {
        listens[Symbol.dispose]();
        await listener[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await listener[Symbol.asyncDispose]();
    throw error;
  }
}

const TMP_BYTES = 2 ** 30;

/** Gives up all privileges permanently. */
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
