// run/plan-services.ts: from configured services to doors, names and variables in the sandbox of a task. It looks for programs and
// starts nothing.
import { AgsError } from '../protocol/errors.ts';
import type { ServiceConfig } from '../protocol/service.ts';
import type { Door } from '../protocol/spec.ts';
import { connectionOf, environmentOf, urlOf } from '../services/presets/connection.ts';
import { findPrograms } from '../services/presets/find-programs.ts';
import { PRESETS } from '../services/presets/presets.ts';
import { JOIN_PORT } from '../sandbox/io/inside-host.ts';
import { ENDPOINT_PORT, HOOKS_PORT, PROXY_PORT, type PlannedNetwork } from './network/plan-network.ts';
import { serviceAddress, type PlannedCompose, type PlannedService, type PlannedServices } from './planned-services.ts';
import type { World } from './host-context.ts';

export function planServices(
  world: Pick<World, 'env'>,
  services: readonly ServiceConfig[],
  network: PlannedNetwork,
  compose: PlannedCompose | null = null,
): { services: PlannedServices; network: PlannedNetwork } {
  const list = services.map((service, i) => planService(world, service, i));
  const doors = new Map<string, { name: string; port: number }>();
  const opened: Door[] = [];
  const there = network.spec.kind === 'gateway' ? network.spec.doors : [];
  // Doors that have their port on every address take in whoever comes to a service there.
  const has = (address: string, port: number): boolean =>
    there.some((door) => door.protocol === 'tcp' && door.port === port && ['0.0.0.0', address].includes(door.address));
  const open = (address: string, port: number, name: string): void => {
    doors.set(`${address}:${port}`, { name, port });
    if (!has(address, port)) opened.push({ name: `service ${address}:${port}`, protocol: 'tcp', address, port });
  };
  for (const { service, address, to } of list)
    for (const port of to.ports) {
      open(address, port, service.name);
      if (!OURS.includes(port) && !doors.has(`127.0.0.1:${port}`) && !isTaken(network, port))
        open('127.0.0.1', port, service.name);
    }
  const composed = compose?.list ?? [];
  // Their published ports are at 127.0.0.1 when they are up (inner-docker.ts).
  for (const { name, address, ports } of composed) for (const port of ports) open(address, port, name);
  const names = [...list.map(({ address, service }) => ({ address, name: service.name })), ...composed];
  return {
    services: { list, compose, doors, hosts: names.map(({ address, name }) => `${address} ${name}\n`).join('') },
    network: {
      ...network,
      spec:
        network.spec.kind === 'gateway'
          ? { ...network.spec, doors: [...network.spec.doors, ...opened] }
          : { kind: 'gateway', doors: opened, reach: false },
      env: { ...network.env, ...environmentOf(list) },
    },
  };
}

const OURS: readonly number[] = [PROXY_PORT, ENDPOINT_PORT, HOOKS_PORT, JOIN_PORT];

/** A grant of the user's has it. */
function isTaken({ grants }: PlannedNetwork, port: number): boolean {
  return grants.some(({ grant, address }) => grant.port === port && address === '127.0.0.1');
}

export function planService(world: Pick<World, 'env'>, service: ServiceConfig, place: number): PlannedService {
  const preset = service.preset === null ? null : PRESETS[service.preset];
  const to = connectionOf(service, preset);
  const path = world.env['PATH'] ?? '';
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

/** Throws, with what to do, if one of them cannot run here. */
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
      'Services cannot run here: on this system bwrap alone may make namespaces.',
      {
        hint: 'Why, and what can be done: ags doctor. Without services: --no-services',
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
