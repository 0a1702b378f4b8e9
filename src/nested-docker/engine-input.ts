// nested-docker/engine-input.ts: what nested Docker is given, and what it reports while it runs.
import type { Socket as Datagrams } from 'node:dgram';
import type { Server } from 'node:net';
import type { EffectiveConfig } from '../config/effective.ts';
import type { HostContext } from '../run/host-context.ts';
import type { TaskSecrets } from '../run/network/secrets.ts';

export interface NestedDockerInput {
  readonly context: HostContext;
  readonly id: string;
  readonly config: Pick<EffectiveConfig, 'network' | 'docker' | 'limits'>;
  /** Containers can trust the gateway's certificate authority, if it has one. */
  readonly secrets?: Pick<TaskSecrets, 'authority'>;
  readonly notice: (text: string) => void;
}

/** What nested Docker reports while it runs: published ports, and the listeners of the egress network. */
export interface EngineNews {
  onPorts(ports: readonly number[]): void;
  onEgress(name: string, listener: Server | Datagrams): void;
}
