// nested-docker/compose-config.ts: reads the client's merged view of the compose files (`config`): names, ports, and paths that containers
// share with the project. Pure. The text is untrusted: anything of an unexpected form is left out or refused.
import { isAbsolute, relative } from 'node:path';
import { COMPOSE_NAME } from '../protocol/config/words.ts';
import { AgsError } from '../protocol/errors.ts';
import { composeAddress, type ComposedService } from '../run/planned-services.ts';

type Values = Readonly<Record<string, unknown>>;

const MOST_SERVICES = 100;
const MOST_PORTS = 64;

/** `parsed` is the document; `project` is the project's path inside the client's sandbox. */
export function readComposed(
  parsed: unknown,
  want: { readonly project: string; readonly profiles: readonly string[]; readonly chosen: readonly string[] },
): { list: ComposedService[]; shared: string[] } {
  const all = new Map(
    Object.entries(valuesOf(valuesOf(parsed)['services'])).map(([name, one]) => [name, valuesOf(one)]),
  );
  const strange = [...all.keys()].find((name) => !COMPOSE_NAME.test(name) || /^(localhost|sandbox)$/i.test(name));
  if (strange !== undefined || all.size > MOST_SERVICES)
    throw new AgsError(
      'service.unavailable',
      strange === undefined
        ? `The compose files have ${all.size} services; ${MOST_SERVICES} are the most.`
        : `A service of the compose files cannot be called ${JSON.stringify(strange.slice(0, 80))} inside.`,
    );
  for (const name of want.chosen)
    if (!all.has(name))
      throw new AgsError('service.unavailable', `The compose files have no service "${name}".`, {
        hint: `They have ${[...all.keys()].join(', ')}. Correct "compose.services".`,
      });
  const active = [...all].filter(([, one]) => isActive(one, want.profiles)).map(([name]) => name);
  const wanted = withDependencies(all, want.chosen.length === 0 ? active : want.chosen);
  const list = [...wanted].toSorted().map((name, i) => ({
    name,
    address: composeAddress(i),
    ports: portsOf(all.get(name) ?? {}),
  }));
  const shared = new Set([...wanted].flatMap((name) => sharedOf(all.get(name) ?? {}, want.project)));
  return { list, shared: [...shared].toSorted() };
}

/** Version 2 of the client lists only active services, version 1 lists all. */
function isActive(one: Values, profiles: readonly string[]): boolean {
  const own = listOf(one['profiles']);
  return own.length === 0 || own.some((profile) => profiles.includes(textOf(profile)));
}

function withDependencies(all: ReadonlyMap<string, Values>, names: readonly string[]): Set<string> {
  const found = new Set<string>();
  const add = (name: string): void => {
    const one = all.get(name);
    if (one === undefined || found.has(name)) return;
    found.add(name);
    const needs = one['depends_on'];
    for (const need of Array.isArray(needs) ? listOf(needs) : Object.keys(valuesOf(needs))) add(textOf(need));
  };
  for (const name of names) add(name);
  return found;
}

/** TCP ports: published ones by their number in the container, and exposed ones. */
function portsOf(one: Values): number[] {
  const ports = [...listOf(one['ports']), ...listOf(one['expose'])].flatMap((entry) => {
    const { target, protocol } = valuesOf(entry);
    if (target !== undefined) return protocol === 'udp' ? [] : range(textOf(target));
    const [places = '', kind = 'tcp'] = textOf(entry).split('/');
    return kind === 'tcp' ? range(places.split(':').at(-1) ?? '') : [];
  });
  return [...new Set(ports)].slice(0, MOST_PORTS);
}

/** "80", or "8000-8010". */
function range(text: string): number[] {
  const [, first, last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? [];
  const [from, to] = [Number(first), Number(last)];
  if (first === undefined || from < 1 || to > 65_535) return [];
  return Array.from({ length: Math.min(Math.max(to - from + 1, 0), MOST_PORTS) }, (_, i) => from + i);
}

/** Directories and files of the project; paths outside of it are not shared with the engine. */
function sharedOf(one: Values, project: string): string[] {
  return listOf(one['volumes']).flatMap((entry) => {
    const { type, source } = valuesOf(entry);
    const from = type === 'bind' ? textOf(source) : typeof entry === 'string' ? (entry.split(':')[0] ?? '') : '';
    if (!isAbsolute(from)) return [];
    const path = relative(project, from);
    return path === '..' || path.startsWith('../') ? [] : [path === '' ? '.' : path];
  });
}

function valuesOf(value: unknown): Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Values) : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
