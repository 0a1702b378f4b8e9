// nested-docker/compose-engine.ts: queries nested Docker about the containers of the project's compose files, and uploads the copy of the
// project that they see.
import { isIPv4 } from 'node:net';
import type { NestedEngine } from '../sandbox/nested/nested-engine.ts';
import { PROJECT_VOLUME } from './compose-client.ts';
import { askNestedEngine, openAnswer, type EngineRequest } from './ask-engine.ts';

export interface Container {
  readonly id: string;
  /** The compose project, and the service in it. */
  readonly project: string;
  readonly service: string;
  readonly state: 'running' | 'ended' | 'other';
  readonly exitCode: number | null;
  /** null: the container has no health check. */
  readonly health: 'starting' | 'healthy' | 'unhealthy' | null;
  /** In the engine's network. */
  readonly address: string;
  readonly ports: readonly number[];
}

const LABEL = 'com.docker.compose';

/** Containers of one service come in order of creation, newest first. */
export async function listContainers(
  engine: NestedEngine,
  of: { readonly directory: string } | { readonly project: string },
  signal: AbortSignal,
): Promise<readonly Container[]> {
  const label = 'project' in of ? `${LABEL}.project=${of.project}` : `${LABEL}.project.working_dir=${of.directory}`;
  const filters = encodeURIComponent(JSON.stringify({ label: [label] }));
  const answer = await askNestedEngine(engine, { path: `/containers/json?all=1&filters=${filters}` }, signal);
  return Array.isArray(answer) ? answer.flatMap(readContainer) : [];
}

interface Listed {
  readonly Id?: unknown;
  readonly State?: unknown;
  readonly Status?: unknown;
  readonly Labels?: Readonly<Record<string, unknown>>;
  readonly Ports?: readonly { readonly PrivatePort?: unknown; readonly Type?: unknown }[];
  readonly NetworkSettings?: { readonly Networks?: Readonly<Record<string, { readonly IPAddress?: unknown }>> };
}

function readContainer(value: unknown): Container[] {
  const { Id, State, Status, Labels, Ports, NetworkSettings } = (value ?? {}) as Listed;
  const label = (name: string): string => textOf(Labels?.[`${LABEL}.${name}`]);
  if (typeof Id !== 'string' || !/^[0-9a-f]{64}$/.test(Id) || label('oneoff').toLowerCase() === 'true') return [];
  const status = textOf(Status);
  const addresses = Object.values(NetworkSettings?.Networks ?? {}).map(({ IPAddress }) => textOf(IPAddress));
  const ports = (Array.isArray(Ports) ? Ports : []).flatMap(({ PrivatePort, Type }) =>
    Type === 'tcp' && Number.isInteger(PrivatePort) ? [Number(PrivatePort)] : [],
  );
  return [
    {
      id: Id,
      project: label('project'),
      service: label('service'),
      state: State === 'running' ? 'running' : State === 'exited' || State === 'dead' ? 'ended' : 'other',
      exitCode:
        Number(/^Exited \((\d+)\)/.exec(status)?.[1] ?? Number.NaN) || (status.startsWith('Exited (0)') ? 0 : null),
      health: readHealth(status),
      // A container without an address of its own shares the engine's network.
      address: addresses.find((address) => isIPv4(address)) ?? '127.0.0.1',
      ports: [...new Set(ports)].slice(0, MOST_PORTS),
    },
  ];
}

const MOST_PORTS = 64;

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function readHealth(status: string): Container['health'] {
  const said = /\((healthy|unhealthy|health: starting)\)/.exec(status)?.[1];
  return said === undefined ? null : said === 'healthy' || said === 'unhealthy' ? said : 'starting';
}

/** Streams a container's output until it ends or `signal` aborts. */
export async function followLog(
  engine: NestedEngine,
  id: string,
  onBytes: (bytes: Buffer) => void,
  signal: AbortSignal,
): Promise<void> {
  const about = (await askNestedEngine(engine, { path: `/containers/${id}/json` }, signal)) as {
    Config?: { Tty?: unknown };
  };
  const answer = await openAnswer(engine, { path: `/containers/${id}/logs?follow=1&stdout=1&stderr=1` }, signal);
  if (answer.statusCode !== 200) return void answer.destroy();
  const take = about.Config?.Tty === true ? onBytes : unframed(onBytes);
  for await (const chunk of answer) take(chunk as Buffer);
}

const HEAD = 8;

/** Without a terminal, both streams arrive in one, each chunk after a header with its length. */
export function unframed(onBytes: (bytes: Buffer) => void): (chunk: Buffer) => void {
  let head = Buffer.alloc(0);
  let left = 0;
  return (chunk) => {
    for (let rest = chunk; rest.length > 0;) {
      if (left === 0) {
        const want = HEAD - head.length;
        head = Buffer.concat([head, rest.subarray(0, want)]);
        rest = rest.subarray(want);
        if (head.length < HEAD) return;
        left = head.readUInt32BE(4);
        head = Buffer.alloc(0);
        continue;
      }
      onBytes(rest.subarray(0, left));
      const taken = Math.min(left, rest.length);
      left -= taken;
      rest = rest.subarray(taken);
    }
  };
}

const CARRIER = 'ags-project';

/** Unpacks an archive into the volume behind the client's paths, through a container that never runs. */
export async function bringFiles(
  engine: NestedEngine,
  archive: NodeJS.ReadableStream,
  signal: AbortSignal,
): Promise<void> {
  const tell = (wanted: EngineRequest): Promise<unknown> => askNestedEngine(engine, wanted, signal);
  await tell({ method: 'POST', path: '/volumes/create', body: { Name: PROJECT_VOLUME } });
  const nothing = Buffer.alloc(1024);
  await tell({
    method: 'POST',
    path: `/images/create?fromSrc=-&repo=${CARRIER}&tag=carrier`,
    archive: nothing,
  });
  const made = (await tell({
    method: 'POST',
    path: '/containers/create',
    body: { Image: `${CARRIER}:carrier`, Cmd: ['-'], HostConfig: { Binds: [`${PROJECT_VOLUME}:/project`] } },
  })) as { Id?: unknown };
  const id = textOf(made.Id);
  if (!/^[0-9a-f]{64}$/.test(id)) throw new Error('nested Docker created no container');
  await tell({ method: 'PUT', path: `/containers/${id}/archive?path=/project`, archive });
  await tell({ method: 'DELETE', path: `/containers/${id}` });
  await tell({ method: 'DELETE', path: `/images/${CARRIER}:carrier` });
}
