// run/plan-services.ts: from configured services to listeners, names and variables in the sandbox of a task. It looks for programs
// and starts nothing.
import { AgsError } from '../protocol/errors.ts';
import type { ServiceConfig } from '../protocol/service.ts';
import type { Listener } from '../protocol/spec.ts';
import { connectionOf, environmentOf, urlOf } from '../services/presets/connection.ts';
import { findPrograms } from '../services/presets/find-programs.ts';
import { PRESETS } from '../services/presets/presets.ts';
import { JOIN_PORT } from '../sandbox/io/inside-host.ts';
import { ENDPOINT_PORT, HOOKS_PORT, PROXY_PORT, type PlannedNetwork } from './network/plan-network.ts';
import { serviceAddress, type PlannedCompose, type PlannedService, type PlannedServices } from './planned-services.ts';
import type { HostContext } from './host-context.ts';

export function planServices(
  context: Pick<HostContext, 'env'>,
  services: readonly ServiceConfig[],
  network: PlannedNetwork,
  compose: PlannedCompose | null = null,
): { services: PlannedServices; network: PlannedNetwork } {
  const list = services.map((service, i) => planService(context, service, i));
  const listeners = new Map<string, { name: string; port: number }>();
  const opened: Listener[] = [];
  const there = network.spec.kind === 'gateway' ? network.spec.listeners : [];
  // A listener that has its port on every address also accepts connections to a service with that port.
  const has = (address: string, port: number): boolean =>
    there.some(
      (listener) =>
        listener.protocol === 'tcp' && listener.port === port && ['0.0.0.0', address].includes(listener.address),
    );
  const open = (address: string, port: number, name: string): void => {
    listeners.set(`${address}:${port}`, { name, port });
    if (!has(address, port)) opened.push({ name: `service ${address}:${port}`, protocol: 'tcp', address, port });
  };
  for (const { service, address, to } of list)
    for (const port of to.ports) {
      open(address, port, service.name);
      if (!OURS.includes(port) && !listeners.has(`127.0.0.1:${port}`) && !isTaken(network, port))
        open('127.0.0.1', port, service.name);
    }
  const composed = compose?.list ?? [];
  // Their published ports appear at 127.0.0.1 once they are up (nested-docker/nested-docker.ts).
  for (const { name, address, ports } of composed) for (const port of ports) open(address, port, name);
  const names = [...list.map(({ address, service }) => ({ address, name: service.name })), ...composed];
  return {
    services: { list, compose, listeners, hosts: names.map(({ address, name }) => `${address} ${name}\n`).join('') },
    network: {
      ...network,
      spec:
        network.spec.kind === 'gateway'
          ? { ...network.spec, listeners: [...network.spec.listeners, ...opened] }
          : { kind: 'gateway', listeners: opened, reach: false },
      env: { ...network.env, ...environmentOf(list) },
    },
  };
}

const OURS: readonly number[] = [PROXY_PORT, ENDPOINT_PORT, HOOKS_PORT, JOIN_PORT];

/** A grant of the user has this port. */
function isTaken({ grants }: PlannedNetwork, port: number): boolean {
  return grants.some(({ grant, address }) => grant.port === port && address === '127.0.0.1');
}

export function planService(context: Pick<HostContext, 'env'>, service: ServiceConfig, place: number): PlannedService {
  const preset = service.preset === null ? null : PRESETS[service.preset];
  const to = connectionOf(service, preset);
  const path = context.env['PATH'] ?? '';
  return {
    service,
    preset,
    to,
    address: serviceAddress(place),
    url: urlOf(to, preset),
    programs:
      preset === null || service.image !== null
        ? { path: path.split(':'), stamps: [] }
        : findPrograms(preset, path, service.version),
  };
}

/** Throws with a fix if one of them cannot run here. */
export function requireServices({ list }: PlannedServices, possible: boolean): void {
  for (const one of list) {
    const problem = serviceProblem(one);
    if (problem === null) continue;
    throw new AgsError('service.unavailable', problem.what, {
      hint: `${problem.hint}\nOr without it: --no-services`,
    });
  }
  if (list.length > 0 && !possible)
    throw new AgsError(
      'service.unavailable',
      'Services cannot run here: on this system only bwrap may create namespaces.',
      {
        hint: 'Find the cause: ags doctor. Start without services: --no-services',
      },
    );
}

/** null: it can run here. */
export function serviceProblem({ service, preset, programs }: PlannedService): { what: string; hint: string } | null {
  const endings = ['.sh', ...Object.keys(preset?.seeds ?? {})];
  const strange = service.seed.find((path) => !endings.some((ending) => path.endsWith(ending)));
  if (strange !== undefined)
    return {
      what: `The service ${service.name} cannot be filled with ${strange}: it takes ${endings.join(', ')}.`,
      hint: `Correct "seed" (${service.origin}); a script can do anything: seed: [db/seed.sh]`,
    };
  if (preset === null || !('missing' in programs)) return null;
  const version = service.version === null ? '' : ` ${service.version}`;
  return {
    what: `The service ${service.name} needs ${preset.title}${version}, and ${programs.missing.join(', ')} is not on this machine.`,
    hint: `Install it: ${preset.install}`,
  };
}
