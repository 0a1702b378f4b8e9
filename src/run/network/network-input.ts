// run/network/network-input.ts: the inputs of a run's network, and its links to services and nested Docker.
import type { NetworkEvent } from '../../protocol/event.ts';
import type { ModelAccount } from '../../protocol/model-usage.ts';
import type { Socket } from 'node:net';
import type { Decision } from '../../protocol/network.ts';
import type { EffectiveConfig } from '../../config/effective.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { Sandbox } from '../../sandbox/backend.ts';
import type { HostContext } from '../host-context.ts';
import type { PlacedGrant } from './plan-network.ts';
import type { TaskSecrets } from './secrets.ts';

export interface RunNetworkInput {
  readonly context: HostContext;
  readonly id: string;
  readonly startedAtMs: number;
  readonly project: string;
  /** The file of the task's events, or a function that appends to it. */
  readonly events: string | ((event: NetworkEvent) => void);
  readonly onDecision?: (decision: Decision) => void;
  readonly config: Pick<EffectiveConfig, 'network' | 'docker' | 'limits'>;
  /** The task's nested Docker, which may hold services; null: none. */
  readonly docker: DockerLink | null;
  readonly grants: readonly PlacedGrant[];
  readonly secrets: TaskSecrets;
  /** Told of requests to models. */
  readonly account?: ModelAccount;
  readonly notice: (text: string) => void;
  /** null: none. */
  readonly services: ServiceListeners | null;
}

/** The services beside the sandbox, as its listeners see them. */
export interface ServiceListeners {
  /** Takes a connection to a service's listener; false: it is not one. */
  enter(socket: Socket): boolean;
  /** The address of each service inside. */
  readonly addresses: ReadonlyMap<string, string>;
  /** From now on, services that come up later get their listeners in this sandbox. */
  started(sandbox: Sandbox): void;
}

/** Nested Docker, as the network of its task knows it. */
export interface DockerLink {
  /** Takes a connection to its listener. */
  enter(socket: Socket): void;
  /** From now on published ports are listeners of this sandbox. */
  publishIn(sandbox: Pick<Sandbox, 'open'>): void;
  /** From now on its containers reach the network through this gateway; null: no network. */
  leadOut(way: ContainerWay | null): void;
}

/** The gateway of a run, for containers. */
export interface ContainerWay {
  enter(kind: 'proxy' | 'tls' | 'web', socket: Socket): void;
  answerName(question: Buffer): Promise<Buffer | null>;
}

/** The gateway of a run, once it is loaded. */
export interface Loaded {
  readonly gateway: Gateway;
  /** Call when the live rules have changed. */
  refresh(): void;
  close(): void;
}
